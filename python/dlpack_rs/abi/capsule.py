"""DLPack's Python capsules, read without being used up."""

from ctypes import PYFUNCTYPE, c_char_p, c_int, c_void_p, cast, py_object, pythonapi

from ._declarations import (DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, POINTER, DLManagedTensor,
                            DLManagedTensorVersioned)

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
MAX_VERSION = (DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)

# PYFUNCTYPE: the interpreter's lock stays held, and errors become exceptions.
is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))


def request(obj):
    """Asks any object for a capsule, newest protocol first."""
    try:
        return obj.__dlpack__(max_version=MAX_VERSION)
    except TypeError:  # a producer from before DLPack 1.0
        return obj.__dlpack__()


def peek(capsule):
    """`(address, versioned)` of an unused capsule, which stays as it is; else None."""
    for name in (VERSIONED, LEGACY):
        if is_valid(capsule, name):
            return get_pointer(capsule, name), name is VERSIONED
    return None


def managed(capsule):
    """The struct in an unused capsule, as long as the capsule lives; else None.

    A DLManagedTensorVersioned or a DLManagedTensor.
    """
    found = peek(capsule)
    if found is None:
        return None
    kind = DLManagedTensorVersioned if found[1] else DLManagedTensor
    return cast(found[0], POINTER(kind)).contents
