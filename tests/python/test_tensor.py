"""A Tensor apart from exchange: examples, pickles, arrays of ml_dtypes, memory of other devices."""

import copy
import ctypes
import doctest
import os
import pickle
import re
import sys
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import py_module
import pythons
from dtypes import ML, same, small, view_of_any
from fakes import CHEAP, SEEDS, Forger, refuses, setting

m = py_module.load()


# --- Examples ---------------------------------------------------------------------------------

NAMED = [(owner, name) for owner in (m, m.Tensor) for name, value in vars(owner).items()
         if type(value).__name__ in
         ("builtin_function_or_method", "method_descriptor", "classmethod_descriptor")
         and name not in ("__new__", "_workers")]


@pytest.mark.parametrize("owner, name", NAMED, ids=[name for _, name in NAMED])
def test_docstring_examples(owner, name):
    text = getattr(owner, name).__doc__
    example = doctest.DocTestParser().get_doctest(text, {"dlpack_rs": m}, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example, out=said.append)
    assert runner.summarize(verbose=False).attempted > 0 and not said, "".join(said)


# --- Pickles ----------------------------------------------------------------------------------

@given(SEEDS)
@CHEAP
def test_copies_and_pickles(seed):
    rng = np.random.default_rng(seed)
    array = view_of_any(rng)
    t = m.from_dlpack(array)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(t, protocol))
        same(back, array)
        assert back.readonly is t.readonly and back.flags & 4 == t.flags & 4
    buffers = []
    data = pickle.dumps(t, 5, buffer_callback=buffers.append)
    back = pickle.loads(data, buffers=buffers)
    same(back, array)
    assert len(buffers) == 1 and back.readonly is t.readonly
    assert (back.data_ptr == t.data_ptr) is t.is_contiguous("K") or not array.size
    for twin in (copy.copy(t), copy.deepcopy([t])[0]):
        assert twin.is_copied
        same(twin, array)
        assert twin.is_copied and twin.readonly is t.readonly and twin.is_contiguous("K")
        assert not array.size or twin.data_ptr != t.data_ptr
    if t.is_contiguous("K") and array.size and 0 not in array.strides:
        assert [s for n, s in zip(t.shape, back.strides) if n > 1] == \
            [s for n, s in zip(t.shape, t.strides) if n > 1]


def test_pickles_keep_their_buffer():
    t, memory = m.from_dlpack(np.arange(6.0).reshape(2, 3)[:, ::-1]), bytearray(48)
    data = pickle.dumps(t, 5, buffer_callback=lambda buffer: memory.__setitem__(
        slice(None), buffer.raw()))
    back = pickle.loads(data, buffers=[memory])
    assert back.tolist() == [[2, 1, 0], [5, 4, 3]] and not back.readonly
    refuses(BufferError, "re-sized", memory.append, 1)
    del back
    memory.append(1)
    array = np.frombuffer(bytes(memory[:48])).reshape(3, 2)  # of another dtype and shape
    assert pickle.loads(data, buffers=[array]).readonly


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("readonly", [False, True])
def test_older_pickles_copy_bytes_once(protocol, readonly):
    """They keep bytes, which pickle copies once, and no writable tensor shares their memory."""
    array = np.arange(6.0)
    array.flags.writeable = not readonly
    rebuild, (kept, *rest) = m.from_dlpack(array).__reduce_ex__(protocol)
    assert type(kept) is bytes
    t = rebuild(kept, *rest)
    assert t.readonly is readonly
    assert (t.data_ptr == np.frombuffer(kept).ctypes.data) is readonly
    if not readonly:
        t[:] = 0
    assert kept == array.tobytes()


def test_large_memory_is_asked_for_in_huge_pages():
    maps = Path("/proc/self/smaps")
    if not maps.exists() or "VmFlags" not in maps.read_text() or not os.path.exists(
            "/sys/kernel/mm/transparent_hugepage"):
        pytest.skip("the system has no huge pages on request")
    t = m.empty(8 << 20, dtype="uint8")
    for memory in (t, np.frombuffer(t.tobytes(), np.uint8)):
        address, asked = m.from_dlpack(memory).data_ptr, set()
        for line in maps.read_text().splitlines():
            if found := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(found[1], 16) <= address < int(found[2], 16)
            elif inside and line.startswith("VmFlags:"):
                asked.update(line.split())
        assert "hg" in asked


