"""What a library exports, read as a C consumer reads it."""

from __future__ import annotations

import ctypes
from math import prod

from . import _abi as abi
from ._abi import LEGACY, MAX_VERSION, VERSIONED
from ._model import Misnamed, Skipped, must
from ._numbers import compact, decode, read

HOST = (1, 3, 11, 13)  # CPU, pinned and managed memory
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # called with or without the interpreter's lock


class Described:
    """What a DLTensor says of itself."""

    def __init__(self, tensor):
        self.tensor, self.ndim = tensor, tensor.ndim
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


class Export(Described):
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
        self.flags = self.struct.flags if self.versioned else 0
        super().__init__(tensor)

    @property
    def version(self):
        return self.struct.version.major, self.struct.version.minor

    def bytes(self):
        """All elements, in row-major order."""
        if self.device[0] not in HOST:
            raise Skipped(f"memory of device {self.device} is not read")
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
