"""The module and its type Tensor, with NumPy as the reference for every view."""

import ctypes
import gc
import inspect
import operator
import sys
import weakref
import zlib

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import py_module
from fakes import CHEAP, SEEDS, Forger, Interface, old, outcome, refuses, setting
from test_print import same_text
from views import random_bytes, random_view

m = py_module.load()
Tensor = m.Tensor


def same(tensor, array, shared=True):
    """The tensor equals that array: its description, values, memory."""
    assert type(tensor) is Tensor
    assert tensor.shape == array.shape and tensor.ndim == array.ndim
    assert tensor.dtype == array.dtype.name and tensor.itemsize == array.dtype.itemsize
    assert tensor.size == array.size and tensor.nbytes == array.nbytes
    assert tensor.device == "cpu" and tensor.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(tensor)
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    if array.size and shared:
        assert tensor.data_ptr == array.ctypes.data == back.ctypes.data
        steps = zip(array.shape, array.strides, tensor.strides)
        assert all(step == stride * array.itemsize for extent, step, stride in steps if extent > 1)


# --- The module -------------------------------------------------------------------------------

def test_modules_share_their_type_and_are_documented():
    assert m.__name__ == "_dlpack_rs" and py_module.fresh().Tensor is Tensor
    assert m.dlpack_version == (1, 3) and m.__version__.count(".") == 2
    assert str(inspect.signature(m.from_dlpack)).startswith("(x, /, *, device=None, copy=None, ")
    assert str(inspect.signature(m.empty)) == \
        "(shape, dtype='float32', device='cpu', *, order='C', strides=None)"
    assert Tensor.__module__ == "dlpack_rs" and m.from_dlpack.__module__ == "dlpack_rs"
    for name in dir(Tensor):
        if not name.startswith("__"):
            assert getattr(Tensor, name).__doc__, name
        if callable(getattr(Tensor, name)) and not name.startswith("__"):
            assert inspect.signature(getattr(Tensor, name)), name


def test_no_tensor_is_made_by_its_type():
    refuses(TypeError, "from_dlpack", Tensor)
    refuses(TypeError, "not safe|not a type|from_dlpack", object.__new__, Tensor)
    refuses(TypeError, "base type", type, "Sub", (Tensor,), {})
    t = m.empty(2)
    for name in ["shape", "T", "foo"]:
        refuses(AttributeError, name, setattr, t, name, 1)


def test_identity_hash_and_weak_references():
    t = m.empty(3)
    other = m.from_dlpack(t)
    assert t is not other and other.data_ptr == t.data_ptr
    refuses(TypeError, "unhashable", hash, t)
    seen = []
    link = weakref.ref(t, seen.append)
    assert link() is t
    del t
    assert seen == [link] and link() is None
    assert sys.getsizeof(other) == Tensor.__basicsize__ + 2 * ctypes.sizeof(ctypes.c_void_p)  # gc


