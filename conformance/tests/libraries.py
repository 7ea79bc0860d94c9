"""Libraries that keep every rule, in Python: a producer, whose exports can be edited, a consumer,
which is correct but for the faults that it is given, and both. They need the kit alone."""

import ctypes
import itertools
import os
from math import prod

import dlpack_conformance as conform
from dlpack_conformance import Tensor
from dlpack_conformance import _abi as abi
from dlpack_conformance._numbers import compact

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def violated(library, ids=None, seconds=60):
    """Identifiers of the checks that find a violation, with their outcomes."""
    found = {}
    for check in conform.CHECKS.values():
        if ids is None or check.id in ids:
            verdict = conform.judge_forked(library, check, seconds)
            if verdict.counts:
                found[check.id] = verdict.outcome
    return found


class Ours(conform.Library):
    """Keeps every rule."""

    name = "mini"

    def make(self, tensor):
        return tensor.copy()

    def make_read_only(self, tensor):
        return tensor.copy().read_only()

    def transposed(self, x):
        return x._view(x._start, x.shape[::-1], x.strides[::-1])

    def columns(self, x):
        return part(x, slice(None), slice(None, None, 2))

    def reversed(self, x):
        return part(x, slice(None, None, -1))

    def inner(self, x):
        return part(x, slice(1, None), slice(1, None))

    def rows(self, x):
        return part(x, slice(1, None))

    def broadcast(self, x):
        return x._view(x._start, (2, *x.shape), (0, *x.strides))


def part(x, *slices):
    start, shape, strides = x._start, [], []
    for axis, extent in enumerate(x.shape):
        taken = range(extent)[slices[axis] if axis < len(slices) else slice(None)]
        start += taken.start * x.strides[axis] * x.itemsize
        shape.append(len(taken))
        strides.append(taken.step * x.strides[axis])
    return x._view(start, shape, strides)


class Edited:
    """A Tensor, and an edit of each struct that it exports."""

    edit = staticmethod(lambda export, keywords: None)

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        capsule = self.tensor.__dlpack__(**keywords)  # with a struct of its own
        type(self).edit(managed(capsule), keywords)
        return capsule


def managed(capsule):
    """The struct in an unused capsule; else None."""
    address, versioned = abi.peek(capsule) or (None, None)
    kind = abi.DLManagedTensorVersioned if versioned else abi.DLManagedTensor
    return kind.from_address(address) if address else None


def is_versioned(struct):
    return isinstance(struct, abi.DLManagedTensorVersioned)


def roomy(tensor):
    """A copy amid zeros: an edited export that leads beyond it reads the same each time."""
    if prod(tensor.shape) > 1000:
        return tensor.copy()
    values = tensor.tolist()
    room = Tensor([0] * 64 * len(values) + values + [0] * 64 * len(values),
                  (129, *tensor.shape), dtype=tensor.code)
    start = part(room, slice(64, 65))
    return start._view(start._start, tensor.shape, compact(tensor.shape))


class Producer(Ours):
    """A producer whose exports are edited by one function."""

    def __init__(self, edit):
        self.kind = type("Faulty", (Edited,), {"edit": staticmethod(edit)})

    def make(self, tensor):
        return self.kind(roomy(tensor))

    def make_read_only(self, tensor):
        return self.kind(roomy(tensor).read_only())

    take = take_copy = None


def flags(clear=0, add=0):
    def edit(struct, keywords):
        if is_versioned(struct):
            struct.flags = struct.flags & ~clear | add
    return edit


def other_dtype(struct, keywords):
    if struct.dl_tensor.dtype.code == 6:
        struct.dl_tensor.dtype.code = 1


KEPT = []


DEFERRED, COUNT = [], itertools.count()


