"""Producers of every kind, valid and not, and what calls of them come to."""

import ctypes
from ctypes import byref, c_void_p, py_object, pythonapi

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import pyabi
from dlpack_rs import abi

SEEDS = st.integers(0, 2**32)
CHEAP = settings(max_examples=300, deadline=None, database=None)
NEW = ("stream", "max_version", "dl_device", "copy")
TAKE = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_void_p)
CURRENT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, c_void_p)
KEPT = []  # functions that C may still call when Python has forgotten them
new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, ctypes.c_char_p, c_void_p)(
    ("PyCapsule_New", pythonapi))


def ones():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def refuses(kind, words, call, *args, **keywords):
    with pytest.raises(kind, match=words):
        call(*args, **keywords)


def outcome(call, *arguments):
    """The result of a call, or its exception."""
    try:
        return call(*arguments)
    except BaseException as error:
        return error


class Answers:
    """Passes a capsule on, for every request."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


class Fake:
    """A producer whose `__dlpack__` accepts some keywords only, and which records its calls."""

    def __init__(self, takes=NEW, make=None, device=(1, 0)):
        self.takes, self.calls, self.device = takes, [], device
        self.make = make or (lambda **k: ones().__dlpack__(**k))

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        unknown = set(keywords) - set(self.takes)
        if unknown:
            raise TypeError(f"unexpected keyword {unknown}")
        return self.make(**{k: v for k, v in keywords.items() if k != "stream"})

    def __dlpack_device__(self):
        return self.device


def old(array):
    """A producer from before DLPack 1.0."""
    return Fake(("stream",), lambda **_: array.__dlpack__())


def edited(edit, array=None):
    """A producer of an array, whose struct is changed before a consumer gets it."""
    array = ones() if array is None else array

    def make(**keywords):
        capsule = array.__dlpack__(max_version=(1, 0))
        edit(abi.capsule.managed(capsule))
        return capsule
    return Fake(make=make)


def wrapped(array, device=(1, 0), dtype=(2, 32, 1)):
    """A tensor over NumPy's memory that says to be on a device."""
    shape, out = (ctypes.c_int64 * array.ndim)(*array.shape), pyabi.Versioned()
    bare = abi.DLTensor(data=array.ctypes.data, device=abi.DLDevice(*device), ndim=array.ndim,
                        dtype=abi.DLDataType(*dtype), shape=shape)
    abi.call(abi.lib.dlrs_tensor_wrap, byref(bare), 0, None, None, byref(out))
    return pyabi.Tensor(out)


def device_tensor():
    """A tensor on a CUDA device that does not exist; its memory is never accessed."""
    return wrapped(ones(), (2, 0))


def cuda_devices():
    count, function = ctypes.c_int32(), abi.lib.dlrs_device_count
    return 0 if function(2, byref(count), None) else count.value


WITHOUT_CUDA = pytest.mark.skipif(cuda_devices() > 0, reason="there is a CUDA device")


class Table:
    """An exchange API in ctypes, with the mistakes that a framework might make."""

    def __init__(self, function, major=1, previous=None, holes=(), current=None):
        self.function, self.current = TAKE(function), current and CURRENT(current)
        self.table = abi.DLPackExchangeAPI()
        self.table.header.version.major = major
        self.table.header.version.minor = 3
        if previous:
            self.table.header.prev_api = ctypes.pointer(previous.table.header)
        for i, (name, _) in enumerate(self.table._fields_[1:]):
            if i not in holes:
                setattr(self.table, name, ctypes.cast(self.function, c_void_p))
        if current:
            self.table.current_work_stream = ctypes.cast(self.current, c_void_p)
        self.name = b"dlpack_exchange_api"
        self.capsule = new_capsule(ctypes.addressof(self.table), self.name, None)

    def members(self):
        """What the type of a framework has."""
        return {"__dlpack_c_exchange_api__": self.capsule, "table": self}


def with_table(table, **members):
    return type("Framework", (Fake,), {**table.members(), **members})(NEW)


def hands_out(obj, out, make=ones):
    """The function of a table that gives a tensor away."""
    tensor = make()
    taken = (tensor if isinstance(tensor, pyabi.Tensor) else pyabi.import_(tensor)).take()
    c_void_p.from_address(out).value = ctypes.cast(taken, c_void_p).value
    return 0


class Interface:
    """An array interface with some changes; `...` takes a key out."""

    def __init__(self, array, name="__array_interface__", **changes):
        self.array = array
        found = {**array.__array_interface__, **changes}
        setattr(self, name, {key: value for key, value in found.items() if value is not ...})


class Forger:
    """A producer whose tensor is a valid one edited by `change`; counts deleter calls."""

    def __init__(self, change):
        self.deleted, self.numbers = 0, (ctypes.c_int64 * 130)(2, 3, 3, 1)
        self.delete = ctypes.PYFUNCTYPE(None, c_void_p)(self.count)
        KEPT.append(self.delete)
        self.memory, self.tensor = ctypes.create_string_buffer(64), abi.DLManagedTensorVersioned()
        self.tensor.version.major, self.tensor.version.minor = 1, 3
        self.tensor.deleter = ctypes.cast(self.delete, c_void_p)
        inner = self.tensor.dl_tensor
        inner.data, inner.ndim = ctypes.addressof(self.memory), 2
        inner.device.device_type = 1
        inner.dtype.code, inner.dtype.bits, inner.dtype.lanes = 2, 32, 1
        inner.shape = ctypes.cast(self.numbers, type(inner.shape))
        inner.strides = ctypes.cast(byref(self.numbers, 16), type(inner.strides))
        change(self.tensor, inner)

    def count(self, _):
        self.deleted += 1

    def __dlpack__(self, **keywords):
        return new_capsule(ctypes.addressof(self.tensor), b"dltensor_versioned", None)


def setting(path, value):
    def change(tensor, inner):
        *way, last = path.split(".")
        for name in way:
            inner = getattr(inner, name)
        setattr(inner, last, value)
    return change
