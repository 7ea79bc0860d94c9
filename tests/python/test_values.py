"""A Tensor where Python and NumPy expect a value or an array: right, or rejected.

NumPy is the reference. Tables list CPython's defaults for empty slots of a type.
"""

import array
import hashlib
import math
import operator
import os
import re
import sys
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import py_module
import pyabi
import pythons
from fakes import CHEAP, SEEDS, Interface, edited, outcome, refuses
from views import DTYPES, random_bytes

m = py_module.load()


def same_value(got, want):
    return type(got) is type(want) and (got == want or (got != got and want != want))


# --- Numbers, truth, comparison ---------------------------------------------------------------

FORMATS = [f"{{:{spec}}}".format for spec in
           ("d", "x", "b", "+d", ".2f", "8.3e", "g", ">9", "s", "%", ",", "z", "é")]
NUMBERS = [int, float, complex, bool, round, math.trunc, math.floor, math.ceil, math.sqrt, abs,
           operator.index, operator.neg, operator.invert, hex, range(100).__getitem__,
           *FORMATS]


@pytest.mark.parametrize("take", NUMBERS, ids=lambda take: getattr(take, "__name__", "format"))
@given(SEEDS)
@CHEAP
def test_a_number_is_the_value_or_an_exception(take, seed):
    """Tensors of every dtype, of one element in 0 to 3 dimensions, of none and of several."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[rng.integers(len(DTYPES))]
    shape = [(), (), (1,), (1, 1, 1), (0,), (2,), (1, 3)][rng.integers(7)]
    source = random_bytes(rng, shape, dtype)
    if rng.random() < 0.3 and dtype.itemsize == 1:
        source = np.full(shape, rng.integers(48, 58), dtype)  # a digit, where bytes are parsed
    with np.errstate(all="ignore"):
        want = outcome(take, source.item()) if source.size == 1 else TypeError()
    got = outcome(take, m.from_dlpack(source))
    if isinstance(got, Exception):
        allowed = (TypeError, ValueError) if take is bool else (TypeError, type(want))
        assert isinstance(got, allowed), repr(got)
        exact = take in (int, float, complex, bool) or take in FORMATS and not source.ndim
        assert source.size != 1 or not exact or type(got) is type(want), repr(got)
    else:
        assert same_value(got, want), (got, want)


# Calls of slots and functions that CPython derives from another slot if empty, and the results;
# `of` makes a tensor of one axis, `scalar` one of none.
SLOTS = {
    "bool(of('i4', 0))": False, "not scalar(0.0)": True, "any(of('i4', 0, 0, 3))": True,
    "all(of('i4', 1, 0, 3))": False, "[int(x) for x in filter(None, of('i4', 1, 0, 3))]": [1, 3],
    "int(of('u1', 53))": 53, "float(scalar(2**53 + 1))": float(2**53), "range(scalar(3))": range(3),
    "complex(scalar(1 + 2j))": 1 + 2j, "[1, 2][scalar(1)]": 2, "bytes(scalar(3))": bytes(3),
    "bytes(of('u1', 1, 2))": b"\1\2", "bytearray(of('u1', 1, 2))": bytearray(b"\1\2"),
    "[int(x) for x in of('i4', 1, 2)]": [1, 2], "hasattr(m.Tensor, '__iter__')": True,
    "[int(x) for x in reversed(of('i4', 1, 2))]": [2, 1], "of('i4', 1) == None": False,
    "[float(x) for x in [*of('f4', 1, 2)]]": [1.0, 2.0], "of('i4', 1) != None": True,
    "(of('i4', 1, 2) == np.array([1, 3])).tolist()": [True, False],
    "(np.array([1, 3]) == of('i4', 1, 2)).tolist()": [True, False],
    "(of('i4', 1, 2) != np.array([1, 3])).tolist()": [False, True],
    "(of('i4', 1, 2) < np.array([2, 2])).tolist()": [True, False],
    "(np.array([1]) + of('i4', 1)).tolist()": [2], "(of('i4', 1) + np.array([1])).tolist()": [2],
    "operator.setitem(of('i4', 1), 0, 1)": None, "math.ceil(scalar(1.5))": 2,
    "array.array('d', of('f4', 1.5)).tolist()": [1.5],
    "array.array('i', of('i4', 1)).tolist()": [1],
    "math.floor(scalar(2**53 + 1))": 2**53 + 1, "math.ceil(scalar(-(2**53) - 1))": -(2**53) - 1,
    "format(one, '') == str(one)": True, "format(scalar(3), '')": "3",
}
RAISE = {
    ValueError: "bool(of('f4'))  bool(of('f4', 0, 0))  bool(of('f4', 0, 0).view('float32x2'))  "
                "int(scalar(math.nan))",
    OverflowError: "int(scalar(math.inf))",
    AttributeError: "one.__enter__  one.__await__",
    TypeError: "int(of('u1', 49, 50))  int(of('u1', 53), 10)  float(of('u1', 49, 46, 53))  "
               "float(scalar(1 + 2j))  int(scalar(1 + 2j))  b'' + of('u1', 65)  "
               "int(of('f4', 0, 0).view('float32x2'))  operator.index(of('i4', 3))  "
               "b'A' == of('u1', 65)  compile(of('u1', 49), '', 'eval')  "
               "hashlib.sha256(of('u1', 49))  list(scalar(3))  list(reversed(scalar(3)))  "
               "1 in of('i4', 1, 2)  one in of('i4', 1, 2)  operator.countOf(of('i4', 1, 2), 1)  "
               "one == of('i4', 1)  one == one  one != of('i4', 1)  scalar(3) == 3  3 == scalar(3)  "
               "scalar(3) != 3  one == 'cpu'  one < of('i4', 2)  scalar(3) >= 3  "
               "sorted(of('i4', 2, 1))  max(of('i4', 2, 1))  sum(of('i4', 2, 1))  "
               "[one].index(of('i4', 1))  one + 1  one + one  one * 2  2 * one  "
               "operator.iadd(one, 1)  one @ one  divmod(one, 1)  one ** 2  one << 2  "
               "len(scalar(3))  operator.delitem(one, 0)  one()  format(one, 'd')  "
               "b'%b' % of('u1', 65)  hash(scalar(3))  scalar(3) in {3}  {3: 7}.get(scalar(3))  "
               "os.fspath(of('u1', 65))  open(of('u1', 65))",
}


def slot(call):
    def of(dtype, *values):
        return m.from_dlpack(np.array(values, dtype))

    return eval(call, {**globals(), "of": of, "one": of("i4", 1),
                       "scalar": lambda value: m.from_dlpack(np.array(value))})


@pytest.mark.parametrize("call", SLOTS)
def test_slots(call):
    got, want = slot(call), SLOTS[call]
    assert type(got) is type(want) and got == want


@pytest.mark.parametrize("kind, call", [(kind, call) for kind in RAISE
                                        for call in RAISE[kind].split("  ")])
def test_slots_that_raise(kind, call):
    refuses(kind, ".", slot, call)


def test_every_special_method_is_known():
    """A slot of a new Python, or of another type of ours, needs a row above."""
    ours = {name for name in dir(m.Tensor) if name.startswith("__")} - set(dir(object))
    assert m.Tensor.__format__ is not object.__format__
    ours.discard("__slotnames__")  # copyreg leaves it on a type after an attempt to copy
    assert ours == {"__array__", "__bool__", "__complex__", "__contains__", "__dlpack__",
                    "__dlpack_c_exchange_api__", "__dlpack_device__", "__float__", "__getitem__",
                    "__array_interface__", "__ceil__", "__floor__", "__index__", "__int__",
                    "__round__", "__trunc__", "__iter__", "__len__", "__module__",
                    "__numpy_dtype__", "__copy__", "__cuda_array_interface__", "__deepcopy__",
                    "__delitem__", "__setitem__"}


@pytest.mark.parametrize("name", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4)], ids=str)
def test_the_array_interface_is_numpys(name, shape):
    base = np.zeros(shape, name)
    for array in [base, base.T, base[..., ::-1] if shape else base, base[1:] if shape else base]:
        for readonly in (False, True):
            array = array[...]
            array.flags.writeable = not readonly
            t = m.from_dlpack(array)
            if array.dtype.kind == "V":
                assert not hasattr(t, "__array_interface__")
                continue
            found, want = t.__array_interface__, array.__array_interface__
            assert {key: found[key] for key in ("shape", "typestr", "version")} == \
                {key: want[key] for key in ("shape", "typestr", "version")}
            assert found["data"] == (want["data"][0] if array.size else 0, readonly)
            if array.size > 1:
                assert found["strides"] == want["strides"]
            again = type("Only", (), {"__array_interface__": found, "owner": t})()
            seen = np.asarray(again)
            assert seen.flags.writeable is not readonly or not seen.size
            assert seen.tobytes() == array.tobytes() and seen.shape == array.shape


def test_an_array_by_the_array_interface_keeps_the_tensor_alive():
    owner = np.arange(5.0)
    gone = weakref.ref(owner)
    seen = np.asarray(m.from_dlpack(owner))
    del owner
    assert gone() is not None and seen.tolist() == [0, 1, 2, 3, 4]
    del seen
    assert gone() is None


# --- Arrays of NumPy ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@given(SEEDS)
@CHEAP
def test_numpy_sees_the_array(seed):
    rng = np.random.default_rng(seed)
    source = random_bytes(rng, tuple(rng.integers(0, 4, rng.integers(0, 4))),
                          DTYPES[rng.integers(len(DTYPES))])
    source = source.T if rng.random() < 0.5 else source
    t = m.from_dlpack(source)
    for found in (np.asarray(t), np.array(t), np.asarray(t, source.dtype), t.numpy()):
        assert (found.dtype, found.shape) == (source.dtype, source.shape)
        assert found.tobytes() == source.tobytes()
    listed = np.array([t])[0]  # a number through float(), which drops a NaN's payload
    assert (listed.dtype, listed.shape) == (source.dtype, source.shape)
    assert source.ndim == 0 or listed.tobytes() == source.tobytes()
    np.testing.assert_array_equal(listed, source)
    assert np.result_type(t) == source.dtype == np.result_type(t, t)
    assert np.promote_types(t, "f8") == np.promote_types(source.dtype, "f8")
    assert np.shares_memory(np.asarray(t), source) or not source.size
    assert np.array_equal(np.add(t, t), source + source, equal_nan=source.dtype.kind in "fc")
    # The protocol: the caller relies on dtype and copy.
    for dtype in (None, source.dtype, "f8", "c16", "i2"):
        for copy in (None, True, False):
            with np.errstate(all="ignore"):
                want = outcome(lambda: source.__array__(*([dtype] if dtype else []), copy=copy))
                got = outcome(lambda: t.__array__(dtype, copy=copy))
            if isinstance(want, Exception):
                assert type(got) is type(want)
                continue
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
            if source.size:
                shared = np.shares_memory(want, source)
                assert np.shares_memory(got, source) is shared


# --- Tensors that stay alive ------------------------------------------------------------------


def test_the_struct_may_change_and_be_freed():
    """A producer that keeps its struct, and rewrites it after every kind of import."""
    for steps in ([], [lambda t: t.T.T], [lambda t: t[:]], [lambda t: t.reshape(2, 3)]):
        array, structs = np.arange(6.0).reshape(2, 3), []
        producer = edited(structs.append, array)
        t = m.from_dlpack(producer)
        inner = structs[0].dl_tensor
        inner.shape[0], inner.shape[1], inner.strides[0] = 1 << 40, -7, 1 << 50
        inner.ndim, inner.byte_offset, inner.dtype.bits = 60, 1 << 40, 8
        for step in steps:
            t = step(t)
        assert t.shape == (2, 3) and t.strides == (3, 1) and t.dtype == "float64"
        assert t.tolist() == array.tolist() and t.nbytes == 48 and repr(t)
        assert np.from_dlpack(t).tolist() == array.tolist()


# --- Buffers and array interfaces -------------------------------------------------------------


SCALARS = [np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.datetime64("NaT"),
           np.array(["2020"], "M8[s]"), np.array([3], "m8[ns]"), np.longdouble(1),
           np.str_("ab"), np.void(b"abc"), np.array(["ab"]), np.array([None]),
           np.zeros(2, [("a", "i4")])]


@pytest.mark.parametrize("source", SCALARS, ids=lambda s: f"{type(s).__name__}-{s.dtype}")
def test_dtypes_without_a_dlpack_code_are_rejected(source):
    with pytest.raises((BufferError, TypeError)):
        m.from_dlpack(source)
    with pytest.raises((BufferError, TypeError)):
        pyabi.import_(source)


@pytest.mark.parametrize("source", [np.float64(2.5), np.int8(-3), np.bool_(True), np.uint64(7),
                                    np.complex64(1j), np.float16(0.5), ml_dtypes.bfloat16(1.5),
                                    ml_dtypes.float8_e5m2(-1), ml_dtypes.int4(-2)],
                         ids=lambda s: s.dtype.name)
def test_scalars_of_numpy(source):
    t = m.from_dlpack(source)
    assert t.shape == () and t.dtype == source.dtype.name and t.item() == source
    assert t.readonly == isinstance(source, np.number | np.bool_)  # else it is a copy of its own


@pytest.mark.parametrize("flag", [np.True_, np.False_, None, 1, 0, "x"])
@pytest.mark.parametrize("address", [np.int64, np.uint64, int])
def test_the_data_of_an_array_interface_is_any_integer_and_any_truth(address, flag):
    array = np.arange(6.0)
    t = m.from_dlpack(Interface(array, data=(address(array.ctypes.data), flag)))
    assert t.readonly is bool(flag) and t.tolist() == array.tolist()


def test_addresses_of_the_upper_half():
    """Tagged pointers, whose memory is not read."""
    array = np.arange(6.0)
    high = (1 << 64) - 4096
    assert m.from_dlpack(Interface(array, data=(high, False))).data_ptr == high
    with pytest.raises(ValueError, match="strides|address space"):
        m.from_dlpack(Interface(array, data=((1 << 64) - 8, False)))
    with pytest.raises(ValueError, match="data"):
        m.from_dlpack(Interface(array, data=(0, False)))


@pytest.mark.parametrize("kind, readonly", [(bytes, True), (bytearray, False), (memoryview, True),
                                            (lambda data: array.array("B", data), False)])
def test_the_data_of_an_array_interface_may_be_a_buffer(kind, readonly):
    array = np.arange(6.0).reshape(2, 3)
    data = kind(array.tobytes() + bytes(8))
    t = m.from_dlpack(Interface(array, data=data))
    assert t.tolist() == array.tolist() and t.readonly is readonly
    t = m.from_dlpack(Interface(array, data=data, offset=8))
    assert t.tolist() == [[1, 2, 3], [4, 5, 0]]
    t = m.from_dlpack(Interface(array, data=data, offset=16, strides=(24, -8)))
    assert t.tolist() == array[:, ::-1].tolist()
    assert m.from_dlpack(Interface(array, data=data, shape=(0, 9), offset=99)).size == 0
    before = sys.getrefcount(data)
    for offset in (9, 16, 1 << 62, -8):
        with pytest.raises(ValueError, match="offset|buffer"):
            m.from_dlpack(Interface(array, data=data, offset=offset))
    assert sys.getrefcount(data) == before
    if kind is bytearray:
        with pytest.raises(BufferError):  # it is referenced, and so is its memory
            data.extend(bytes(1 << 20))


def test_the_dictionary_is_kept_too():
    """It may have the only reference to the memory."""
    class Fresh:
        @property
        def __array_interface__(self):
            array = np.full(4096, 7)
            seen.append(weakref.ref(array))
            return {**array.__array_interface__, "owner": array}

    seen = []
    t = m.from_dlpack(Fresh())
    assert seen[0]() is not None and set(t.tolist()) == {7}
    del t
    assert seen[0]() is None


def test_notations():
    array = np.arange(6, dtype="i2")
    assert m.from_dlpack(Interface(array, typestr="=i2")).tolist() == array.tolist()
    for typestr in (b"=i2", 7):
        with pytest.raises(TypeError, match="typestr is no text but '(bytes|int)'"):
            m.from_dlpack(Interface(array, typestr=typestr))
    for typestr in ("<M8[ns]", ">i2", "|V2", "<i3", ""):
        with pytest.raises(BufferError, match=re.escape(f"'{typestr}'")):
            m.from_dlpack(Interface(array, typestr=typestr))
    with pytest.raises(TypeError, match="no dict but 'property'"):
        m.from_dlpack(type("Class", (), {"__array_interface__": property(lambda self: {})}))
    with pytest.raises(BufferError, match="'w'|'u'"):
        m.from_dlpack(array_of_text())


def array_of_text():
    return array.array("w" if sys.version_info >= (3, 13) else "u", "ab")


@given(st.data())
@CHEAP
def test_strides_of_extents_of_1_and_0_are_ignored(data):
    """Any number of bytes, in buffers and array interfaces; our strides are then compact."""
    shape = data.draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=1, max_size=4))
    source = np.arange(math.prod(shape), dtype="f4").reshape(shape)
    compact = np.zeros([extent or 1 for extent in shape], "f4").strides
    odd = st.integers(-9, 9) | st.just(1 << 40)
    strides = [data.draw(odd) if extent == 1 or not source.size else stride
               for extent, stride in zip(shape, compact)]
    base = np.lib.stride_tricks.as_strided(source, shape, strides)
    takes = [Interface(source, strides=tuple(strides), shape=tuple(shape))]
    if base.size:
        takes.append(memoryview(base) if base.strides == tuple(strides) else source)
    for taken in takes:
        t = m.from_dlpack(taken)
        assert t.shape == tuple(shape) and t.tolist() == source.tolist()
        assert t.strides == tuple(stride // 4 for stride in compact)
        assert t.contiguous().data_ptr == t.data_ptr  # nothing is copied for them
        assert t.memoryview().c_contiguous


def test_ordinals_of_managed_and_pinned_memory():
    """CuPy gives managed memory the ordinal of its device: kept, and read as host memory."""
    def on(code, ordinal):
        return edited(lambda struct: setattr(struct.dl_tensor, "device", (code, ordinal)),
                      np.arange(3.0))

    for code, name in ((3, "cuda_host"), (11, "rocm_host"), (13, "cuda_managed")):
        for ordinal in (0, 1, 7):
            t = m.from_dlpack(on(code, ordinal))
            assert t.__dlpack_device__() == (code, ordinal)
            assert t.device == (f"{name}:{ordinal}" if ordinal else name)
            assert t.tolist() == [0, 1, 2] and t[1].item() == 1
            assert t[::-1].device == t.device and np.from_dlpack(t).tolist() == [0, 1, 2]
        with pytest.raises(BufferError, match="value -1"):
            m.from_dlpack(on(code, -1))
    with pytest.raises(BufferError, match="value 1, limit 0"):
        m.from_dlpack(on(1, 1))


# --- NumPy's own tests ------------------------------------------------------------------------

def numpys_tests():
    """NumPy's test_dlpack.py with a Tensor between producer and consumer, whose `__dlpack__`
    replaces the array's."""
    path = Path(np._core.__file__).parent / "tests" / "test_dlpack.py"
    if not path.exists():  # some distributions omit the tests
        return []
    text = path.read_text()
    text = text.replace("np.from_dlpack(", "through(")
    own_words = 'ValueError, match="NumPy only supports stream=None."'  # since 2.5
    text = text.replace(own_words, "RuntimeError")
    text = re.sub(r"(?<!super\(\))(?<!\bdef )\b(\w+)\.__dlpack__\(", r"tensor(\1).__dlpack__(", text)
    text = re.sub(r"\b(\w+)\.__dlpack_device__\(", r"tensor(\1).__dlpack_device__(", text)
    names = {"__name__": "numpys_tests", "tensor": m.from_dlpack,
             "through": lambda x, **keywords: np.from_dlpack(m.from_dlpack(x), **keywords)}
    exec(compile(text, str(path), "exec"), names)
    tests = names["TestDLPack"]()
    return [(name, getattr(tests, name)) for name in dir(tests) if name.startswith("test_")]


