"""DLPack's Python capsules, read without consuming them."""

from __future__ import annotations

from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_void_p, cast, py_object, pythonapi

from ._declarations import (DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLManagedTensor,
                            DLManagedTensorVersioned)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
MAX_VERSION = (DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)

# PYFUNCTYPE: the interpreter's lock stays held, and errors become exceptions.
is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))


def request(obj: Any) -> Any:
    """Requests a capsule from any object, newest protocol first."""
    try:
        return obj.__dlpack__(max_version=MAX_VERSION)
    except TypeError:  # a producer from before DLPack 1.0
        return obj.__dlpack__()


def peek(capsule: object) -> tuple[int, bool] | None:
    """`(address, versioned)` of an unused capsule, which is not modified; else None."""
    for name in (VERSIONED, LEGACY):
        if is_valid(capsule, name):
            return get_pointer(capsule, name), name is VERSIONED
    return None


def managed(capsule: object) -> DLManagedTensorVersioned | DLManagedTensor | None:
    """The struct in an unused capsule, valid as long as the capsule; else None.

    A DLManagedTensorVersioned or a DLManagedTensor.
    """
    found = peek(capsule)
    if found is None:
        return None
    if found[1]:
        return cast(found[0], POINTER(DLManagedTensorVersioned)).contents
    return cast(found[0], POINTER(DLManagedTensor)).contents