# What is refused, in addition to messages.txt.
REFUSED = {
    "m.from_dlpack()": (TypeError, "exactly one"),
    "m.from_dlpack(1, 2)": (TypeError, "exactly one"),
    "m.from_dlpack(t, x=1)": (TypeError, "unexpected keyword"),
    "m.from_dlpack(np.ndarray)": (TypeError, "unbound"),
    "m.empty()": (TypeError, "needs a shape"),
    "m.empty((2,), 'float32', 'cpu', 1)": (TypeError, "at most"),
    "m.empty((2,), shape=(2,))": (TypeError, "multiple values.*'shape'"),
    "m.empty((1 << 62, 8))": (ValueError, "OVERFLOW"),
    "m.empty((1,) * 65)": (ValueError, "NDIM|dimensions"),
    "m.empty(2, order='A')": (ValueError, "empty: order must be 'C' or 'F'"),
    "m.empty(2, order='K')": (ValueError, "empty: order must be 'C' or 'F'"),
    "m.empty(2, device='vulkan')": (BufferError, "DEVICE_TYPE"),
    "t.to()": (TypeError, "needs a device"),
    "t.to(7)": (TypeError, "'cuda:0'.*pair of integers; this 'int'"),
    "t.to((1, 0, 0))": (TypeError, "'cuda:0'.*not 3 of them"),
    "t.to('vulkan')": (BufferError, "DEVICE_TYPE"),
    "t.to('vulkan', copy=False)": (BufferError, "copy is needed"),
    "t.tolist(1)": (TypeError, "at most"),
    "t.copy('C', 1)": (TypeError, "at most 1.*2 given"),
    "t.copy('X')": (ValueError, "order.*'C', 'F', 'A' or 'K', not 'X'"),
    "t.copy('Ä')": (ValueError, r"order.*\\xc3\\x84"),
    "t.copy('C' * 10**6)": (ValueError, r"order.*CCC\.\.\."),
    "t.copy(7)": (ValueError, "order.*not 'int'"),
    "t.reshape(1, 6, order='C')": (TypeError, "unexpected keyword argument 'order'"),
    "t.reshape(-1, -1)": (ValueError, "only one"),
    "t.T.reshape(6)": (ValueError, "NOT_VIEWABLE"),
    "t[:, ::2].view('float64')": (ValueError, "."),
    "t.__dlpack__(1)": (TypeError, "no positional"),
    "t.__dlpack__(dl_device=(1, 2**40))": (ValueError, f"dl_device.*{2**40}"),
    "m.from_dlpack(np.ones(2).__dlpack__()).__dlpack__()": (BufferError, "legacy_writable=True"),
    "t['a']": (TypeError, "integers, slices"),
    "t[[0]]": (TypeError, "integers, slices"),
    "t[True]": (TypeError, "integers, slices"),
    "t[::'a']": (TypeError, "slice indices"),
    "t[::0]": (ValueError, "zero|step"),
    "t[1 << 70]": (IndexError, "cannot fit"),
    "len(m.empty(()))": (TypeError, "without axes"),
    "iter(m.empty(()))": (TypeError, "without axes"),
    "int(t)": (TypeError, r"int\(\).*6 elements.*tolist\(\)"),
    "bool(t)": (ValueError, r"bool\(\).*6 elements.*tolist\(\)"),
    "t == 3": (TypeError, r"==.*numpy\(\).*`is`"),
    "3 in t": (TypeError, r"__contains__.*numpy\(\)"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    kind, words = REFUSED[call]
    refuses(kind, words, eval, call, {"m": m, "np": np, "t": m.from_dlpack(np.zeros((2, 3), "f4"))})


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("f8"), np.dtype("?"), ml_dtypes.bfloat16,
                                   np.dtype(ml_dtypes.bfloat16), bool, int, float, complex,
                                   "float32"])
def test_dtypes_of_other_libraries(dtype):
    name = dtype if type(dtype) is str else np.dtype(dtype).name
    assert m.empty(2, dtype).dtype == name and m.empty(16, "uint8").view(dtype).dtype == name


@pytest.mark.parametrize("dtype", [np.dtype(">f4"), np.dtype("M8[s]"), np.dtype("S4"), str,
                                   np.dtype([("a", "f4")]), np.longdouble, object(), 3.5, []])
def test_dtypes_that_dlpack_lacks(dtype):
    refuses(ValueError, "dtype", m.empty, 2, dtype)


# --- In and out -------------------------------------------------------------------------------

@given(SEEDS)
@CHEAP
def test_random_arrays_round_trip(seed):
    array = random_view(np.random.default_rng(seed))
    tensor = m.from_dlpack(array)
    assert tensor.readonly == (not array.flags.writeable)
    same(tensor, array)
    # Again, now that it is shared.
    same(tensor, array)
    same(m.from_dlpack(tensor), array)
    for lent in Interface(array), memoryview(array):
        again = m.from_dlpack(lent)
        same(again, array)
        assert again.readonly == tensor.readonly
    assert tensor.tolist() == array.tolist() or array.dtype.kind in "fc"
    same_text(repr(tensor).partition("\n")[2], array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
                                  "float16", "float32", "complex64", "bool", "uint64", "int8"])
