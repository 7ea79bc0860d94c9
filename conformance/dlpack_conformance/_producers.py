"""Checks of producers: what `__dlpack__` and `__dlpack_device__` take, and who frees it."""

import ctypes
import gc
import sys

from . import _abi as abi
from ._abi import IS_COPIED, LEGACY, PADDED, READ_ONLY, capsule_name, name_address
from ._exports import Deleter, Export, export, newest
from ._model import Failed, Noted, Skipped, check, must, said
from ._numbers import VALUES
from ._taking import growth, threads
from ._tensors import Tensor, needs_native



def made(library):
    return library.make(Tensor())


def read_only(library):
    if library.make_read_only is None:
        raise Skipped("no read-only tensors")
    return library.make_read_only(Tensor())


def versioned(found):
    if not found.versioned:
        raise Skipped("P06 judges it: a legacy tensor, which cannot say it")
    return found


def legacy(x):
    """The capsule of a legacy export, which a producer may reject."""
    try:
        return x.__dlpack__()
    except BufferError as error:
        if not newest(x).versioned:
            raise
        raise Noted(f"versioned tensors only: {said(error)}") from None


def or_refused(get):
    """What may be refused by BufferError."""
    try:
        return get()
    except BufferError as error:
        raise Noted(f"refused: {said(error)}") from None


def device_of(x):
    """What `__dlpack_device__` answers, as integers."""
    try:
        kind, number = map(int, x.__dlpack_device__())
    except Exception as error:
        raise Skipped(f"P02 judges it: {said(error)}") from None
    return kind, number


def known(x, **keyword):
    """Whether a keyword is taken, where max_version may not be one."""
    try:
        return export(x, **keyword)
    except Skipped:  # which of the keywords is it?
        return x.__dlpack__(**keyword)


def plain(library):
    return newest(made(library))


def says(name, severity, text, rule, get, holds, otherwise):
    """A check of what `get` gets from the library: what holds of it, and what is said where that
    does not."""
    def judge(library):
        found = get(library)
        must(holds(found), otherwise.format(found))

    check(name, severity, text, rule, judge)


def raises(errors, action, text="accepted"):
    try:
        action()
    except errors:
        return
    raise Failed(text)


@check("P01", "MUST", "exports", "the type has __dlpack__ and __dlpack_device__")
def _(library):
    try:
        kind = type(made(library))
    except Exception as error:
        raise Failed(f"make raises {said(error)}") from None
    for name in ("__dlpack__", "__dlpack_device__"):
        must(hasattr(kind, name), f"{kind.__name__} has no {name}")


@check("P02", "MUST", "device", "__dlpack_device__() is a tuple of two integers")
def _(library):
    x = made(library)
    if not hasattr(x, "__dlpack_device__"):
        raise Skipped("P01 judges it: there is none")
    pair = x.__dlpack_device__()
    must(type(pair) is tuple and len(pair) == 2 and all(isinstance(i, int) for i in pair),
         repr(pair))


@check("P03", "MUST", "device", "__dlpack_device__() is the device of the exported struct")
def _(library):
    x = made(library)
    found = newest(x)
    must(device_of(x) == found.device, f"the struct says {found.device}")


@check("P04", "MUST", "name", "without max_version, the capsule is named dltensor, or BufferError")
def _(library):
    capsule = legacy(made(library))
    must(type(capsule).__name__ == "PyCapsule", f"it is {capsule!r}")
    name = capsule_name(capsule)
    must(name == LEGACY, f"it is named {name.decode(errors='replace')}")


@check("P05", "MUST", "max_version", "max_version is a keyword of __dlpack__")
def _(library):
    x = made(library)
    x.__dlpack__(max_version=abi.MAX_VERSION)
    try:
        x.__dlpack__(max_version=None)
    except BufferError:  # P04 judges it
        pass


says("P06", "SHOULD", "newer", "max_version=(1, 3) gives a versioned tensor",
     lambda library: export(made(library)), lambda e: e.versioned, "it is a legacy one")
says("P07", "SHOULD", "other-version",
     "max_version=(1, 0) gives major version 1, or a legacy tensor",
     lambda library: export(made(library), max_version=(1, 0)),
     lambda e: not e.versioned or e.struct.version.major == 1, "another major version")
