"""Tensors as bytes: exports, read as a C consumer reads them, and producers made by hand."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import struct
import sys
import threading
from math import prod

from . import _abi as abi
from ._abi import (CPU, IS_COPIED, LEGACY, MAX_VERSION, PADDED, READ_ONLY, VERSIONED,  # noqa: F401
                   capsule_name, name_address)
from ._model import Misnamed, Noted, Skipped, Unfreed, must

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEYWORDS = {"stream", "max_version", "dl_device", "copy"}  # of __dlpack__
FLOAT32 = (2, 32, 1)
# Formats of the struct module for the dtypes that every array library has, by code and bits.
FORMATS = {(0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q",
           (1, 8): "B", (1, 16): "H", (1, 32): "I", (1, 64): "Q",
           (2, 16): "e", (2, 32): "f", (2, 64): "d", (5, 64): "ff", (5, 128): "dd", (6, 8): "?"}
NAMES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
         (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
         (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
         (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool"}
# Others that libraries have, whose elements are known by their bytes.
OTHERS = {(4, 16): "bfloat16", (8, 8): "float8_e4m3", (10, 8): "float8_e4m3fn",
          (12, 8): "float8_e5m2", (14, 8): "float8_e8m0fnu"}


def telling(code, bits):
    """Numbers that tell a dtype from those of the same size, and from a wider or narrower one."""
    if code == 0:
        return [-1, -1 << (bits - 1), (1 << (bits - 1)) - 1]
    if code == 1:
        return [(1 << bits) - 1, (1 << (bits - 1)) + 1, 1]
    if code == 2:
        return [0.5, {16: -65504.0, 32: -(2.0 ** 127), 64: -1e300}[bits], math.nan]
    if code == 5:
        return [1 + 2j, -0.5j, {64: 2.0 ** 127 + 0j, 128: 1e300 - 1e-300j}[bits]]
    return [True, False, True] if code == 6 else [0x3c, 0xc1, 0x7e]


def same(found, expected):
    """Whether numbers are equal, NaN is NaN, and what should be bool is not int."""
    found, expected = list(found), list(expected)
    return len(found) == len(expected) and all(
        (a == b or (a != a and b != b)) and not (type(a) is int and type(b) is bool)
        for a, b in zip(found, expected))


def pack(values, dtype):
    form = FORMATS.get(dtype[:2], "B" if dtype[1] <= 8 else "H")
    return b"".join(struct.pack("=" + form, *(
        (value.real, value.imag) if len(form) == 2 else (value,))) for value in values)


def compact(shape):
    """Strides in elements, row-major."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, strides[0] * max(following, 1) if strides else 1)
        following = extent
    return tuple(strides)


def read(address, shape, strides, size):
    """Elements in row-major order."""
    if 0 in shape:
        return b""
    if not shape:
        return ctypes.string_at(address, size)
    if shape[0] > 1 and strides[0] == 0:
        return read(address, shape[1:], strides[1:], size) * shape[0]
    if tuple(strides) == compact(shape):
        return ctypes.string_at(address, prod(shape) * size)
    return b"".join(read(address + i * strides[0] * size, shape[1:], strides[1:], size)
                    for i in range(shape[0]))


def aligned(buffer):
    base = ctypes.addressof(buffer)
    return base + -base % 256


def room(size):
    """Zeroed memory that begins with an address of 256 bytes somewhere: malloc's, not the small
    blocks of Python, which end with it."""
    return ctypes.create_string_buffer(size + 1024)


# ---- deleters

Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # called with or without the interpreter's lock
# What consumers may use at any time, after the end of Python too: it is never freed.
_KEPT: list = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_KEPT))


def _rand_r():
    """The C library's `rand_r`, as the deleter of tensors made by hand: native code that needs no
    interpreter. It changes the first word of the struct, and how tells how often it ran."""
    try:
        function = ctypes.CDLL(None).rand_r
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
    return function


_NATIVE = _rand_r()


def needs_native():
    if _NATIVE is None:
        raise Skipped("the C library has no rand_r to be a deleter without Python")


