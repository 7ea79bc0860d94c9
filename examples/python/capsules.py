"""DLPack's Python capsules, and what Python must not do itself when tensors are freed.

A capsule carries the address of a managed tensor under one of two names. Whoever takes the tensor
renames the capsule to `used_...`; a capsule that nobody took still owns its tensor. Everything
here deals in plain addresses, so that ctypes and cffi can share it.

No function written in Python is ever called by C here, neither as a capsule's destructor nor as a
tensor's callback. Both may run while an exception is on its way: think of `f(capsule, 1 / 0)`, or
of a consumer that has just refused the tensor. C can put the exception aside; a ctypes or cffi
callback cannot: it loses the exception, and the interpreter crashes. Both may also run on threads
that Python never saw, or after its end. So things that will have to be done are watched instead,
and done a little later from ordinary Python code: see `watch` and `sweep`.
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
    """Keeps an object for as long as the process lives: C may still use it at the very end."""
    pythonapi.Py_IncRef(py_object(obj))
    return obj


# A capsule does not copy its name.
LEGACY = immortal(_names.LEGACY)
USED_LEGACY = immortal(b"used_dltensor")
VERSIONED = immortal(_names.VERSIONED)
USED_VERSIONED = immortal(b"used_dltensor_versioned")
_USED = {LEGACY: USED_LEGACY, VERSIONED: USED_VERSIONED}

# PYFUNCTYPE: the interpreter's lock stays held, and errors become exceptions.
_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
_get_destructor = PYFUNCTYPE(c_void_p, py_object)(("PyCapsule_GetDestructor", pythonapi))

# Some consumers leave the name and clear the destructor instead, so there must be one: this does
# nothing, in C.
_NOTHING = cast(pythonapi.Py_IsInitialized, c_void_p).value


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


watched = []
_sweeping = threading.Lock()


def watch(item):
    """Has item.act() called once, by a sweep that finds item.due() true."""
    watched.append(item)


def unwatch(item):
    watched.remove(item)


def sweep(watched=watched, sweeping=_sweeping):
    """Does what is due, the newest first. Returns how much that was.

    Called whenever a tensor is exported or closed; call it where something should happen now.
    """
    if not watched or not sweeping.acquire(blocking=False):
        return 0  # nothing to do, or in the middle of it already
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
    """The interpreter ends, and memory with it: nothing is due any more."""
    watched.clear()


class _HandedOut:
    """A capsule, kept alive until nobody else has it: then its tensor is released if unused."""

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
    """Makes a capsule that owns a tensor; `release(address)` if nobody takes it."""
    sweep()
    name = VERSIONED if versioned else LEGACY
    capsule = _new(address, name, _NOTHING)
    watch(_HandedOut(capsule, name, release))
    return capsule


def slot_as(slot, type_):
    """The slot of `taking`, as a ctypes pointer to a variable of the given pointer type."""
    return cast(byref(slot), POINTER(type_))


def address_of(slot):
    """Where the slot of `taking` lies, for cffi."""
    return addressof(slot)