says("P08", "SHOULD", "older-major", "max_version=(0, 8) gives a legacy tensor or BufferError",
     lambda library: or_refused(lambda: export(made(library), max_version=(0, 8))),
     lambda e: not e.versioned, "it is a versioned one, which the consumer cannot read")
check("P09", "SHOULD", "newer", "max_version=(2, 0) gives the newest that the producer has",
      lambda library: export(made(library), max_version=(2, 0)))
says("P10", "MUST", "version", "the version of the struct is one that there is: at least 1.0",
     lambda library: versioned(plain(library)), lambda e: (1, 0) <= e.version < (2, 0),
     "{0.version[0]}.{0.version[1]}")


@check("P11", "MUST", "strides-set",
       "version 1.2 and newer: strides are not NULL where ndim is not 0")
def _(library):
    found = versioned(plain(library))
    if found.version < (1, 2):
        raise Noted("an older version")
    must(bool(found.tensor.strides), "they are NULL")


says("P12", "SHOULD", "flags", "flags has known bits only", plain,
     lambda e: e.flags & ~(READ_ONLY | IS_COPIED | PADDED) == 0, "flags is {.flags:#x}")


@check("P13", "MUST", "is-copied", "a tensor that shares memory with its source is not IS_COPIED")
def _(library):
    x = made(library)
    one, other = newest(x), newest(x)
    if one.address != other.address:
        raise Noted("each export has memory of its own")
    must(not one.flags & IS_COPIED, "shared, and IS_COPIED")


check("P14", "MUST", "copy", "copy is a keyword of __dlpack__",
      lambda library: known(made(library), copy=None))


@check("P19", "MUST", "read-only", "an export of a read-only tensor has READ_ONLY")
def _(library):
    x = read_only(library)
    found = versioned(or_refused(lambda: newest(x)))
    if found.flags & IS_COPIED:
        raise Noted("a copy")
    must(found.flags & READ_ONLY, f"flags is {found.flags}")


check("P20", "SHOULD", "practice", "a read-only tensor is not exported as a legacy one",
      lambda library: raises(Exception, read_only(library).__dlpack__,
                             "exported as if it were writable"))


@check("P21", "MUST", "dl_device", "dl_device that is the tensor's own is taken")
def _(library):
    x = made(library)
    device = device_of(x)
    if device != newest(x).device:
        raise Skipped("P03 judges it: the struct has another device")
    known(x, dl_device=device)


says("P22", "MUST", "dl_device-refused", "dl_device=(2, 0) of host memory: there, or BufferError",
     lambda library: or_refused(lambda: export(made(library), dl_device=(2, 0))),
     lambda e: e.device == (2, 0), "exported on {.device}")
check("P23", "SHOULD", "dl_device-refused", "dl_device of no type: BufferError or ValueError",
      lambda library: raises((BufferError, ValueError),
                             lambda: export(made(library), dl_device=(99, 0))))
check("P24", "MUST", "stream-none", "stream=None is taken",
      lambda library: known(made(library), stream=None))


def stream_refused(library, stream):
    x = made(library)
    raises(Exception, lambda: x.__dlpack__(stream=stream),
           f"accepted stream={stream!r} for host memory")


check("P25", "SHOULD", "stream-type", "a stream that is no number is rejected",
      lambda library: stream_refused(library, "x"))
check("P26", "SHOULD", "stream-none", "a stream for host memory is rejected",
      lambda library: stream_refused(library, 7))


# Consumers that pass a newer keyword retry without it after a TypeError.
check("P27", "SHOULD", "retry", "an unknown keyword raises TypeError",
      lambda library: raises(TypeError, lambda: made(library).__dlpack__(no_such_keyword=1)))


def of_each_kind(x):
    """An export by the newest protocol, and a legacy one, which a producer may reject."""
    yield newest(x)
    try:
        found = Export(x.__dlpack__(), x)
    except Exception:  # P04 judges it
        return
    if not found.versioned:
        yield found


