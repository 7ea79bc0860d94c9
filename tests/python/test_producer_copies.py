"""Copies that no backend supports: the producer is asked to copy. A stand-in is the producer.

Its tensors claim to be on a oneAPI device, or on CUDA's without a driver; their memory is NumPy's.
"""

import ctypes

import numpy as np
import pytest

import py_module
from dlpack_rs import abi
from dlpack_rs.abi import capsule as capsules
from fakes import KEPT, WITHOUT_CUDA, Table, new_capsule, ones
from pyabi import import_

from_dlpack = py_module.load().from_dlpack
ONEAPI, CUDA, CPU = (14, 0), (2, 0), (1, 0)
SHARED = {"max_version": (1, 3)}


class StandIn:
    """A producer that records its calls, and its live tensors."""

    def __init__(self, answer=None, device=ONEAPI, **own):
        self.array, self.device, self.own = ones(), device, own
        self.asked, self.live = [], {}
        self.answer = answer or (lambda self, device: self.give(ones(), device, abi.IS_COPIED))
        self.deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda at: self.live.pop(at))
        KEPT.append(self.deleter)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        if "copy" in keywords and keywords["copy"]:
            return self.answer(self, keywords.get("dl_device", self.device))
        return self.give(self.array, self.device, **self.own)

    def give(self, array, device, flags=0, legacy=False, **changes):
        """A capsule with a new struct over an array."""
        struct = (abi.DLManagedTensor if legacy else abi.DLManagedTensorVersioned)()
        if not legacy:
            struct.version.major, struct.version.minor, struct.flags = 1, 3, flags
        struct.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        inner, numbers = struct.dl_tensor, (ctypes.c_int64 * 4)(*array.shape, array.shape[1], 1)
        inner.data, inner.ndim, inner.dtype = array.ctypes.data, 2, abi.DLDataType(2, 32, 1)
        inner.device = abi.DLDevice(*device)
        inner.shape = ctypes.cast(numbers, type(inner.shape))
        inner.strides = ctypes.cast(ctypes.byref(numbers, 16), type(inner.strides))
        for name, value in changes.items():
            setattr(inner, name, value)
        self.live[ctypes.addressof(struct)] = struct, numbers, array
        name = b"dltensor" if legacy else b"dltensor_versioned"
        return new_capsule(ctypes.addressof(struct), name, None)


def taken_by_c(producer, device=None, copy=None):
    policy = {None: 0, True: 1, False: -1}[copy]
    return import_(producer, dl_device=device or (0, 0), copy=policy)


@pytest.fixture(params=["module", "C"])
def take(request):
    """from_dlpack(x, device=, copy=) of the module, and dlrs_py_import."""
    return from_dlpack if request.param == "module" else taken_by_c


def facts(tensor):
    """(device, flags, address)"""
    return tensor.__dlpack_device__(), tensor.flags, getattr(tensor, "data_ptr", None) or tensor.address


def raises(kind):
    def answer(*_):
        raise kind("mine")

    return answer


@pytest.mark.parametrize("device", [ONEAPI, pytest.param(CUDA, marks=WITHOUT_CUDA)])
def test_the_producer_copies_if_no_backend_can(take, device):
    producer = StandIn(device=device)
    copied = take(producer, copy=True)
    assert producer.asked == [SHARED, {**SHARED, "copy": True}]
    assert len(producer.live) == 1  # the first export is freed
    (_, _, array), = producer.live.values()
    assert facts(copied) == (device, abi.IS_COPIED, array.ctypes.data)
    assert array is not producer.array
    del copied
    assert not producer.live


def test_an_unneeded_copy_is_not_requested(take):
    for keywords in ({}, {"copy": False}, {"device": ONEAPI}):
        producer = StandIn()
        shared = take(producer, **keywords)
        assert facts(shared) == (ONEAPI, 0, producer.array.ctypes.data)
        assert not any(asked.get("copy") for asked in producer.asked) and len(producer.asked) == 1
    host = StandIn(device=CPU)
    copied = take(host, copy=True)
    assert host.asked == [SHARED] and copied.flags == abi.IS_COPIED and not host.live


def test_another_device(take):
    """A producer that ignores dl_device without a copy receives copy=True in a second call."""
    for copy in (None, True):
        producer = StandIn()
        copied = take(producer, device=CPU, copy=copy)
        first = {**SHARED, "dl_device": CPU}
        assert producer.asked == [first, {**first, "copy": True}]
        assert np.array_equal(np.from_dlpack(copied), producer.array)
        assert not np.shares_memory(np.from_dlpack(copied), producer.array)
        del copied
        assert not producer.live
    with pytest.raises(BufferError, match="another device"):
        take(producer, device=CPU, copy=False)
    assert not producer.asked[-1]["copy"] and not producer.live


