"""Tensors as bytes: exports that are read as a C consumer reads them, and producers made by hand.

This module uses neither the library under test nor the validation of this one.
"""

import ctypes
import gc
import struct
import sys
import threading
from itertools import product
from math import prod

from .. import abi
from ..abi import capsule as capsules
from ._model import Misnamed, Noted, Skipped, Unfreed, must

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4
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

_python = ctypes.pythonapi
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # called with or without the interpreter's lock
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
# A capsule that is being destroyed has no references left, so it is an address here.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python))
name_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCapsule_GetName", _python))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetName", _python))
_static: dict = {}


def _name(text):
    """The address of a capsule's name, which lives as long as the process."""
    return ctypes.addressof(_static.setdefault(text, ctypes.create_string_buffer(text)))


def capsule_name(capsule):
    return ctypes.string_at(name_address(capsule))


def compact(shape):
    """Strides in elements, row-major."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, strides[0] * max(following, 1) if strides else 1)
        following = extent
    return tuple(strides)


class Export:
    """A tensor that a library exported: the capsule's struct, read in place."""

    def __init__(self, capsule, source=None):
        """Keeps the source until it is consumed: lifetimes are a matter of some checks only."""
        found = capsules.peek(capsule)
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
        if not self.versioned and begin.major == 1 and begin.minor < 1000:
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
    def device(self):
        return self.tensor.device.device_type, self.tensor.device.device_id

    @property
    def address(self):
        return ((self.tensor.data or 0) + self.tensor.byte_offset) % (1 << 64)

    def values(self):
        """All elements, in row-major order."""
        code, bits, lanes = self.dtype
        if (code, bits) not in FORMATS or lanes != 1:
            raise Skipped(f"values of dtype {self.dtype} are not read")
        must(all(extent >= 0 for extent in self.shape) and prod(self.shape) <= 1 << 20,
             f"shape is {self.shape}")
        must(self.tensor.data or 0 in self.shape, "data is NULL")
        form = FORMATS[code, bits]
        bytes_each, found = bits // 8, []
        for place in product(*map(range, self.shape)):
            offset = sum(i * stride for i, stride in zip(place, self.strides)) * bytes_each
            value = struct.unpack("=" + form, ctypes.string_at(self.address + offset, bytes_each))
            found.append(complex(*value) if len(value) == 2 else value[0])
        return found

    def consume(self):
        """As a consumer does: the capsule is renamed, and its tensor is ours to free."""
        used = b"used_dltensor_versioned" if self.versioned else b"used_dltensor"
        _set_name(self.capsule, _name(used))
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
    keywords.setdefault("max_version", capsules.MAX_VERSION)
    try:
        return Export(producer.__dlpack__(**keywords), producer)
    except TypeError:
        unknown = [keyword for keyword in keywords if not knows(producer, keyword)]
        if unknown:
            raise Skipped(f"{unknown[0]} is not a keyword of __dlpack__") from None
        raise


def newest(producer):
    """An export by the newest protocol that the producer knows."""
    return Export(capsules.request(producer), producer)