@pytest.mark.parametrize("kind, words, arguments", [
    (ValueError, "bytes", (b"abc", "uint8", (4,), (1,), 0)),
    (ValueError, "bytes", (b"abcd", "int32", (2,), (1,), 0)),
    (ValueError, "bytes", (b"abcd", "uint8", (2,), (-1,), 0)),
    (ValueError, "bytes", (b"abcd", "uint8", (2, 2), (3, 1), 0)),
    (ValueError, "bytes", (b"ab", "uint4", (3,), (1,), 4)),
    (ValueError, "OVERFLOW|bytes", (b"abcd", "uint8", (1 << 62, 8), (1 << 62, 1), 0)),
    (ValueError, "NEG", (b"abcd", "uint8", (-1,), (1,), 0)),
    (ValueError, "strides", (b"abcd", "uint8", (2, 2), (1,), 0)),
    (ValueError, "DATA_NULL|bytes", (b"", "uint8", (1,), (1,), 0)),
    (ValueError, "dtype", (b"abcd", "uint9", (1,), (1,), 0)),
    (ValueError, "gaps", (np.zeros(8, "u1")[::2], "uint8", (4,), (2,), 0)),
    (ValueError, "bytes", (b"abc", "uint8", (4,), (1,), 2)),
    (TypeError, "int", (b"abcd", "uint8", (4,), (1,), "2")),
    (TypeError, "five", (b"abcd",)),
    (AttributeError, "__dlpack__", ("abcd", "uint8", (1,), (1,), 0)),
])
def test_inconsistent_pickles(kind, words, arguments):
    refuses(kind, words, m.Tensor._rebuild, *arguments)


@pytest.mark.parametrize("name", ["uint8", "float32", "int4"])
def test_rebuilt_elements_that_overlap_are_read_only(name):
    """Any description that a pickle may hold is refused, or read-only, or of separate elements."""
    rng, kinds = np.random.default_rng(5), set()
    for _ in range(2000):
        ndim = int(rng.integers(1, 4))
        shape = [int(n) for n in rng.integers(0, 4, ndim)]
        strides = [int(n) for n in rng.integers(-3, 5, ndim)]
        try:
            memory, flags = ((bytearray(64), 0), (bytes(64), 2))[rng.integers(2)]
            t = m.Tensor._rebuild(memory, name, shape, strides, flags)
        except (ValueError, BufferError):
            kinds.add("refused")
            continue
        places = [sum(i * s for i, s in zip(index, strides)) for index in np.ndindex(*shape)]
        apart = len(set(places)) == len(places)
        assert apart or t.readonly, (shape, strides)
        assert not apart or not t.readonly, (shape, strides)
        kinds.add("apart" if apart else "read-only")
    assert kinds == {"refused", "apart", "read-only"}


def test_what_cannot_be_pickled():
    device = m.from_dlpack(Forger(setting("device.device_type", 2)))
    refuses(TypeError, r"'cuda:0'.*to\('cpu'\)", pickle.dumps, device)
    handle = Forger(lambda tensor, inner: None)
    handle.tensor.dl_tensor.dtype.code, handle.tensor.dl_tensor.dtype.bits = 3, 64
    refuses(TypeError, "handles", pickle.dumps, m.from_dlpack(handle))
    refuses(TypeError, "exactly one", m.empty(1).__reduce_ex__)


