"""The Python module that the library makes of itself, through one call of ctypes."""

import ctypes
import os
from pathlib import Path

LIBRARY = os.environ.get("DLPACK_RS_LIBRARY") or str(
    Path(__file__).resolve().parents[2] / "target" / "lib" / "libdlpack_rs.so")


def load(path=LIBRARY):
    """The module of this interpreter."""
    make = ctypes.PyDLL(path).dlrs_py_module
    make.argtypes = [ctypes.POINTER(ctypes.py_object), ctypes.c_void_p]
    module = ctypes.py_object()
    status = make(ctypes.byref(module), None)
    if status:
        raise ImportError(f"dlrs_py_module: status {status}")
    found = module.value
    ctypes.pythonapi.Py_DecRef(module)  # what was given to us; `found` has a reference of its own
    return found