class Lent:
    """A struct that a consumer has, with a deleter that counts, and its capsule."""

    def __init__(self, template, keep=()):
        kind = type(template)
        self.memory, self.keep, self.calls, self.capsule = room(ctypes.sizeof(kind)), keep, 0, None
        self.struct = kind.from_address(aligned(self.memory))
        ctypes.memmove(ctypes.addressof(self.struct), ctypes.addressof(template),
                       ctypes.sizeof(kind))
        if template.deleter:
            if _NATIVE is not None:
                self.struct.deleter = ctypes.cast(_NATIVE, ctypes.c_void_p)
            else:
                self._deleter = Deleter(self._count)
                self.struct.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)
        self.before = bytes(self.struct)
        self.address = ctypes.addressof(self.struct)

    def _count(self, _pointer):
        self.calls += 1

    def called(self):
        """How often the deleter was called."""
        if _NATIVE is None:
            return self.calls
        now, word = bytes(self.struct)[:4], ctypes.create_string_buffer(self.before[:4], 4)
        for count in range(9):
            if word.raw == now:
                return count
            _NATIVE(ctypes.addressof(word))
        return 0  # the consumer wrote to it, which C49 judges

    def unused(self):
        """Whether the capsule, if it goes, would call the deleter."""
        return self.capsule is not None and abi.peek(self.capsule) is not None

    def unchanged(self):
        skipped = 4 if self.called() else 0
        return bytes(self.struct)[skipped:] == self.before[skipped:]

    def new_capsule(self, name):
        """Without a destructor, which would be Python code: `unused` tells what it would do."""
        self.capsule = abi.new_capsule(self.address, name)
        return self.capsule