def calls_of(test):
    """The combinations of arguments from a test's marks, as pytest makes them."""
    rows = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "skipif" and mark.args[0]:
            return []
        if mark.name == "parametrize":
            names = [name.strip() for name in mark.args[0].split(",")]
            values = [value if len(names) > 1 else (value,) for value in mark.args[1]]
            rows = [{**row, **dict(zip(names, value))} for row in rows for value in values]
    return rows


@pytest.mark.parametrize("test, arguments", [
    pytest.param(test, arguments, id=f"{name}-{number}")
    for name, test in numpys_tests() for number, arguments in enumerate(calls_of(test))])
def test_numpys_own(test, arguments):
    test(**arguments)


# --- Other Pythons ----------------------------------------------------------------------------


def test_without_cpython_only_the_abi_is_available():
    """PyPy has no ctypes.PyDLL, and no C API that the library could use."""
    code = """
import ctypes, sys
del ctypes.PyDLL, ctypes.pythonapi
sys.implementation.name = "pypy"
import dlpack_rs, dlpack_rs.abi as abi
assert abi.lib.dlrs_version_string() and dlpack_rs.DEVICES[1] == "cpu"
for name in ("from_dlpack", "Tensor", "empty"):
    try: getattr(dlpack_rs, name)
    except ImportError as error: assert "pypy" in str(error) and "CPython" in str(error), error
    else: raise AssertionError(name)
try: from dlpack_rs import from_dlpack
except ImportError as error: assert "CPython" in str(error)
else: raise AssertionError
assert not hasattr(dlpack_rs, "spam")
"""
    pythons.check(sys.executable, code)
