"""Tensors made by hand, whose deleters count: what a library is given."""

from __future__ import annotations

import ctypes
import sys
import threading
from math import prod

from . import _abi as abi
from ._abi import CPU, IS_COPIED, LEGACY, MAX_VERSION, READ_ONLY, VERSIONED, capsule_name
from ._exports import Deleter
from ._model import Skipped
from ._numbers import FLOAT32, NAMES, OTHERS, compact, decode, pack, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEYWORDS = {"stream", "max_version", "dl_device", "copy"}  # of __dlpack__


def aligned(buffer):
    base = ctypes.addressof(buffer)
    return base + -base % 256


def room(size):
    """Zeroed memory that begins with an address of 256 bytes somewhere: malloc's, not the small
    blocks of Python, which end with it."""
    return ctypes.create_string_buffer(size + 1024)


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


def structs(data, shape, strides, dtype, device=CPU, byte_offset=0, ndim=None, flags=0,
            version=MAX_VERSION, context=1, deleter=True):
    """A versioned struct and a legacy one of the same tensor, and the arrays that they point to."""
    arrays = [(ctypes.c_int64 * len(part or ()))(*part or ()) for part in (shape, strides)]
    tensor = abi.DLTensor(
        data, abi.DLDevice(*device), len(shape) if ndim is None else ndim, abi.DLDataType(*dtype),
        *(ctypes.cast(array, ctypes.POINTER(ctypes.c_int64)) if len(array) else None
          for array in arrays), byte_offset)
    return (abi.DLManagedTensorVersioned(abi.DLPackVersion(*version), context, int(deleter), flags,
                                         tensor),
            abi.DLManagedTensor(tensor, context, int(deleter)), arrays)


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

    def __dlpack_device__(self):
        return CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        lent = self.lend(stream, max_version, dl_device, copy)
        capsule = lent.capsule  # a reference that another thread's sweep sees
        self.sweep(lent)
        return capsule

    def lend(self, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise ValueError(f"stream is {stream!r}: host memory has none")
        if dl_device is not None and tuple(dl_device) != CPU:
            raise BufferError(f"no copies to the device {dl_device!r}")
        versioned = max_version is not None and max_version[0] >= 1
        if not versioned and self.readonly and not copy:
            raise BufferError("read-only: request a versioned tensor")
        one = self.copy() if copy else self
        kinds = structs(one._start if prod(one.shape) else None, one.shape, one.strides, one.code,
                        flags=READ_ONLY * one.readonly | IS_COPIED * bool(copy))
        lent = Lent(kinds[not versioned], (one._memory, kinds))
        lent.new_capsule(VERSIONED if versioned else LEGACY)
        return lent

    @classmethod
    def sweep(cls, *lent):
        """Releases what consumers freed, and what nobody took."""
        with cls._lock:
            cls._lent[:] = [*(other for other in cls._lent if not (
                other.called() or (other.unused() and sys.getrefcount(other.capsule) <= 2))), *lent]


_KEPT.append(Tensor._lent)


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
        self.asked, self.lent = [], []
        self.legacy_only, self.name, self.answer, self.keywords = legacy, name, answer, keywords
        self.needs_versioned = bool(flags) or version != MAX_VERSION
        self.gave_versioned, self.refused = None, False
        self.versioned, self.legacy, self._arrays = structs(
            self.start + origin if data == "own" else data, None if no_shape else shape,
            compact(shape) if strides == "compact" else strides, dtype, device, byte_offset,
            len(shape) if ndim is None else ndim, flags, version, context, deleter)
        self.tensor = self.versioned.dl_tensor
        self._extents = self._now()
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

    def _now(self):
        return b"".join(map(bytes, self._arrays))

    @property
    def unchanged(self):
        return self._now() == self._extents and all(one.unchanged() for one in self.lent)

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