def test_values(name):
    bits = m.empty((256, 16), "uint8")
    np.from_dlpack(bits)[:] = random_bytes(np.random.default_rng(7), (256, 16), np.dtype("u1"))
    if name == "bool":
        np.from_dlpack(bits)[:] &= 1
    tensor = bits.view(name)
    numbers = np.from_dlpack(bits).view(getattr(ml_dtypes, name, None) or np.dtype(name))
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = numbers.astype("f8") if numbers.dtype.kind == "V" else numbers
    want, got = wide.tolist(), tensor.tolist()
    nan = wide.dtype.kind in "fc"
    assert np.array_equal(np.array(got), np.array(want), equal_nan=nan)
    assert type(tensor[0, 0].item()) is type(want[0][0])
    assert [type(row[0]) for row in got] == [type(row[0]) for row in want]


def test_producers_of_all_ages():
    array = np.arange(6.0).reshape(2, 3)
    taken = m.from_dlpack(old(array))
    same(taken.copy(), array, shared=False)
    assert taken.data_ptr == array.ctypes.data and taken.readonly  # not in the legacy struct
    with pytest.raises(BufferError):
        taken.__dlpack__()  # nor exportable by it
    known = m.from_dlpack(old(array), legacy_writable=True)
    assert known.data_ptr == array.ctypes.data and not known.readonly
    same(m.from_dlpack(known.__dlpack__(), legacy_writable=True), array)
    assert m.from_dlpack(old(array), legacy_writable=False).readonly
    array.flags.writeable = False
    assert m.from_dlpack(array, legacy_writable=True).readonly  # this one can express it
    array.flags.writeable = True
    same(m.from_dlpack(tvm_ffi.from_dlpack(array)), array)


@pytest.mark.parametrize("change, words", [
    (setting("ndim", 65), "NDIM"), (setting("ndim", -1), "NDIM"),
    (setting("shape", None), "SHAPE_NULL"), (setting("data", None), "DATA_NULL"),
    (setting("dtype.bits", 0), "DTYPE_BITS"), (setting("dtype.code", 200), "DTYPE_CODE"),
    (setting("dtype.lanes", 0), "DTYPE_LANES"), (setting("device.device_type", 999), "DEVICE_TYPE"),
    (setting("device.device_id", 1), "DEVICE_ID"), (setting("byte_offset", 1 << 63), "OFFSET"),
    (lambda t, inner: setattr(t, "flags", 1 << 40), "FLAGS"),
    (lambda t, inner: inner.shape.__setitem__(0, -1), "SHAPE_NEG"),
    (lambda t, inner: inner.shape.__setitem__(0, 1 << 62), "OVERFLOW"),
    (lambda t, inner: inner.strides.__setitem__(0, 1 << 61), "OVERFLOW"),
])
def test_forged_tensors_are_refused_and_released_once(change, words):
    forger = Forger(change)
    for keywords in [{}, {"copy": True}]:
        forger.deleted = 0
        refuses((ValueError, BufferError), words, m.from_dlpack, forger, **keywords)
        assert forger.deleted == 1


def test_unusual_valid_tensors_are_accepted():
    forger = Forger(lambda t, inner: None)
    t = m.from_dlpack(forger)
    assert t.shape == (2, 3) and t.T.copy().tolist() == [[0.0] * 2] * 3 and not forger.deleted
    view = t[0]
    del t
    assert forger.deleted == 0
    del view
    assert forger.deleted == 1
    assert m.from_dlpack(Forger(setting("strides", None))).strides == (3, 1)
    assert m.from_dlpack(Forger(setting("strides", None))).T.strides == (1, 3)
    empty = Forger(setting("data", None))
    empty.numbers[0] = 0
    assert m.from_dlpack(empty).tolist() == [] and m.from_dlpack(empty).data_ptr == 0
    unfreed = Forger(lambda t, inner: setattr(t, "deleter", None))
    assert m.from_dlpack(unfreed)[1].tolist() == [0.0] * 3
    major = Forger(lambda t, inner: setattr(t.version, "major", 2))
    refuses(BufferError, "VERSION", m.from_dlpack, major)