class Taken:
    """A tensor that the consumer below imported: shared, and freed with the object."""

    def __init__(self, struct, faults):
        self.struct, self.faults = struct, faults
        tensor = struct.dl_tensor
        self.shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
        if tensor.strides and "ignores strides" not in faults:
            self.strides = tuple(tensor.strides[:tensor.ndim])
        else:
            self.strides, step = (), 1
            for extent in reversed(self.shape):
                self.strides, step = (step, *self.strides), step * extent
        offset = 0 if "ignores byte_offset" in faults else tensor.byte_offset
        if "ignores byte_offset without strides" in faults and not tensor.strides:
            offset = 0
        self.address = (tensor.data or 0) + offset
        self.code, self.bits = tensor.dtype.code, tensor.dtype.bits
        self.read_only = is_versioned(struct) and bool(struct.flags & 1)
        if "counts byte_offset twice" in faults:
            self.address += offset
        if "reads bool as uint8" in faults and self.code == 6:
            self.code = 1
        if "reads manager_ctx" in faults:
            ctypes.string_at(struct.manager_ctx, 1)

    def values(self):
        form = {(0, 8): ctypes.c_int8, (0, 16): ctypes.c_int16, (0, 32): ctypes.c_int32,
                (0, 64): ctypes.c_int64, (1, 8): ctypes.c_uint8, (1, 16): ctypes.c_uint16,
                (1, 32): ctypes.c_uint32, (1, 64): ctypes.c_uint64, (2, 32): ctypes.c_float,
                (2, 64): ctypes.c_double, (6, 8): ctypes.c_bool}[self.code, self.bits]
        found = []
        for number in range(prod(self.shape)):
            place, rest = 0, number
            for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
                place, rest = place + rest % extent * stride, rest // extent
            found.append(form.from_address(self.address + place * self.bits // 8).value)
        return found

    def free(self):
        if self.struct.deleter:
            DELETER(self.struct.deleter)(ctypes.addressof(self.struct))

    def __del__(self):
        if "frees twice" in self.faults:
            self.free()
        if "defers" in self.faults or "forgets to settle" in self.faults:
            DEFERRED.append(self.struct)
        elif "forgets each hundredth" in self.faults and next(COUNT) % 100 == 99:
            pass
        elif "frees early" not in self.faults and "never frees" not in self.faults:
            self.free()


KNOWN = {(0, 8), (0, 16), (0, 32), (0, 64), (1, 8), (1, 16), (1, 32), (1, 64), (2, 32), (2, 64),
         (6, 8)}


class Consumer(conform.Library):
    """A from_dlpack in Python: host memory, shared or rejected."""

    name = "python"
    known = KNOWN

    def __init__(self, *faults):
        self.faults = set(faults)

    def take(self, producer):
        faults = self.faults
        try:
            keywords = {"max_version": (1, 3)}
            if "passes a stream" in faults:
                keywords["stream"] = 1
            if "asks for a version that there is not" in faults:
                keywords["max_version"] = (7, 0)
            if "asks for nothing" in faults:
                keywords = {}
            if "passes stream 0" in faults:
                keywords["stream"] = 0
            if "requests a copy" in faults:
                keywords["copy"] = True
            if "passes an unknown keyword" in faults:
                keywords["dtype"] = None
            if "requests another device" in faults:
                keywords["dl_device"] = (2, 0)
            capsule = producer.__dlpack__(**keywords)
        except TypeError:
            if "asks only once" in faults:
                raise
            capsule = producer.__dlpack__()
        except Exception as error:
            if "hides exceptions" in faults:
                raise BufferError("no tensor") from error
            raise
        if type(capsule).__name__ != "PyCapsule" or managed(capsule) is None:
            raise BufferError("no DLPack capsule")
        struct = managed(capsule)
        try:
            self.check(struct)
        except BufferError:
            if "frees what it refuses" in faults and struct.deleter:
                DELETER(struct.deleter)(ctypes.addressof(struct))
            if "loses what it refuses" in faults:
                ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule),
                                                   USED[is_versioned(struct)])
            raise
        if "returns None" in faults:
            return None
        if "does not rename" not in faults:
            name = USED[is_versioned(struct)]
            ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), name)
        taken = Taken(struct, faults)
        if "frees early" in faults:
            taken.free()
        if "writes the struct" in faults and struct.dl_tensor.ndim:
            struct.dl_tensor.shape[0] += 0
            struct.dl_tensor.byte_offset += 1
            struct.dl_tensor.byte_offset -= 1
            struct.manager_ctx = 7
        return taken

    def check(self, struct):
        """Raises BufferError for unsupported tensors; the capsule then frees them."""
        tensor, faults = struct.dl_tensor, self.faults
        refuse = {
            "takes any version": is_versioned(struct) and struct.version.major != 1,
            "ignores lanes": tensor.dtype.lanes != 1,
            "takes any device": tensor.device.device_type not in (1, 3),
            "takes any dtype": (tensor.dtype.code, tensor.dtype.bits) not in self.known,
            "takes any ndim": not 0 <= tensor.ndim <= 64,
            "takes shape NULL": bool(tensor.ndim > 0 and not tensor.shape),
        }
        for fault, wrong in refuse.items():
            if wrong and fault not in faults:
                raise BufferError(f"refused, or it {fault}")
        shape = tensor.shape[:tensor.ndim] if tensor.ndim > 0 and tensor.shape else []
        if any(extent < 0 for extent in shape):
            if "dies of negative extents" in faults:
                os.abort()
            raise BufferError("a negative extent")
        if prod(shape) > 1 << 40 or (prod(shape) and not tensor.data):
            raise BufferError("too large, or no data")
        strides = tensor.strides[:tensor.ndim] if tensor.strides and tensor.ndim > 0 else []
        if any(abs(stride) > 1 << 40 for stride in strides):
            raise BufferError("a stride that is too large")
        while "hangs on 3 dimensions" in faults and tensor.ndim == 3:
            pass

    def settle(self):
        while DEFERRED and "forgets to settle" not in self.faults:
            struct = DEFERRED.pop()
            DELETER(struct.deleter)(ctypes.addressof(struct))

    def values(self, result):
        return result.values()

    def address(self, result):
        return result.address

    def rows(self, x):
        raise NotImplementedError


USED = {False: ctypes.c_char_p(b"used_dltensor"), True: ctypes.c_char_p(b"used_dltensor_versioned")}


class Both(Ours, Consumer):
    """Takes tensors, shares them, and exports them again."""

    def take(self, producer):
        return self.shared(super().take(producer))

    def shared(self, taken):
        found = Tensor([], (0,))
        found.__dict__.update(_memory=taken, _start=taken.address, shape=taken.shape,
                              strides=taken.strides, code=(taken.code, taken.bits, 1),
                              readonly=taken.read_only)
        return found

    def values(self, result):
        return result.tolist()

    def address(self, result):
        return result._start

    def settle(self):
        Tensor.sweep()


class VersionedOnly:
    """As the standard allows from March 2025 on."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is None or max_version[0] < 1:
            raise BufferError("ask with max_version=(1, 0)")
        return self.tensor.__dlpack__(stream=stream, max_version=max_version,
                                      dl_device=dl_device, copy=copy)