class Handmade:
    """A producer with any struct that a check needs; it counts calls of its deleter.

    As a correct producer does, it gives a versioned tensor to those who request one, else a
    legacy one, and rejects other devices and unknown keywords. Flags that only a versioned tensor
    has make `needs_versioned` true.
    """

    _alive: list = []  # a library that is not correct may look at one at any time

    def __init__(self, values=range(12), shape=(3, 4), strides="compact", dtype=FLOAT32,
                 device=(1, 0), flags=0, version=capsules.MAX_VERSION, legacy=False, byte_offset=0,
                 shift=0, data="own", ndim=None, deleter=True, context=1, name=None, answer=None,
                 keywords=True):
        values = list(values)
        form = FORMATS.get(dtype[:2], "B")
        content = b"".join(struct.pack("=" + form, *(
            (value.real, value.imag) if len(form) == 2 else (value,))) for value in values)
        self._memory = ctypes.create_string_buffer(len(content) + byte_offset + shift + 512)
        base = ctypes.addressof(self._memory)
        self.start = base + -base % 256 + shift
        ctypes.memmove(self.start + byte_offset, content, len(content))
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        if strides == "compact":
            strides = compact(shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.deleted, self.asked, self.asked_device = 0, [], 0
        self.legacy_only, self.name, self.answer, self.keywords = legacy, name, answer, keywords
        self.needs_versioned = bool(flags) or version != capsules.MAX_VERSION
        self.gave_versioned = self.capsule = self.final_name = None
        self.refused = False
        self._lock = threading.Lock()
        self._deleter = Deleter(self._count)
        self.tensor = abi.DLTensor(
            self.start if data == "own" else data, abi.DLDevice(*device),
            len(shape) if ndim is None else ndim, abi.DLDataType(*dtype),
            ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64)) if shape else None,
            ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64)) if strides else None,
            byte_offset)
        end = ctypes.cast(self._deleter, ctypes.c_void_p) if deleter else None
        self.legacy = abi.DLManagedTensor(self.tensor, context, end)
        self.versioned = abi.DLManagedTensorVersioned(
            abi.DLPackVersion(*version), context, end, flags, self.tensor)
        self._before = self._bytes()
        Handmade._alive.append(self)

    def _count(self, _pointer):
        with self._lock:
            self.deleted += 1

    def _bytes(self):
        return b"".join(bytes(part) for part in
                        (self.legacy, self.versioned, self._shape, self._strides or b""))

    @property
    def unchanged(self):
        return self._bytes() == self._before

    def set(self, **members):
        """Changes members of the tensor, in both structs."""
        for managed in (self.legacy, self.versioned):
            for member, value in members.items():
                setattr(managed.dl_tensor, member, value)
        self._before = self._bytes()

    def __dlpack_device__(self):
        self.asked_device += 1
        return self.tensor.device.device_type, self.tensor.device.device_id

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        unknown = set(keywords) - (KEYWORDS if self.keywords else {"stream"})
        if unknown:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(unknown)!r}")
        if self.answer is not None:
            return self.answer()
        version, device = keywords.get("max_version"), keywords.get("dl_device")
        if device is not None and tuple(device) != self.__dlpack_device__():
            raise BufferError(f"no copies to the device {device!r}")
        self.gave_versioned = not self.legacy_only and version is not None and version[0] >= 1
        managed = self.versioned if self.gave_versioned else self.legacy
        if self.needs_versioned and not self.gave_versioned:
            raise BufferError("this tensor is exported with max_version of at least (1, 0) only")
        name = self.name or (capsules.VERSIONED if self.gave_versioned else capsules.LEGACY)
        self.capsule = _new(ctypes.addressof(managed), _name(name), _DESTRUCTOR)
        return self.capsule


@_Destructor
def _destroy(capsule):
    """As DLPack's destructors: frees a tensor that was not consumed."""
    for name, kind in ((capsules.LEGACY, abi.DLManagedTensor),
                       (capsules.VERSIONED, abi.DLManagedTensorVersioned)):
        if _is_valid(capsule, name):
            pointer = _pointer(capsule, name)
            deleter = kind.from_address(pointer).deleter
            if deleter:
                Deleter(deleter)(pointer)


_DESTRUCTOR = ctypes.cast(_destroy, ctypes.c_void_p)


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
    if producer.capsule is not None:
        producer.final_name = capsule_name(producer.capsule)
        producer.capsule = None
    if producer.needs_versioned and producer.asked and producer.gave_versioned is False:
        raise Skipped("requests no versioned tensor")
    gc.collect()
    return result, failure


def said(error):
    return f"{type(error).__name__}: {str(error)[:100]}"


def freed_once(library, producer):
    """The deleter ran once; never if the tensor was not requested."""
    gc.collect()
    wanted = int(producer.gave_versioned is not None)
    for _ in range(50):
        if producer.deleted < wanted:
            library.settle()
    if producer.deleted != wanted:
        raise Unfreed(f"the deleter ran {producer.deleted} times", producer.refused)


def all_freed_once(library, producers):
    gc.collect()
    for _ in range(50):
        if not all(producer.deleted for producer in producers):
            library.settle()
    counts = {producer.deleted for producer in producers}
    if counts != {1}:
        raise Unfreed(f"deleters ran {sorted(counts)} times", False)


def taken(library, producer):
    """The result for a tensor that must not be rejected."""
    result, failure = take(library.take, producer)
    must(failure is None, f"refused: {said(failure)}" if failure else "")
    must(result is not None, "it returns None")
    return result


def right_or_refused(library, producer, expected):
    """The values are right or the tensor is rejected, and it is freed once in both cases."""
    result, failure = take(library.take, producer)
    if failure is not None:
        freed_once(library, producer)
        raise Noted(f"refused: {said(failure)}")
    found, expected = library.values(result), list(expected)
    same = found == expected and not any(type(value) is int and type(wanted) is bool
                                         for value, wanted in zip(found, expected))
    must(same, f"the values are {found[:6]}, not {expected[:6]}")
    found = result = None
    freed_once(library, producer)


def refused(library, producer):
    """An exception, and the tensor is freed once."""
    result, failure = take(library.take, producer)
    must(failure is not None, "accepted")
    freed_once(library, producer)
    return failure


def resident():
    """Bytes of resident memory, without what malloc keeps of what was freed: aligned blocks that
    do not fit the next request can be all of it."""
    if hasattr(_python, "malloc_trim"):
        _python.malloc_trim(ctypes.c_size_t(0))
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


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

