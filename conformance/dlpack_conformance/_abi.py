"""DLPack's structs and capsules, by ctypes alone."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_void_p, py_object

try:
    from ctypes import pythonapi
    pythonapi.PyCapsule_New
except (ImportError, AttributeError):
    raise ImportError("dlpack_conformance makes capsules through ctypes.pythonapi, which this "
                      "Python lacks: it needs CPython 3.9 or newer") from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
MAX_VERSION = (1, 3)
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4
CPU = (1, 0)


class DLPackVersion(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32),
                ("dtype", DLDataType), ("shape", POINTER(ctypes.c_int64)),
                ("strides", POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("version", DLPackVersion), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", ctypes.c_uint64), ("dl_tensor", DLTensor)]


class DLPackExchangeAPIHeader(ctypes.Structure):
    pass


DLPackExchangeAPIHeader._fields_ = [("version", DLPackVersion),
                                    ("prev_api", POINTER(DLPackExchangeAPIHeader))]


class DLPackExchangeAPI(ctypes.Structure):
    _fields_ = [("header", DLPackExchangeAPIHeader)] + [(name, c_void_p) for name in (
        "managed_tensor_allocator", "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync", "dltensor_from_py_object_no_sync",
        "current_work_stream")]


# PYFUNCTYPE: the interpreter's lock stays held, and errors become exceptions.
is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
name_address = PYFUNCTYPE(c_void_p, py_object)(("PyCapsule_GetName", pythonapi))
_new = PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(("PyCapsule_New", pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_void_p)(("PyCapsule_SetName", pythonapi))
_names: dict[bytes, Any] = {}


def _static(name: bytes) -> int:
    """The address of a capsule's name, which lives as long as the process."""
    return ctypes.addressof(_names.setdefault(name, ctypes.create_string_buffer(name)))


def new_capsule(pointer: int, name: bytes) -> Any:
    """A capsule without a destructor."""
    return _new(pointer, _static(name), None)


def rename(capsule: Any, name: bytes) -> None:
    _set_name(capsule, _static(name))


def capsule_name(capsule: Any) -> bytes:
    return ctypes.string_at(name_address(capsule))


def peek(capsule: object) -> tuple[int, bool] | None:
    """`(address, versioned)` of an unused capsule, which is not modified; else None."""
    for name in (VERSIONED, LEGACY):
        if is_valid(capsule, name):
            return get_pointer(capsule, name), name is VERSIONED
    return None


def request(obj: Any) -> Any:
    """A capsule from any object, by the newest protocol that it knows."""
    try:
        return obj.__dlpack__(max_version=MAX_VERSION)
    except TypeError:  # a producer from before DLPack 1.0
        return obj.__dlpack__()