# --- ml_dtypes --------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ML)
def test_arrays_of_ml_dtypes_round_trip_without_a_copy(name):
    rng = np.random.default_rng(3)
    for make in (lambda a: a, lambda a: a[:, ::-2].T, lambda a: a[0, 0], lambda a: a[:0]):
        array = np.asarray(make(small(rng, (4, 6), ML[name])))
        for take in (m.from_dlpack, m.from_numpy, m.asarray):
            t = take(array)
            back = t.numpy()
            assert (t.dtype, t.shape) == (name, array.shape) and back.dtype == array.dtype
            assert not array.size or t.data_ptr == array.ctypes.data == back.ctypes.data
            assert not t.is_copied and back.tobytes() == array.tobytes() and not t.readonly
            assert back.strides == array.strides or array.size < 2
        assert np.asarray(t).dtype == array.dtype and t.__numpy_dtype__ == array.dtype
        gone = weakref.ref(array)
        del array
        assert gone() is not None
        del t, back
        assert gone() is None
    array = small(rng, (3,), ML[name])
    array.flags.writeable = False
    t = m.from_dlpack(array)
    assert t.readonly and not t.numpy().flags.writeable
    assert m.from_dlpack(array, copy=True).is_copied and m.from_dlpack(array, copy=True).flags & 1 == 0
    for dtype in (name, ML[name], ML[name].type):
        assert m.empty(2, dtype).dtype == name


def test_types_that_resemble_ml_dtypes():
    class Named(np.ndarray):
        dtype = property(lambda self: type("D", (), {"name": self.said})())

    for said in ["bfloat16", "float32", "float32x2", 7, "void16"]:
        array = np.zeros(3, "V2").view(Named)
        array.said = said
        if said == "bfloat16":
            assert m.from_dlpack(array).dtype == said
        else:
            refuses(BufferError, ".", m.from_dlpack, array)
    swapped = np.zeros(2, ml_dtypes.bfloat16)
    swapped = swapped.view(swapped.dtype.newbyteorder(">"))
    if swapped.__array_interface__["typestr"].startswith(">"):
        refuses(BufferError, ".", m.from_dlpack, swapped)


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import py_module
t = py_module.load().empty(2, "bfloat16")
for take in (t.numpy, lambda: t.__numpy_dtype__):
    try:
        take()
    except ImportError as error:
        assert "install ml_dtypes" in str(error) and "view('uint16')" in str(error), error
    else:
        raise AssertionError
assert t.view("uint16").numpy().dtype.name == "uint16"
"""


def test_without_ml_dtypes():
    pythons.check(sys.executable, WITHOUT)


# --- Memory that the CPU reads at its address -------------------------------------------------

@pytest.mark.parametrize("device_type", [3, 11])
@pytest.mark.parametrize("take", [
    lambda x: m.from_dlpack(x).to("cpu"), lambda x: m.from_dlpack(x).to("cpu", copy=False),
    lambda x: m.from_dlpack(m.from_dlpack(x).__dlpack__(dl_device=(1, 0), copy=False,
                                                        max_version=(1, 3))),
    lambda x: np.from_dlpack(m.from_dlpack(x), device="cpu"),
    lambda x: m.asarray(m.from_dlpack(x), device="cpu", copy=False),
    lambda x: m.from_dlpack(x, device="cpu", copy=False)])
def test_pinned_memory_is_the_cpus(device_type, take):
    forger = Forger(setting("device.device_type", device_type))
    there = take(forger)
    assert there.device == "cpu" and there.shape == (2, 3)
    assert np.from_dlpack(there).ctypes.data == ctypes.addressof(forger.memory)
    assert not forger.deleted
    del there
    assert forger.deleted == 1
    apart = m.from_dlpack(forger).to("cpu", copy=True)
    assert apart.data_ptr != ctypes.addressof(forger.memory) and apart.is_copied
    refuses(BufferError, "copy", m.from_dlpack(forger).to, "cuda:0", copy=False)
    assert m.from_dlpack(Forger(
        lambda tensor, inner: setattr(tensor, "flags", 1)), device="cpu").readonly
    # A device's memory is not read at its address.
    refuses(BufferError, ".", m.from_dlpack(Forger(setting("device.device_type", 2))).to, "cpu",
            copy=False)


# --- Devices: the stand-in driver, whose memory only the driver accesses -----------------------

ON_CUDA = """
import sys, pickle
import numpy as np, ml_dtypes
import py_module
from dlpack_rs import abi
PATH = sys.argv[1].encode()  # the library keeps the pointer
abi.call(abi.lib.dlrs_driver_path_set, 2, PATH)
m = py_module.load()
array = np.arange(12.0, dtype="f4").reshape(3, 4)
t = m.from_dlpack(array).to("cuda:0")
said = t.__cuda_array_interface__
assert said == {"shape": (3, 4), "typestr": "<f4", "data": (t.data_ptr, False), "strides": None,
                "version": 3, "stream": 1}, said