def test_copies_without_the_copied_flag(take):
    """A copy need not be flagged; a legacy one cannot be, and has no other owner."""
    for flags, legacy in ((0, False), (0, True)):
        producer = StandIn(lambda self, device: self.give(ones(), device, flags, legacy))
        assert facts(take(producer, copy=True))[:2] == (ONEAPI, 0)
    empty = StandIn(lambda self, device: self.give(ones()[:0], device, data=None))
    empty.array = empty.array[:0]
    assert take(empty, copy=True).shape == (0, 3)


@pytest.mark.parametrize("answer, kind, words", [
    (raises(TypeError), BufferError, "no backend can copy it.*does not accept copy=True.*value 14"),
    (raises(BufferError), BufferError, "^mine$"),
    (raises(MemoryError), MemoryError, "^mine$"),
    (raises(AttributeError), AttributeError, "^mine$"),
    (raises(KeyboardInterrupt), KeyboardInterrupt, "^mine$"),
    (lambda self, device: self.give(self.array, device), BufferError,
     "copy=True gave the producer's own memory"),
    (lambda self, device: self.give(self.array, device, abi.IS_COPIED), BufferError, "own memory"),
    (lambda self, device: self.give(ones(), CPU), BufferError, "another device"),
    (lambda self, device: self.give(ones(), (14, 1)), BufferError, "another device"),
    (lambda self, device: self.give(ones(), device, ndim=65), ValueError, "DLRS_NDIM"),
    (lambda self, device: self.give(ones(), device, 1 << 40), BufferError, "DLRS_FLAGS"),
    (lambda self, device: 7, ValueError, "no capsule"),
])
def test_producers_that_refuse_or_fail(take, answer, kind, words):
    producer = StandIn(answer)
    with pytest.raises(kind, match=words):
        take(producer, copy=True)
    assert not producer.live and len(producer.asked) == 2


def test_an_unknown_version_is_not_consumed(take):
    def answer(self, device):
        capsule = self.give(ones(), device)
        abi.capsule.managed(capsule).version.major = 2
        return capsule

    producer = StandIn(answer)
    with pytest.raises(BufferError, match="DLRS_VERSION"):
        take(producer, copy=True)
    assert len(producer.live) == 1  # its capsule has no destructor


def test_other_requirements_apply_to_the_copy():
    """Options of the C ABI: the copy is returned as it is, so it must match the request."""
    read_only = StandIn(flags=abi.READ_ONLY)
    assert import_(read_only, writable=1).flags == abi.IS_COPIED and len(read_only.asked) == 2
    with pytest.raises(BufferError, match="not dense as requested"):
        import_(StandIn(), copy=1, order=ord("F"))
    still = StandIn(lambda self, device: self.give(ones(), device, abi.READ_ONLY))
    with pytest.raises(BufferError, match="READ_ONLY"):
        import_(still, copy=1, writable=1)
    assert not still.live


def test_the_stream_is_passed_again():
    producer = StandIn()
    import_(producer, stream=0x1000, copy=1)
    assert producer.asked == [{"stream": 0x1000, **SHARED},
                              {"stream": 0x1000, **SHARED, "copy": True}]


def with_exchange_api(*bases):
    """A stand-in whose type has the exchange API: it exports the same tensors as __dlpack__."""
    def hand_out(obj, out):
        address = capsules.get_pointer(obj.give(obj.array, obj.device), b"dltensor_versioned")
        ctypes.c_void_p.from_address(out).value = address
        return 0

    def current(kind, ordinal, out):
        ctypes.c_void_p.from_address(out).value = None
        return 0

    return type("WithTable", bases, Table(hand_out, current=current).members())


def test_dlpack_is_called_for_copies_instead_of_the_exchange_api(take):
    producer = with_exchange_api(StandIn)()
    assert facts(take(producer))[:2] == (ONEAPI, 0) and not producer.asked
    copied = take(producer, copy=True)
    assert producer.asked == [{**SHARED, "copy": True}] and len(producer.live) == 1
    assert facts(copied)[:2] == (ONEAPI, abi.IS_COPIED)
    silent = with_exchange_api(type("Silent", (), {
        name: function for name, function in vars(StandIn).items() if name != "__dlpack__"}))()
    with pytest.raises(BufferError, match="no backend can copy it"):
        take(silent, copy=True)
    assert not silent.live
