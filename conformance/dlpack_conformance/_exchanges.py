"""Checks that need both sides, and those of the C exchange API."""

import ctypes
import gc

from . import _abi as abi
from ._abi import IS_COPIED, PADDED, READ_ONLY
from ._exports import Described, Export, newest
from ._model import Failed, Noted, Skipped, check, must, own, said
from ._numbers import FLOAT32
from ._producers import VALUES, made, read_only, references, says, versioned
from ._taking import Hidden, freed_once, take, taken, threads, took
from ._tensors import Handmade, structs

_FROM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_TO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_BORROW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(abi.DLTensor))
_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                            ctypes.POINTER(ctypes.c_void_p))
_API = b"dlpack_exchange_api"


# ---- re-exports: R


def again(library, producer):
    """The library's own export of a tensor that it imported."""
    result, failure = take(library.take, producer)
    if failure is not None:
        raise Skipped(f"refused: {said(failure)}")
    try:
        return newest(result), result
    except (AttributeError, TypeError, BufferError) as error:
        raise Skipped(f"not exported again: {said(error)}") from None


def sharing(library, producer):
    """The re-export, where it shares the memory."""
    found, _ = again(library, producer)
    if found.address != producer.start:
        raise Skipped("it was copied")
    return found


def keeps(name, severity, text, rule, flag, /, **members):
    """A check that a flag survives a re-export of shared memory."""
    def judge(library):
        found = versioned(sharing(library, Handmade(flags=flag, **members)))
        must(found.flags & flag, f"flags is {found.flags}")

    check(name, severity, text, rule, judge)


keeps("R01", "SHOULD", "practice", "READ_ONLY survives a re-export of shared memory", READ_ONLY)
says("R02", "MUST", "is-copied", "a re-export of shared memory does not say IS_COPIED",
     lambda library: sharing(library, Handmade(flags=IS_COPIED)),
     lambda e: not e.flags & IS_COPIED, "two tensors share memory that one calls its own")


def outlives(library, producer, found, shared):
    """What is exported again keeps the first producer's memory, where that is shared."""
    gc.collect()
    must(not shared or producer.deleted == 0, "freed under the re-export")
    must(found.values() == VALUES, "the values changed")
    found.free()
    freed_once(library, producer)


@check("R03", "MUST", "owner", "a re-export keeps the first producer's memory")
def _(library):
    producer = Handmade()
    found, result = again(library, producer)
    found.consume()
    del result
    outlives(library, producer, found, found.address == producer.start)


@check("R06", "MUST", "owner-object", "a chain of 20 exports and imports frees once, at its end")
def _(library):
    producer = Handmade()
    result = taken(library, producer)
    for _ in range(20):
        result = of_its_own(library, result)
    shared = library.address(result) == producer.start
    must(not shared or producer.deleted == 0, "freed too early")
    must(library.values(result) == VALUES, "the values changed")
    result = None
    freed_once(library, producer)


def of_its_own(library, x):
    try:
        return library.take(Hidden(x))
    except Exception as error:
        raise Skipped(f"does not take its own: {said(error)}") from None


@check("R07", "MUST", "zero-copy", "its own export, taken by another and back, has the same memory")
def _(library):
    """Through a consumer that keeps the tensor: A to B to A."""
    x = made(library)
    found = newest(x).consume()
    if found.dtype != FLOAT32 or found.address % 4:
        raise Skipped("P41 judges it: no float32")
    other = Handmade([], found.shape, strides=found.strides, data=found.address)
    result = took(library, other)
    must(library.values(result) == VALUES, "the values are wrong")
    address = found.address
    del x
    gc.collect()
    must(library.values(result) == VALUES, "the values changed when its own went")
    if library.address(result) != address:
        raise Noted("it was copied")


@check("R09", "MUST", "both-used", "re-exports of one import may be freed in any order")
def _(library):
    producer = Handmade()
    one, result = again(library, producer)
    other = newest(result).consume()
    shared = one.consume().address == producer.start
    one.free()
    del result
    outlives(library, producer, other, shared)


@check("R10", "MUST", "both-used", "8 threads take one tensor of the library and free it")
def _(library):
    x = made(library)
    of_its_own(library, x)
    threads(8, lambda: [library.take(Hidden(x)) is None for _ in range(100)])
    must(newest(x).values() == VALUES, "the values changed")


# Without it, the elements would be packed, two in a byte.
keeps("R13", "MUST", "padded", "IS_SUBBYTE_TYPE_PADDED survives a re-export of shared memory",
      PADDED, values=[1, 2, 3, 4, 5, 6, 7, 8], shape=(8,), dtype=(17, 4, 1))


# ---- the C exchange API: X


class _Table:
    """The functions of a type's exchange API."""

    def __init__(self, x):
        capsule = getattr(type(x), "__dlpack_c_exchange_api__", None)
        if capsule is None:
            raise Skipped("no C exchange API")
        must(abi.is_valid(capsule, _API), f"{capsule!r} is no capsule of that name")
        self.api = abi.DLPackExchangeAPI.from_address(abi.get_pointer(capsule, _API))

    def export(self, x):
        out = ctypes.c_void_p()
        status = _FROM(self.api.managed_tensor_from_py_object_no_sync)(x, ctypes.byref(out))
        must(status == 0 and out.value, f"status {status}")
        return Export.at(out.value)

    def take(self, producer):
        out = ctypes.c_void_p()
        status = _TO(self.api.managed_tensor_to_py_object_no_sync)(
            producer.lend().address, ctypes.byref(out))
        must(status == 0 and out.value, f"status {status}")
        result = ctypes.cast(out.value, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))
        return result