said = t.T[1:].read_only().__cuda_array_interface__
assert said["strides"] == (4, 16) and said["data"] == (t.data_ptr + 4, True), said
class Other:
    def __init__(self, tensor): self.kept, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__
back = m.from_dlpack(Other(t.T))
assert back.device == "cuda:0" and back.data_ptr == t.data_ptr and back.strides == (1, 4)
assert back.to("cpu").tolist() == array.T.tolist()
assert m.empty(0, "int8", "cuda:0").__cuda_array_interface__["data"] == (0, False)
for lacks in (m.empty(2), m.empty(2, "bfloat16", "cuda:0"), m.empty(2, "float32x2", "cuda:0")):
    assert not hasattr(lacks, "__cuda_array_interface__")
def same(tensor, want): assert tensor.to("cpu").tolist() == np.asarray(want).tolist(), tensor.to("cpu")
same(m.zeros((2, 3), "int16", "cuda:0"), np.zeros((2, 3)))
same(m.full((2, 3), 1.5, "bfloat16", "cuda:0"), np.full((2, 3), 1.5))
t[1] = 7.0; array[1] = 7; same(t, array)
t[:, 1:3] = np.array([[1], [2], [3]], "i4"); array[:, 1:3] = [[1], [2], [3]]; same(t, array)
t[0] = t[1]; array[0] = array[1]; same(t, array)
same(t.astype("int32"), array.astype("i4")); assert t.astype("int32").device == "cuda:0"
host = np.zeros((3, 4), "f8"); m.from_dlpack(host).copy_from(t); assert (host == array).all()
other = m.empty((3, 4), "float64", "cuda:0"); other.copy_from(t); same(other, array)
assert t.tobytes() == array.tobytes() and t.T.tobytes() == array.T.tobytes()
import copy
twin = copy.deepcopy(t.T); assert twin.device == "cuda:0" and twin.strides == (1, 4); same(twin, array.T)
same(m.asarray(array, device="cuda:0", dtype="float16"), array)
for wrong, kind in [(lambda: pickle.dumps(t), TypeError), (lambda: t.equal(t), BufferError),
                    (lambda: t.numpy(), (BufferError, RuntimeError))]:
    try: wrong()
    except kind as error: assert "cpu" in str(error).lower() or "device" in str(error).lower(), error
    else: raise AssertionError(wrong)
managed = m.empty(3, "float32", "cuda_managed")
managed.fill(2.5); there = managed.to("cpu", copy=False)
assert there.data_ptr == managed.data_ptr and there.tolist() == [2.5] * 3
# What a stream is still to write is there when Python looks.
import ctypes
driver, context = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
of_bytes = {kind: m.empty(4, kind, "cuda_managed") for kind in ("uint8", "float8_e4m3fn")}
looks = [lambda t: t.view("uint8").memoryview()[0], lambda t: t.numpy().view("u1")[0],
         lambda t: np.asarray(t).view("u1")[0], lambda t: t.tobytes()[0],
         lambda t: t.view("uint8").tolist()[0], lambda t: t.view("uint8")[0].item(),
         lambda t: int(t.view("uint8")[0]), lambda t: int(str(t.view("uint8")).split("[")[-1][:2]),
         lambda t: pickle.loads(pickle.dumps(t)).tobytes()[0], lambda t: t.to("cpu").tobytes()[0],
         lambda t: t.copy().tobytes()[0], lambda t: next(iter(t.view("uint8"))).item()]
for kind, tensor in of_bytes.items():
    for number, look in enumerate(looks):
        byte = 30 + number
        assert driver.cuMemsetD8Async(ctypes.c_uint64(tensor.data_ptr), byte, 4, None) == 0
        found = look(tensor)
        assert found == byte, (kind, number, found)
pinned = m.full(3, 1.5, "float32", "cuda_host")
assert pinned.to("cpu", copy=False).data_ptr == pinned.data_ptr
"""


def test_cuda(standin):
    pythons.check(sys.executable, ON_CUDA, str(standin / "cuda" / "libcuda.so.1"))