def references(x, action, count):
    """An action leaves no references behind."""
    action()
    before = sys.getrefcount(x)
    for _ in range(count):
        action()
    gc.collect()
    must(sys.getrefcount(x) == before, f"{before} references became {sys.getrefcount(x)}")


@check("P30", "MUST", "destructor", "a capsule that nobody takes gives its reference back")
def _(library):
    x = made(library)
    references(x, lambda: list(of_each_kind(x)) and None, 50)


def grows(library, action):
    """An action with an export of 1 MiB leaves no memory behind."""
    megabytes = growth(lambda: action(library.make(Tensor([0.0], (1 << 18,), strides=(0,)))))
    must(megabytes < 50, f"{megabytes:.0f} MB more")


check("P31", "MUST", "destructor", "200 exports of 1 MiB that nobody takes leave no memory behind",
      lambda library: grows(library, lambda x: list(of_each_kind(x))))
check("P32", "MUST", "deleter", "200 exports of 1 MiB that are taken and freed leave none behind",
      lambda library: grows(library, lambda x: [
          found.consume().free() for found in of_each_kind(x)]))


def right(found):
    """P41 judges whether the values are right, the next three whether they stay so."""
    if found.values() != VALUES:
        raise Skipped("the values are wrong from the start")
    return found


def unchanged(found):
    must(found.values() == VALUES, "the values changed")
    found.free()


@check("P33", "MUST", "destructor-used", "the destructor of a used capsule leaves the tensor alone")
def _(library):
    for found in of_each_kind(made(library)):
        right(found)
        calls = []
        own, counting = found.struct.deleter, Deleter(calls.append)
        found.struct.deleter = ctypes.cast(counting, ctypes.c_void_p)
        found.consume()
        gc.collect()
        found.struct.deleter = own
        must(not calls, "it called the deleter")
        unchanged(found)


@check("P34", "MUST", "owner", "an exported tensor outlives the object that it came from")
def _(library):
    x = made(library)
    found = right(newest(x)).consume()
    del x
    gc.collect()
    other = [library.make(Tensor([7.0] * 12)) for _ in range(500)]
    unchanged(found)
    del other


@check("P35", "MUST", "both-used", "two exports are independent of each other")
def _(library):
    x = made(library)
    one, other = newest(x).consume(), newest(x).consume()
    right(other)
    one.free()
    del x
    gc.collect()
    another = newest(library.make(Tensor(range(6), (2, 3)))).consume()
    unchanged(other)
    another.free()


@check("P36", "MUST", "gil", "the deleter may run on another thread, without the lock")
def _(library):
    for call in (lambda free: free(), lambda free: threads(1, free)):
        for found in list(of_each_kind(made(library))):  # first where no other has the lock
            call(found.consume().free_unlocked)


def with_deleter(library):
    found = plain(library).consume()
    if not found.struct.deleter:
        raise Skipped("there is no deleter")
    needs_native()
    return found


@check("P37", "MUST", "gil", "the deleter may run on a thread that Python never saw")
def _(library):
    for _ in range(5):  # this thread has the lock again at the beginning of the new one, or not
        found = with_deleter(library)
        libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
        entry = ctypes.c_void_p(found.struct.deleter)
        must(libc.pthread_create(ctypes.byref(thread), None, entry,
                                 ctypes.c_void_p(found.pointer)) == 0, "no thread")
        libc.pthread_join(thread, None)


@check("P38", "MUST", "gil", "a deleter that runs as the process ends, after Python: no crash",
       ends=True)
def _(library):
    found = with_deleter(library)
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "__cxa_atexit"):
        raise Skipped("the C library has no __cxa_atexit")
    libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
    libc.__cxa_atexit(found.struct.deleter, found.pointer, None)


check("P39", "MUST", "destructor", "a capsule that goes while an exception is raised keeps it",
      lambda library: raises(ZeroDivisionError, lambda: (abi.request(made(library)), 1 / 0),
                             "the exception is lost"))
says("P40", "MUST", "static", "the names of capsules are static",
     lambda library: (plain(library), plain(library)),
     lambda two: name_address(two[0].capsule) == name_address(two[1].capsule),
     "they are at two addresses")