class Tensor:
    """Values in host memory, for an adapter to make a tensor of: `numpy()`, `tolist()`, or a
    `from_dlpack`, which shares it. As a producer it keeps every rule."""

    _lent: list = []
    _lock = threading.Lock()

    def __init__(self, values=range(12), shape=(3, 4), strides="compact", dtype=FLOAT32,
                 readonly=False):
        self.shape, self.code = tuple(shape), tuple(dtype)
        self.strides = compact(shape) if strides == "compact" else tuple(strides)
        self.readonly = readonly
        content = pack(values, dtype)
        self._memory = room(len(content))
        self._start = aligned(self._memory)
        ctypes.memmove(self._start, content, len(content))

    def _view(self, start, shape, strides, readonly=None):
        view = Tensor.__new__(type(self))
        view.__dict__.update(self.__dict__, shape=tuple(shape), strides=tuple(strides),
                             _start=start, readonly=self.readonly if readonly is None else readonly)
        return view

    @property
    def itemsize(self):
        return self.code[1] * self.code[2] // 8

    @property
    def dtype(self):
        """As NumPy names it."""
        return {**NAMES, **OTHERS}.get(self.code[:2], f"{self.code}")

    def bytes(self):
        """The elements, in row-major order."""
        return read(self._start, self.shape, self.strides, self.itemsize)

    def tolist(self) -> list[Any]:
        """The elements, in row-major order, in one list."""
        return decode(self.bytes(), self.code)

    def numpy(self) -> Any:
        """A NumPy array that shares the memory."""
        import numpy

        array = numpy.ndarray(self.shape, numpy.dtype(self.dtype), self._memory,
                              self._start - ctypes.addressof(self._memory),
                              [stride * self.itemsize for stride in self.strides])
        array.flags.writeable = not self.readonly
        return array

    def copy(self) -> Tensor:
        copied = self._view(0, self.shape, compact(self.shape), False)
        content = self.bytes()
        copied._memory = room(len(content))
        copied._start = aligned(copied._memory)
        ctypes.memmove(copied._start, content, len(content))
        return copied

    def read_only(self) -> Tensor:
        return self._view(self._start, self.shape, self.strides, True)

    @property
    def T(self):
        return self._view(self._start, self.shape[::-1], self.strides[::-1])

    def __getitem__(self, slices):
        slices = slices if isinstance(slices, tuple) else (slices,)
        start, shape, strides = self._start, [], []
        for axis, extent in enumerate(self.shape):
            part = range(extent)[slices[axis] if axis < len(slices) else slice(None)]
            start += part.start * self.strides[axis] * self.itemsize
            shape.append(len(part))
            strides.append(part.step * self.strides[axis])
        return self._view(start, shape, strides)

    def __dlpack_device__(self):
        return CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.lend(stream, max_version, dl_device, copy).capsule

    def lend(self, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise ValueError(f"stream is {stream!r}: host memory has none")
        if dl_device is not None and tuple(dl_device) != CPU:
            raise BufferError(f"no copies to the device {dl_device!r}")
        versioned = max_version is not None and max_version[0] >= 1
        if not versioned and self.readonly and not copy:
            raise BufferError("read-only: request a versioned tensor")
        one = self.copy() if copy else self
        count = len(self.shape)
        extents = (ctypes.c_int64 * count)(*one.shape), (ctypes.c_int64 * count)(*one.strides)
        tensor = abi.DLTensor(
            one._start if prod(one.shape) else None, abi.DLDevice(*CPU), count,
            abi.DLDataType(*one.code),
            *(ctypes.cast(part, ctypes.POINTER(ctypes.c_int64)) if count else None
              for part in extents), 0)
        flags = READ_ONLY * one.readonly | IS_COPIED * bool(copy)
        template = abi.DLManagedTensorVersioned(
            abi.DLPackVersion(*MAX_VERSION), 1, 1, flags, tensor) if versioned else \
            abi.DLManagedTensor(tensor, 1, 1)
        lent = Lent(template, (one._memory, *extents))
        lent.new_capsule(VERSIONED if versioned else LEGACY)
        self.sweep(lent)
        return lent

    @classmethod
    def sweep(cls, *lent):
        """Releases what consumers freed, and what nobody took."""
        with cls._lock:
            cls._lent[:] = [*(other for other in cls._lent if not (
                other.called() or (other.unused() and sys.getrefcount(other.capsule) <= 2))), *lent]


_KEPT.append(Tensor._lent)


def decode(content, dtype):
    """Numbers, those of all lanes; the bytes of each where the dtype is none of FORMATS."""
    form, size = FORMATS.get(tuple(dtype[:2])), dtype[1] // 8
    if form is None:
        return [content[at:at + size] for at in range(0, len(content), size)]
    found = struct.iter_unpack("=" + form, content)
    return [complex(*value) if len(value) == 2 else value[0] for value in found]


class Export:
    """A tensor that a library exported: the capsule's struct, read in place."""

    def __init__(self, capsule, source=None):
        """Keeps the source until it is consumed: lifetimes are a matter of some checks only."""
        found = abi.peek(capsule)
        must(found is not None, f"{capsule!r} is no unused DLPack capsule")
        self.capsule, (self.pointer, self.versioned) = capsule, found
        self.source = source
        self._read(abi.DLManagedTensorVersioned if self.versioned else abi.DLManagedTensor)

    @classmethod
    def at(cls, pointer):
        """A versioned struct that came without a capsule."""
        self = cls.__new__(cls)
        self.capsule, self.pointer, self.versioned, self.source = None, pointer, True, None
        self._read(abi.DLManagedTensorVersioned)
        return self

    def _read(self, kind):
        self.struct = kind.from_address(self.pointer)
        # The other struct begins with a version where this one has a pointer.
        begin = abi.DLPackVersion.from_address(self.pointer)
        if self.versioned and begin.major > 1000:
            raise Misnamed("named dltensor_versioned, it has the struct of dltensor")
        tensor = self.struct.dl_tensor
        if not self.versioned and begin.major == 1 and begin.minor < 1000 and not (
                0 <= tensor.ndim <= 64 and 0 < tensor.device.device_type < 64):
            raise Misnamed("named dltensor, it has the struct of dltensor_versioned")
        self.tensor = tensor = self.struct.dl_tensor
        self.flags = self.struct.flags if self.versioned else 0
        self.ndim = tensor.ndim
        must(0 <= self.ndim <= 64, f"ndim is {self.ndim}")
        must(self.ndim == 0 or bool(tensor.shape), "shape is NULL")

    @property
    def shape(self):
        return tuple(self.tensor.shape[:self.ndim]) if self.ndim else ()

    @property
    def strides(self):
        """The effective strides: NULL is row-major."""
        if self.ndim and self.tensor.strides:
            return tuple(self.tensor.strides[:self.ndim])
        return compact(self.shape)

    @property
    def dtype(self):
        return self.tensor.dtype.code, self.tensor.dtype.bits, self.tensor.dtype.lanes

    @property
    def version(self):
        return self.struct.version.major, self.struct.version.minor

    @property
    def device(self):
        return self.tensor.device.device_type, self.tensor.device.device_id

    @property
    def address(self):
        return ((self.tensor.data or 0) + self.tensor.byte_offset) % (1 << 64)

    def bytes(self):
        """All elements, in row-major order."""
        _, bits, lanes = self.dtype
        if bits % 8 or not bits or not lanes:
            raise Skipped(f"values of dtype {self.dtype} are not read")
        must(all(extent >= 0 for extent in self.shape) and prod(self.shape) <= 1 << 20,
             f"shape is {self.shape}")
        must(self.tensor.data or 0 in self.shape, "data is NULL")
        return read(self.address, self.shape, self.strides, bits * lanes // 8)

    def values(self):
        return decode(self.bytes(), self.dtype)

    def consume(self):
        """As a consumer does: the capsule is renamed, and its tensor is ours to free."""
        abi.rename(self.capsule, b"used_" + (VERSIONED if self.versioned else LEGACY))
        self.capsule = self.source = None
        return self

    def free(self, call=ctypes.PYFUNCTYPE(None, ctypes.c_void_p)):
        """With the interpreter's lock, by default."""
        if self.struct.deleter:
            call(self.struct.deleter)(self.pointer)

    def free_unlocked(self):
        self.free(Deleter)


def knows(producer, keyword):
    try:
        producer.__dlpack__(**{keyword: None})
    except TypeError:
        return False
    except Exception:
        pass
    return True


def export(producer, **keywords):
    """An export by `__dlpack__` with these keywords. One that is not known is one violation, which
    the check of that keyword finds, and not one of each check that needs it."""
    keywords.setdefault("max_version", MAX_VERSION)
    try:
        return Export(producer.__dlpack__(**keywords), producer)
    except TypeError:
        unknown = [keyword for keyword in keywords if not knows(producer, keyword)]
        if unknown:
            raise Skipped(f"{unknown[0]} is not a keyword of __dlpack__") from None
        raise


def newest(producer):
    """An export by the newest protocol that the producer knows."""
    return Export(abi.request(producer), producer)


class Handmade:
    """A producer with any struct that a check needs; it counts calls of its deleter.

    As a correct producer does, it gives a versioned tensor to those who request one, else a
    legacy one, copies where it is asked to, and rejects other devices and unknown keywords. Flags
    that only a versioned tensor has make `needs_versioned` true. `keywords` are those it knows.
    """

    def __init__(self, values=range(12), shape=(3, 4), strides="compact", dtype=FLOAT32,
                 device=CPU, flags=0, version=MAX_VERSION, legacy=False, byte_offset=0,
                 shift=0, data="own", ndim=None, deleter=True, context=1, name=None, answer=None,
                 keywords=KEYWORDS, origin=0, no_shape=False):
        content = pack(values, dtype)
        self._size = len(content) + byte_offset
        self._memory = room(self._size + shift)
        self.start = aligned(self._memory) + shift  # of the memory
        ctypes.memmove(self.start + byte_offset, content, len(content))
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        if strides == "compact":
            strides = compact(shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.asked, self.asked_device, self.lent = [], 0, []
        self.legacy_only, self.name, self.answer, self.keywords = legacy, name, answer, keywords
        self.needs_versioned = bool(flags) or version != MAX_VERSION
        self.gave_versioned, self.refused = None, False
        self.tensor = abi.DLTensor(
            self.start + origin if data == "own" else data, abi.DLDevice(*device),
            len(shape) if ndim is None else ndim, abi.DLDataType(*dtype),
            ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
            if shape and not no_shape else None,
            ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64)) if strides else None,
            byte_offset)
        self.legacy = abi.DLManagedTensor(self.tensor, context, int(deleter))
        self.versioned = abi.DLManagedTensorVersioned(
            abi.DLPackVersion(*version), context, int(deleter), flags, self.tensor)
        self._extents = bytes(self._shape) + bytes(self._strides or b"")
        _KEPT.append(self)

    @property
    def deleted(self):
        """How often the deleter of the last export ran, by its capsule's end too."""
        return self._freed(self.lent[-1]) if self.lent else 0

    @staticmethod
    def _freed(one):
        return one.called() + (one.released and one.unused())

    def wrongly_freed(self):
        """How often a deleter ran, where that was not once; else None."""
        return next((freed for freed in map(self._freed, self.lent) if freed != 1), None)

    @property
    def capsule(self):
        return self.lent[-1].capsule if self.lent else None

    @capsule.setter
    def capsule(self, none):
        """The consumer is done with the capsules: those that it left unused call the deleter."""
        for one in self.lent:
            one.released = True

    @property
    def final_name(self):
        return capsule_name(self.capsule)

    @property
    def unchanged(self):
        return bytes(self._shape) + bytes(self._strides or b"") == self._extents and all(
            one.unchanged() for one in self.lent)

    def lend(self, versioned=True, copy=False):
        self.gave_versioned = versioned
        one = Lent(self.versioned if versioned else self.legacy)
        if copy:  # of all of the memory: the layout stays
            memory = room(len(self._memory))
            start = aligned(memory) + self.start - aligned(self._memory)
            ctypes.memmove(start, self.start, self._size)
            one.struct.dl_tensor.data += start - self.start
            if versioned:
                one.struct.flags = one.struct.flags & ~READ_ONLY | IS_COPIED
            one.keep, one.before = memory, bytes(one.struct)
        one.released = False
        self.lent.append(one)
        return one

    def __dlpack_device__(self):
        self.asked_device += 1
        return self.tensor.device.device_type, self.tensor.device.device_id

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        unknown = set(keywords) - self.keywords
        if unknown:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(unknown)!r}")
        if self.answer is not None:
            return self.answer()
        version, device = keywords.get("max_version"), keywords.get("dl_device")
        if device is not None and tuple(device) != self.__dlpack_device__():
            raise BufferError(f"no copies to the device {device!r}")
        versioned = not self.legacy_only and version is not None and version[0] >= 1
        if self.needs_versioned and not versioned:
            self.gave_versioned = False
            raise BufferError("this tensor is exported with max_version of at least (1, 0) only")
        copy = keywords.get("copy") is True and self.tensor.data is not None
        return self.lend(versioned, copy).new_capsule(
            self.name or (VERSIONED if versioned else LEGACY))


