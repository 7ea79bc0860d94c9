"""MODULE:EXPRESSION: objects named by arguments of the command line."""

from __future__ import annotations

import importlib
import sys


def evaluate(text: str) -> object:
    """The value of an expression in the names of its module; ValueError for any other form."""
    name, colon, expression = text.partition(":")
    if not (name and colon and expression):
        raise ValueError(f"{text!r} is not MODULE:EXPRESSION, such as numpy:arange(6.0)")
    if "" not in sys.path:
        sys.path.insert(0, "")
    module = importlib.import_module(name)
    return eval(expression, {**vars(module), name.partition(".")[0]: module})
