"""DLPack's Python capsules, and what Python code must not do when tensors are freed.

A capsule carries the address of a managed tensor under one of two names. The consumer renames the
capsule to `used_...`; a capsule that was not consumed still owns its tensor. Everything
here uses plain addresses, so that ctypes and cffi can share it.

C never calls a function written in Python here, neither as a capsule's destructor nor as a
tensor's callback. Both may run while an exception is pending, as in `f(capsule, 1 / 0)`, or
in a consumer that has just rejected the tensor. C can save the exception; a ctypes or cffi
callback cannot: it loses the exception, and the interpreter crashes. Both may also run on threads
without a Python thread state, or after its end. So pending actions are watched instead,
and run a little later from ordinary Python code: see `watch` and `sweep`.
"""

import atexit
import sys
import threading
import traceback
from contextlib import contextmanager
from ctypes import (POINTER, PYFUNCTYPE, addressof, byref, c_char_p, c_int, c_void_p, cast,
                    py_object, pythonapi)
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # or: pip install dlpack_rs

from dlpack_rs.abi import capsule as _names
from dlpack_rs.abi.capsule import MAX_VERSION, get_pointer, is_valid, peek, request


def immortal(obj):
    """Keeps an object until the process ends: C may still use it at the very end."""
    pythonapi.Py_IncRef(py_object(obj))
    return obj


# A capsule does not copy its name.
LEGACY = immortal(_names.LEGACY)
USED_LEGACY = immortal(b"used_dltensor")
VERSIONED = immortal(_names.VERSIONED)
USED_VERSIONED = immortal(b"used_dltensor_versioned")
_USED = {LEGACY: USED_LEGACY, VERSIONED: USED_VERSIONED}

# PYFUNCTYPE: the GIL stays held, and errors become exceptions.
_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
_get_destructor = PYFUNCTYPE(c_void_p, py_object)(("PyCapsule_GetDestructor", pythonapi))

# Some consumers leave the name and clear the destructor instead, so there must be one: this does
# nothing, in C.
_NOTHING = cast(pythonapi.Py_IsInitialized, c_void_p).value


@contextmanager
def taking(capsule):
    """Takes the tensor out of a capsule: yields `(slot, versioned)`.

    `slot` is a variable for a `..._take` function of the library, which clears it on success.
    If the block ends otherwise, the capsule owns its tensor again.
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


watched = []
_sweeping = threading.Lock()


def watch(item):
    """Calls item.act() once, in a sweep where item.due() is true."""
    watched.append(item)


def unwatch(item):
    watched.remove(item)


def sweep(watched=watched, sweeping=_sweeping):
    """Runs due actions, the newest first. Returns their number.

    Called whenever a tensor is exported or closed; call it to run pending actions now.
    """
    if not watched or not sweeping.acquire(blocking=False):
        return 0  # nothing to do, or a nested call
    done = 0
    try:
        for item in watched[::-1]:
            if item.due():
                watched.remove(item)
                done += 1
                try:
                    item.act()
                except Exception:
                    traceback.print_exc()
    finally:
        sweeping.release()
    return done


@atexit.register
def _leave():
    """The interpreter ends, and memory with it: no action is due any more."""
    watched.clear()


class _HandedOut:
    """A capsule, kept alive until it has no other reference: then an unused tensor is released."""

    def __init__(self, capsule, name, release):
        self.capsule, self.name, self.release = capsule, name, release

    def due(self):
        return sys.getrefcount(self.capsule) <= 2  # ours, and getrefcount's own argument

    def act(self):
        if is_valid(self.capsule, self.name) and _get_destructor(self.capsule):
            address = get_pointer(self.capsule, self.name)
            _set_name(self.capsule, _USED[self.name])
            self.release(address)


def hand_out(address, versioned, release):
    """Creates a capsule that owns a tensor; `release(address)` if it is not consumed."""
    sweep()
    name = VERSIONED if versioned else LEGACY
    capsule = _new(address, name, _NOTHING)
    watch(_HandedOut(capsule, name, release))
    return capsule


def slot_as(slot, type_):
    """The slot of `taking`, as a ctypes pointer to a variable of the given pointer type."""
    return cast(byref(slot), POINTER(type_))


def address_of(slot):
    """The address of the slot of `taking`, for cffi."""
    return addressof(slot)