def _without_frames(error):
    """An exception whose tracebacks, and those of its causes, keep no object alive."""
    chain = [error]
    while chain:
        one = chain.pop()
        if one is not None and one.__traceback__ is not None:
            one.__traceback__ = None
            chain += [one.__context__, one.__cause__]
    return error


def take(function, producer):
    """`(result, exception)` of a from_dlpack; the capsule is released afterwards."""
    result = failure = None
    try:
        result = function(producer)
    except Exception as error:
        failure = _without_frames(error)
    producer.refused = failure is not None
    producer.capsule = None
    if producer.needs_versioned and producer.asked and producer.gave_versioned is False:
        raise Skipped("requests no versioned tensor")
    gc.collect()
    return result, failure


def said(error):
    return f"{type(error).__name__}: {str(error)[:100]}"


def freed_once(library, *producers):
    """The deleter of each ran once; never if the tensor was not requested."""
    gc.collect()
    for _ in range(50):
        if any(producer.wrongly_freed() == 0 for producer in producers):
            library.settle()
    for producer in producers:
        wrong = producer.wrongly_freed()
        if wrong is not None:
            raise Unfreed(f"the deleter ran {wrong} times", producer.refused)


def took(library, producer, function=None):
    """The result for a tensor that may be rejected, and is then freed once."""
    result, failure = take(function or library.take, producer)
    if failure is not None:
        freed_once(library, producer)
        raise Noted(f"refused: {said(failure)}")
    return result


