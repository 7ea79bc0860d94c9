"""DLPack's Python capsules, for bindings that know only the C library.

A capsule carries the address of a managed tensor under one of two names. Whoever takes the tensor
renames the capsule to `used_...`; a capsule that nobody took still owns its tensor. Everything
here deals in plain addresses, so that ctypes and cffi can share it.

Why no destructor written in Python frees an unused capsule: CPython may destroy a capsule while
an exception is on its way, typically because the consumer has just refused the tensor. A ctypes or
cffi callback that runs at that moment loses the exception and crashes the interpreter. C can put
the exception aside; Python cannot. So every capsule handed out is kept here until nobody else has
it, and looked at later, from ordinary Python code: see `sweep`.
"""

import sys
import threading
from contextlib import contextmanager
from ctypes import (POINTER, PYFUNCTYPE, addressof, byref, c_char_p, c_int, c_void_p, cast, py_object,
                    pythonapi)

MAX_VERSION = (1, 3)


def immortal(obj):
    """Keeps an object for as long as the process lives: C may still use it at the very end."""
    pythonapi.Py_IncRef(py_object(obj))
    return obj


# A capsule does not copy its name.
LEGACY = immortal(b"dltensor")
USED_LEGACY = immortal(b"used_dltensor")
VERSIONED = immortal(b"dltensor_versioned")
USED_VERSIONED = immortal(b"used_dltensor_versioned")
_USED = {LEGACY: USED_LEGACY, VERSIONED: USED_VERSIONED}

# PYFUNCTYPE: the interpreter's lock stays held, and errors become exceptions.
_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
_is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
_get_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
_get_destructor = PYFUNCTYPE(c_void_p, py_object)(("PyCapsule_GetDestructor", pythonapi))

# Some consumers leave the name and clear the destructor instead, so there must be one: this does
# nothing, in C.
_NOTHING = cast(pythonapi.Py_IsInitialized, c_void_p).value


def request(obj):
    """Asks any object for a capsule, newest protocol first."""
    try:
        return obj.__dlpack__(max_version=MAX_VERSION)
    except TypeError:  # a producer from before DLPack 1.0
        return obj.__dlpack__()


def peek(capsule):
    """`(address, versioned)` of an unused capsule, which stays as it is; else None."""
    for name in (VERSIONED, LEGACY):
        if _is_valid(capsule, name):
            return _get_pointer(capsule, name), name is VERSIONED
    return None


@contextmanager
def taking(capsule):
    """Takes the tensor out of a capsule: gives `(slot, versioned)`.

    `slot` is a variable for a `..._take` function of the library, which empties it when it
    succeeds. If the block ends otherwise, the capsule owns its tensor again.
    """
    found = peek(capsule)
    if found is None:
        raise ValueError("not an unused DLPack capsule")
    slot, versioned = c_void_p(found[0]), found[1]
    name = VERSIONED if versioned else LEGACY
    try:
        _set_name(capsule, _USED[name])
        yield slot, versioned
        if slot:
            raise RuntimeError("the tensor was not taken out of its capsule")
    except BaseException:
        if slot:
            _set_name(capsule, name)
        raise


_handed_out = []  # (capsule, name, release): kept alive until nobody else has the capsule
_sweeping = threading.Lock()


def hand_out(address, versioned, release):
    """Makes a capsule that owns a tensor; `release(address)` if nobody takes it."""
    sweep()
    name = VERSIONED if versioned else LEGACY
    capsule = _new(address, name, _NOTHING)
    _handed_out.append((capsule, name, release))
    return capsule


def sweep():
    """Releases the tensors of capsules that were dropped unused. Returns how many.

    Called whenever a tensor is exported or freed; call it to have the memory back at once.
    """
    if not _handed_out or not _sweeping.acquire(blocking=False):
        return 0  # nothing to do, or a tensor was freed in the middle of a sweep
    released = 0
    try:
        for entry in _handed_out[:]:
            # `entry` and getrefcount's own argument: nobody else has the capsule.
            if sys.getrefcount(entry[0]) > 2:
                continue
            _handed_out.remove(entry)
            capsule, name, release = entry
            if _is_valid(capsule, name) and _get_destructor(capsule):
                address = _get_pointer(capsule, name)
                _set_name(capsule, _USED[name])
                release(address)
                released += 1
    finally:
        _sweeping.release()
    return released


def slot_as(slot, type_):
    """The slot of `taking`, as a ctypes pointer to a variable of the given pointer type."""
    return cast(byref(slot), POINTER(type_))


def address_of(slot):
    """Where the slot of `taking` lies, for cffi."""
    return addressof(slot)
