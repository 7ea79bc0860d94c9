from ._inspect import inspect
