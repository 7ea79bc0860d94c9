"""The library's extension module, loaded without the package, as often as needed."""

import os
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path

LIBRARY = os.environ.get("DLPACK_RS_LIBRARY") or str(
    Path(__file__).resolve().parents[2] / "target" / "lib" / "libdlpack_rs.so")
_loaded = {}


def fresh(path=LIBRARY):
    """A module that is not in use yet."""
    loader = ExtensionFileLoader("_dlpack_rs", path)
    module = loader.create_module(ModuleSpec(loader.name, loader, origin=path))
    loader.exec_module(module)
    return module


def load(path=LIBRARY):
    """The module that the tests share."""
    if path not in _loaded:
        _loaded[path] = fresh(path)
    return _loaded[path]


def table(module):
    """The exchange API of the type of a module."""
    import ctypes

    from dlpack_rs import abi

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return abi.DLPackExchangeAPI.from_address(
        pointer(module.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))