def test_dlpack():
    t = m.from_dlpack(np.arange(3.0))
    assert not np.from_dlpack(t.read_only()).flags.writeable and not t.readonly
    refuses((ValueError, BufferError, RuntimeError), "stream", t.__dlpack__, stream=1)
    refuses((BufferError, ValueError), ".", t.__dlpack__, dl_device=(7, 0), max_version=(1, 0))
    parts = [1, 2, 1.5, "1", None, ()]
    odd = [(1,), "ab", 7, (1, 0, 0), *((a, b) for a in parts for b in parts if (a, b) not in
                                       ((1, 1), (1, 2), (2, 1), (2, 2)))]
    for version in odd:
        for more in ({}, {"copy": True}, {"dl_device": (1, 0)}):
            refuses(TypeError, "max_version", t.__dlpack__, max_version=version, **more)
    assert np.from_dlpack(t, copy=True).ctypes.data != t.data_ptr
    fresh = t.copy()
    assert np.from_dlpack(fresh, copy=True).ctypes.data != fresh.data_ptr
    refuses((BufferError, ValueError), ".", fresh.__dlpack__, dl_device=(7, 0), copy=False)
    fresh.astype("int8")
    assert fresh.is_copied  # nothing shares its memory
    lasting = t.read_only().__copy__()
    refuses(BufferError, "read-only", lasting.__dlpack__)
    assert lasting.is_copied and lasting.readonly
    shared = np.from_dlpack(fresh)
    assert shared.ctypes.data == fresh.data_ptr and not fresh.is_copied


# --- Views ------------------------------------------------------------------------------------

@st.composite
def arrays(draw):
    array = np.arange(1.0, 1 + np.prod(shape := draw(hnp.array_shapes(
        min_dims=0, max_dims=5, min_side=0, max_side=5)), dtype=int), dtype="i4").reshape(shape)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = (draw(st.sampled_from([1, 1, -1, 2])) for _ in shape)
    return array[(*(slice(None, None, step) for step in steps), ...)]


@given(arrays(), st.data())
@CHEAP
def test_basic_indexing(array, data):
    key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, max_dims=8))
    items = key if type(key) is tuple else (key,)
    dotted = any(item is ... for item in items)  # then NumPy returns an array even for one element
    same(m.from_dlpack(array)[key], array[items if dotted else (*items, ...)])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_sequence_functions_count_from_the_end_once(count):
    get = ctypes.pythonapi.PySequence_GetItem
    get.restype, get.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_ssize_t]
    array = np.arange(float(count))
    for index in range(-3 * count - 2, 2 * count + 2):
        if -count <= index < count:
            assert get(m.from_dlpack(array), index).item() == array[index]
        else:
            refuses(IndexError, "index", get, m.from_dlpack(array), index)


def test_tuple_subclasses_as_keys():
    """A subclass is accepted; an object that only claims to be one by __class__ is not."""
    Pair = type("Pair", (tuple,), {})
    Claims = type("Claims", (), {"__class__": tuple})
    t = m.from_dlpack(np.arange(6.0).reshape(2, 3))
    assert t[Pair((1, 2))].item() == 5.0 and t.to(Pair((1, 0))).device == "cpu"
    refuses(TypeError, "integers, slices", operator.getitem, t, Claims())
    refuses(TypeError, "this 'Claims' is none", t.to, Claims())