def taken(library, producer):
    """The result for a tensor that must not be rejected."""
    result, failure = take(library.take, producer)
    must(failure is None, f"refused: {said(failure)}" if failure else "")
    must(result is not None, "it returns None")
    return result


def takes(library):
    """Why a compact tensor is refused; "" where it is taken."""
    failure = take(library.take, Handmade())[1]
    return f"C01 judges it: refused: {said(failure)}" if failure else ""


def exports(library):
    """Why a compact tensor is not exported; "" where it is."""
    cause = "P01"
    try:
        x = library.make(Tensor(range(12), (3, 4)))
        cause = "P41"
        newest(x)
    except Exception as error:
        return f"{cause} judges it: {said(error)}"
    return ""


def right_or_refused(library, producer, expected):
    """The values are right or the tensor is rejected, and it is freed once in both cases."""
    result = took(library, producer)
    found, expected = list(library.values(result)), list(expected)
    must(same(found, expected), f"the values are {found[:6]}, not {expected[:6]}")
    found = result = None
    freed_once(library, producer)


def refused(library, producer):
    """An exception, and the tensor is freed once."""
    must(take(library.take, producer)[1] is not None, "accepted")
    freed_once(library, producer)


def resident():
    """Bytes of resident memory, without what malloc keeps of what was freed: aligned blocks that
    do not fit the next request can be all of it."""
    if hasattr(ctypes.pythonapi, "malloc_trim"):
        ctypes.pythonapi.malloc_trim(ctypes.c_size_t(0))
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def growth(action, rounds=200):
    """How many megabytes a repeated action leaks."""
    if not sys.platform.startswith("linux"):
        raise Skipped("resident memory is read on Linux only")
    for _ in range(5):
        action()
    gc.collect()
    before = resident()
    for _ in range(rounds):
        action()
    gc.collect()
    return (resident() - before) / 1e6


def threads(count, action):
    """Runs an action on threads; raises an exception of any of them."""
    errors = []

    def run():
        try:
            action()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run) for _ in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
