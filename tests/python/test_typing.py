"""Type checkers on programs that use the package as users do, and stubtest.

A checker that is not installed is skipped with a message.
"""

import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dlpack_rs

TYPED = Path(__file__).parent / "typed"
PACKAGE = Path(dlpack_rs.__file__).parent
CACHE = TYPED.parents[2] / "target" / "mypy"
PROGRAMS = ["exchange.py", "buffers.py", "looking.py", "calls.py", "judged.py"]
WRONG = [number for number, line in enumerate((TYPED / "wrong.py").read_text().splitlines(), 1)
         if line.endswith("# wrong")]


def run(*words, **environment):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True,
                          timeout=600, cwd=TYPED,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment})


def needs(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"not run: {module} is not installed")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name):
    done = run(name.removesuffix(".py"))
    assert done.returncode == 0, done.stderr


def mistakes(errors):
    """The lines of wrong.py among (file, line, message), if there are no other errors."""
    assert {file for file, *_ in errors} == {"wrong.py"}, errors
    return sorted({line for _, line, _ in errors})


def test_mypy():
    needs("mypy")
    done = run("mypy", "--config-file", "mypy.ini", "--cache-dir", str(CACHE), "wrong.py",
               *PROGRAMS)
    found = re.findall(r"^(.+?):(\d+): error: (.*)", done.stdout, re.MULTILINE)
    errors = [(file, int(line), message) for file, line, message in found]
    assert mistakes(errors) == WRONG, done.stdout + done.stderr


def examples():
    """A program of the examples in the docstrings of the package, and of Tensor."""
    lines = ["import math", "import numpy as np", "import dlpack_rs"]
    for owner in (dlpack_rs, dlpack_rs.Tensor):
        for name, found in vars(owner).items():
            parsed = doctest.DocTestParser().get_examples(getattr(found, "__doc__", None) or "")
            if callable(found) and parsed and (name[0] != "_" or name[:2] == "__"):
                lines += [f"def example_{owner.__name__}_{name}() -> None:".replace(".", "_")]
                lines += [f"    {line}" for example in parsed
                          for line in example.source.splitlines()]
    return "\n".join(lines) + "\n"


def test_examples_of_the_docstrings_are_typed(tmp_path):
    needs("mypy")
    (tmp_path / "examples.py").write_text(examples())
    done = run("mypy", "--config-file", "mypy.ini", "--cache-dir", str(CACHE),
               str(tmp_path / "examples.py"))
    assert done.returncode == 0 and "def example_" in examples(), done.stdout + done.stderr


def test_pyright():
    needs("pyright")
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, "wrong.py",
               *PROGRAMS)
    if not done.stdout.startswith("{"):
        pytest.skip(f"not run: pyright cannot start: {(done.stdout + done.stderr)[-200:]}")
    errors = [(Path(found["file"]).name, found["range"]["start"]["line"] + 1, found["message"])
              for found in json.loads(done.stdout)["generalDiagnostics"]
              if found["severity"] == "error"]
    assert mistakes(errors) == WRONG, errors


def test_stubtest():
    needs("mypy")
    done = run("mypy.stubtest", "dlpack_rs", "--mypy-config-file", "stubtest.ini",
               "--allowlist", "differs.txt", "--ignore-unused-allowlist")
    assert done.returncode == 0, done.stdout + done.stderr