@check("X01", "MUST", "x-type", "major version 1, in a capsule dlpack_exchange_api")
def _(library):
    header, steps = _Table(made(library)).api.header, 0
    must(header.version.major == 1, f"major version {header.version.major}")
    older = header.prev_api
    while older and steps < 10:
        older, steps = older.contents.prev_api, steps + 1
    must(steps < 10, "prev_api does not end")


@check("X02", "MUST", "x-set", "no function but dltensor_from_py_object_no_sync is NULL")
def _(library):
    api = _Table(made(library)).api
    missing = [name for name, _ in api._fields_ if name != "header" and not getattr(api, name)
               and name != "dltensor_from_py_object_no_sync"]
    must(not missing, "NULL: " + ", ".join(missing))


def tensors(library):
    """A tensor of the library, and where it has one, a view that begins at another element."""
    x = made(library)
    yield x
    try:
        with own("the library's own view (inner)"):
            x = library.inner(x)
            newest(x)
    except Skipped:
        return
    yield x


def described(found):
    return found.shape, found.strides, found.dtype, found.device, found.address


@check("X03", "MUST", "x-export", "it exports what __dlpack__ exports")
def _(library):
    for x in tensors(library):
        one, other = _Table(x).export(x), newest(x)
        must(described(one) == described(other) and one.flags == other.flags,
             f"{described(one)}, flags {one.flags}, not {described(other)}, flags {other.flags}")
        must(bool(one.tensor.strides), "strides are NULL")
        one.free()


@check("X04", "MUST", "read-only", "READ_ONLY goes through it")
def _(library):
    x = read_only(library)
    found = _Table(x).export(x)
    must(found.flags & READ_ONLY, f"flags is {found.flags}")
    found.free()


@check("X05", "MUST", "x-import", "it takes a tensor, and frees it once")
def _(library):
    producer = Handmade()
    result = _Table(made(library)).take(producer)
    must(library.values(result) == VALUES, "the values are wrong")
    must(producer.deleted == 0 or library.address(result) != producer.start, "freed too early")
    del result
    freed_once(library, producer)


@check("X06", "MUST", "x-borrow", "what it borrows is what is exported")
def _(library):
    for x in tensors(library):
        borrow = _Table(x).api.dltensor_from_py_object_no_sync
        if not borrow:
            raise Skipped("it does not borrow")
        tensor, found = abi.DLTensor(), newest(x)
        status = _BORROW(borrow)(x, ctypes.byref(tensor))
        must(status == 0, f"status {status}")
        lent = described(Described(tensor))
        must(lent == described(found), f"{lent}, not {described(found)}")
        must(tensor.strides, "strides are NULL")


@check("X07", "MUST", "x-stream", "current_work_stream answers for the CPU")
def _(library):
    stream = ctypes.c_void_p()
    status = _STREAM(_Table(made(library)).api.current_work_stream)(1, 0, ctypes.byref(stream))
    must(status == 0, f"status {status}")


@check("X08", "MUST", "x-error", "an object of another type: -1 and an exception, no crash")
def _(library):
    out = ctypes.c_void_p()
    function = _FROM(_Table(made(library)).api.managed_tensor_from_py_object_no_sync)
    try:
        status = function(object(), ctypes.byref(out))
    except Exception as error:
        raise Noted(said(error)) from None
    raise Failed(f"status {status} without an exception")


@check("X09", "MUST", "x-export", "its export outlives the object, and frees on another thread")
def _(library):
    x = made(library)
    found = _Table(x).export(x)
    del x
    gc.collect()
    must(found.values() == VALUES, "the values changed")
    threads(1, found.free_unlocked)


@check("X10", "MUST", "x-export", "200 exports leave no references behind")
def _(library):
    x = made(library)
    table = _Table(x)
    references(x, lambda: table.export(x).free(), 200)


def allocated(library, device):
    """The status, what is allocated like 3 x 4 float32 on a device, and the errors that it sets."""
    errors = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(
        lambda context, kind, message: errors.append((kind, message)))
    allocate = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
        ctypes.c_void_p)(_Table(made(library)).api.managed_tensor_allocator)
    out, (prototype, *kept) = ctypes.c_void_p(), structs(None, (3, 4), None, FLOAT32, device)
    status = allocate(ctypes.byref(prototype.dl_tensor), ctypes.byref(out), None,
                      ctypes.cast(note, ctypes.c_void_p))
    return status, out.value, errors


@check("X11", "MUST", "x-allocate", "managed_tensor_allocator makes what the prototype describes")
def _(library):
    status, out, errors = allocated(library, (1, 0))
    must(status == 0 and out, f"status {status}: {errors}")
    found = Export.at(out)
    must(found.shape == (3, 4) and found.dtype == (2, 32, 1) and found.device == (1, 0),
         f"{found.shape} of {found.dtype} on {found.device}")
    must(found.strides == (4, 1) and found.address, "it is not compact, or has no memory")
    found.free()


@check("X13", "MUST", "x-set-error", "managed_tensor_allocator sets an error exactly if it fails")
def _(library):
    for device in ((1, 0), (99, 0)):
        status, _, errors = allocated(library, device)
        must(len(errors) == (status != 0), f"device {device}: status {status}, errors {errors}")


@check("X12", "SHOULD", "practice", "READ_ONLY of what it takes is on what is exported again")
def _(library):
    producer = Handmade(flags=READ_ONLY)
    found = newest(_Table(made(library)).take(producer))
    if found.address != producer.start:
        raise Skipped("it was copied")
    must(versioned(found).flags & READ_ONLY, f"flags is {found.flags}")