@given(arrays(), st.data())
@CHEAP
def test_views(array, data):
    t, draw = m.from_dlpack(array), data.draw
    same(t.T, array.T)
    axes = draw(st.permutations(range(array.ndim)))
    same(t.permute(*axes), array.transpose(axes))
    same(t.permute(axes), array.transpose(axes))
    same(t.squeeze(), array.squeeze())
    place = draw(st.integers(-array.ndim - 1, array.ndim))
    same(t.unsqueeze(place), np.expand_dims(array, place))
    shape = (draw(st.integers(0, 3)), *array.shape)
    wide = t.broadcast_to(shape)
    same(wide, np.broadcast_to(array, shape))
    assert wide.readonly or wide.size <= 1 or shape[0] == 1 or not array.size
    if array.ndim:
        same(t.flip(), np.flip(array))
        pair = [draw(st.integers(-array.ndim, array.ndim - 1)) for _ in range(2)]
        same(t.swapaxes(*pair), array.swapaxes(*pair))
        some = draw(st.sets(st.integers(0, array.ndim - 1)))
        same(t.flip(tuple(some)), np.flip(array, tuple(some)))
        same(t.flip(axis=-1), np.flip(array, -1))
        ones = tuple(a - draw(st.sampled_from([0, array.ndim])) for a in range(array.ndim)
                     if array.shape[a] == 1)
        same(t.squeeze(ones), array.squeeze(ones))
        assert len(t) == len(array) and [x.tolist() for x in t] == array.tolist()
    shape = draw(st.permutations(array.shape)) + [1]
    dense = np.ascontiguousarray(array)
    same(m.from_dlpack(dense).reshape(shape), dense.reshape(shape))
    same(m.from_dlpack(dense).reshape(-1), dense.reshape(-1)) if array.size else None
    try:
        want = np.reshape(array, shape, copy=False)
    except ValueError:
        refuses(ValueError, "NOT_VIEWABLE", t.reshape, *shape)
    else:
        same(t.reshape(*shape), want)
    same(m.from_dlpack(dense).view("int16"), dense.view("i2")) if dense.ndim else None


@given(SEEDS)
@CHEAP
def test_copies(seed):
    array = random_view(np.random.default_rng(seed))
    t = m.from_dlpack(array)
    for order in "CFAK":
        made = t.copy(order)
        same(made, array, shared=False)
        assert made.flags == 0 and not made.readonly  # shared by now: no longer IS_COPIED
        flags = np.from_dlpack(made).flags
        like_f = order == "F" or order == "A" and array.flags.fnc
        assert order == "K" or (flags.f_contiguous if like_f else flags.c_contiguous)
    assert t.copy().flags == 2
    same(t.contiguous(), array, shared=array.flags.c_contiguous)
    same(t.contiguous("F"), array, shared=array.flags.f_contiguous)
    same(t.to("cpu"), array)
    same(t.to("cpu", copy=True), array, shared=False)


def test_long_keys_and_deep_tensors():
    t = m.empty((1,) * 64)
    assert t[(0,) * 64].shape == () and t[(None,) * 0].ndim == 64
    refuses((ValueError, IndexError), "axes|dimensions", operator.getitem, t, None)
    refuses(IndexError, "too many", operator.getitem, t, (0,) * 65)
    assert m.empty(3)[(None,) * 40 + (1,)].ndim == 40


# --- Buffers ----------------------------------------------------------------------------------

@given(SEEDS)
@CHEAP
def test_buffer(seed):
    rng = np.random.default_rng(seed)
    array = random_view(rng)
    t = m.from_dlpack(array)
    refuses(TypeError, "bytes-like", memoryview, t)  # prevents reading bytes by mistake
    view = t.memoryview()
    assert view.readonly is t.readonly and view.shape == array.shape
    assert view.itemsize == array.itemsize and view.nbytes == array.nbytes
    back = np.asarray(view)
    assert back.dtype == array.dtype and back.tobytes() == array.tobytes()
    if array.size:
        assert back.ctypes.data == array.ctypes.data
        assert back.flags.writeable is array.flags.writeable
    if array.flags.c_contiguous:
        assert bytes(view) == array.tobytes() == view.tobytes()
    else:
        refuses((BufferError, TypeError), "contiguous|bytes-like", zlib.crc32, view)
    assert view.strides == m.from_dlpack(view).memoryview().strides


def test_what_buffers_and_numpy_lack():
    for name in ["bfloat16", "float8_e5m2", "float32x2", "complex32", "uint4"]:
        refuses(BufferError, ".", m.empty((4,), name).memoryview)
    for take in [Tensor.numpy, np.asarray, np.array]:
        refuses((BufferError, RuntimeError), "dtype", take, m.empty(2, "float32x2"))
        refuses(BufferError, "packed.*astype", take, m.empty(2, "int4"))
    lent = m.from_dlpack(np.arange(3.0)).read_only().memoryview()
    refuses((BufferError, TypeError), "read-only|writable", ctypes.c_char.from_buffer, lent)
    refuses(TypeError, "from_dlpack", type(lent.obj))


# --- Leaks, pending exceptions -----------------------------------------------------------------

class Mallinfo(ctypes.Structure):
    _fields_ = [("ordinary", ctypes.c_size_t * 4), ("hblkhd", ctypes.c_size_t),
                ("fast", ctypes.c_size_t * 2), ("uordblks", ctypes.c_size_t),
                ("free", ctypes.c_size_t * 2)]


def allocated():
    """Bytes that malloc has given away; Python's own arenas are not among them."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("not run: the C library does not say what is allocated")
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Mallinfo
    return ask().uordblks + ask().hblkhd


def test_neither_exchanges_nor_failures_leak_memory():
    """What Python does not count; test_pyprocess.py counts references."""
    legacy, tvm = old(np.arange(3.0)), tvm_ffi.from_dlpack(np.arange(3.0))
    calls = [lambda t: tvm_ffi.from_dlpack(t), lambda t: np.from_dlpack(t), lambda t: t.copy(),
             lambda t: t.__dlpack__(max_version=(1, 3)), lambda t: t.__dlpack__(), lambda t: t.T,
             lambda t: m.from_dlpack(t.__dlpack__(max_version=(1, 3))), lambda t: t[1, ..., None],
             lambda t: (m.from_dlpack(legacy), legacy.calls.clear()), lambda t: m.from_dlpack(tvm),
             lambda t: repr(t),
             lambda t: t.memoryview(), lambda t: m.empty((2, 3)), lambda t: [*t], lambda t: t[9],
             lambda t: t.reshape(5), lambda t: t.to("vulkan"), lambda t: t.view("nonsense"),
             lambda t: m.from_dlpack(3), lambda t: m.empty((1 << 50,)), lambda t: t.permute(0, 0),
             lambda t: t.view("bfloat16").memoryview(), lambda t: t.copy(order="Q"),
             lambda t: int(t), lambda t: t == 3, lambda t: m.from_dlpack(t, device="vulkan")]

    base = np.arange(12.0).reshape(3, 4)
    for place, call in enumerate(calls):
        for count in 100, 2000:
            gc.collect()
            before = allocated(), [sys.getrefcount(x) for x in (base, Tensor, m)]
            for _ in range(count):
                outcome(call, m.from_dlpack(base))
        gc.collect()
        assert [sys.getrefcount(x) for x in (base, Tensor, m)] == before[1], place
        assert allocated() - before[0] < 16 * count, place


def test_a_pending_exception_survives_the_deleter():
    def leave():
        t = m.from_dlpack(np.arange(3.0)).T
        kept = t.__dlpack__(max_version=(1, 3))
        del kept
        raise KeyError(f"{len(t)} elements")
    refuses(KeyError, "3 elements", leave)
    refuses(ZeroDivisionError, ".", lambda: print(m.from_dlpack(np.arange(3.0)), 1 / 0))


def test_pairs_of_bfloat16_are_complex_numbers():
    """dlpack.h's code 18: every part is converted as a bfloat16."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, 4096, dtype="u4")
    parts = bits.view(ml_dtypes.bfloat16).astype("f4")
    tensor = m.from_numpy(bits).view("bcomplex32")
    wide = m.empty(4096, "complex64")
    wide[:] = tensor
    np.testing.assert_array_equal(np.from_dlpack(wide).view("f4"), parts)
    numbers = np.random.default_rng(6).standard_normal(8192).astype("f4")
    tensor[:] = m.from_numpy(numbers.view("c8"))
    assert bits.tobytes() == numbers.astype(ml_dtypes.bfloat16).tobytes()
    tensor[:] = 1.5 - 2j
    assert tensor[:2].tolist() == [1.5 - 2j, 1.5 - 2j] and "1.5-2.0j" in repr(tensor[:2])
