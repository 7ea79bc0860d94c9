"""A Tensor where Python, NumPy, pandas and PyTorch expect a value or an array: right, or rejected.

NumPy is the reference. A table lists CPython's defaults for empty slots of a type; others list the
producers that keep their tensor alive, and the array interfaces.
"""

import array
import hashlib
import math
import operator
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import py_module
from dlpack_rs import abi
from views import DTYPES, random_bytes

m = py_module.load()
CHEAP = settings(max_examples=300, deadline=None, database=None)


def outcome(call, *arguments):
    """The result of a call, or its exception."""
    try:
        return call(*arguments)
    except Exception as error:
        return error


def same_value(got, want):
    return type(got) is type(want) and (got == want or (got != got and want != want))


# --- Numbers, truth, comparison ---------------------------------------------------------------

NUMBERS = [int, float, complex, bool, round, math.trunc, math.floor, math.ceil, math.sqrt, abs,
           operator.index, operator.neg, operator.invert, "{:d}".format, "{:.3f}".format]


@pytest.mark.parametrize("take", NUMBERS, ids=lambda take: getattr(take, "__name__", "format"))
@given(st.integers(0, 2**32))
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
        assert source.size != 1 or take not in (int, float, complex, bool) or \
            type(got) is type(want), repr(got)
    else:
        assert same_value(got, want), (got, want)


def values_of(dtype, *values):
    return m.from_dlpack(np.array(values, dtype))


# Each slot or function that CPython derives from another slot if empty: that default, a call, and
# the expected result.
SLOTS = {
    "bool from len": (lambda: bool(values_of("i4", 0)), False),
    "bool from len, none": (lambda: bool(values_of("f4")), ValueError),
    "bool from len, several": (lambda: bool(values_of("f4", 0, 0)), ValueError),
    "not": (lambda: not m.from_dlpack(np.array(0.0)), True),
    "any": (lambda: any(values_of("i4", 0, 0, 3)), True),
    "all": (lambda: all(values_of("i4", 1, 0, 3)), False),
    "filter": (lambda: [int(x) for x in filter(None, values_of("i4", 1, 0, 3))], [1, 3]),
    "int from a buffer": (lambda: int(values_of("u1", 49, 50)), TypeError),
    "int from a buffer, one": (lambda: int(values_of("u1", 53)), 53),
    "int with a base": (lambda: int(values_of("u1", 53), 10), TypeError),
    "float from a buffer": (lambda: float(values_of("u1", 49, 46, 53)), TypeError),
    "float from int": (lambda: float(m.from_dlpack(np.array(2**53 + 1))), float(2**53)),
    "complex from float": (lambda: complex(m.from_dlpack(np.array(1 + 2j))), 1 + 2j),
    "float of complex": (lambda: float(m.from_dlpack(np.array(1 + 2j))), TypeError),
    "int of complex": (lambda: int(m.from_dlpack(np.array(1 + 2j))), TypeError),
    "int of NaN": (lambda: int(m.from_dlpack(np.array(math.nan))), ValueError),
    "int of infinity": (lambda: int(m.from_dlpack(np.array(math.inf))), OverflowError),
    "lanes": (lambda: bool(values_of("f4", 0, 0).view("float32x2")), ValueError),
    "int of lanes": (lambda: int(values_of("f4", 0, 0).view("float32x2")), TypeError),
    "index from int": (lambda: operator.index(values_of("i4", 3)), TypeError),
    "a list's index": (lambda: [1, 2][m.from_dlpack(np.array(1))], 2),
    "range": (lambda: range(m.from_dlpack(np.array(3))), range(3)),
    "bytes from iter and index": (lambda: bytes(values_of("u1", 1, 2)), b"\1\2"),
    "bytes from index": (lambda: bytes(m.from_dlpack(np.array(3))), bytes(3)),
    "bytearray": (lambda: bytearray(values_of("u1", 1, 2)), bytearray(b"\1\2")),
    "bytes +": (lambda: b"" + values_of("u1", 65), TypeError),
    "bytes ==": (lambda: b"A" == values_of("u1", 65), TypeError),
    "compile": (lambda: compile(values_of("u1", 49), "", "eval"), TypeError),
    "hash of bytes": (lambda: hashlib.sha256(values_of("u1", 49)), TypeError),
    "iter from item": (lambda: [int(x) for x in values_of("i4", 1, 2)], [1, 2]),
    "iter from item, 0-d": (lambda: list(m.from_dlpack(np.array(3))), TypeError),
    "iter is there": (lambda: hasattr(m.Tensor, "__iter__"), True),
    "reversed from item": (lambda: [int(x) for x in reversed(values_of("i4", 1, 2))], [2, 1]),
    "reversed, 0-d": (lambda: list(reversed(m.from_dlpack(np.array(3)))), TypeError),
    "unpacking": (lambda: [float(x) for x in [*values_of("f4", 1, 2)]], [1.0, 2.0]),
    "in from iter and ==": (lambda: 1 in values_of("i4", 1, 2), TypeError),
    "in, a Tensor": (lambda: values_of("i4", 1) in values_of("i4", 1, 2), TypeError),
    "count from ==": (lambda: operator.countOf(values_of("i4", 1, 2), 1), TypeError),
    "== from identity": (lambda: values_of("i4", 1) == values_of("i4", 1), TypeError),
    "== with itself": (lambda: (lambda t: t == t)(values_of("i4", 1)), TypeError),
    "!= from ==": (lambda: values_of("i4", 1) != values_of("i4", 1), TypeError),
    "== a number": (lambda: m.from_dlpack(np.array(3)) == 3, TypeError),
    "== a number, reflected": (lambda: 3 == m.from_dlpack(np.array(3)), TypeError),
    "!= a number": (lambda: m.from_dlpack(np.array(3)) != 3, TypeError),
    "== a text": (lambda: values_of("i4", 1) == "cpu", TypeError),
    "== None": (lambda: values_of("i4", 1) == None, False),  # noqa: E711
    "!= None": (lambda: values_of("i4", 1) != None, True),  # noqa: E711
    "== an array": (lambda: (values_of("i4", 1, 2) == np.array([1, 3])).tolist(), [True, False]),
    "an array ==": (lambda: (np.array([1, 3]) == values_of("i4", 1, 2)).tolist(), [True, False]),
    "!= an array": (lambda: (values_of("i4", 1, 2) != np.array([1, 3])).tolist(), [False, True]),
    "< an array": (lambda: (values_of("i4", 1, 2) < np.array([2, 2])).tolist(), [True, False]),
    "<": (lambda: values_of("i4", 1) < values_of("i4", 2), TypeError),
    ">= a number": (lambda: m.from_dlpack(np.array(3)) >= 3, TypeError),
    "sorted": (lambda: sorted(values_of("i4", 2, 1)), TypeError),
    "max": (lambda: max(values_of("i4", 2, 1)), TypeError),
    "sum": (lambda: sum(values_of("i4", 2, 1)), TypeError),
    "list.index": (lambda: [values_of("i4", 1)].index(values_of("i4", 1)), TypeError),
    "+": (lambda: values_of("i4", 1) + 1, TypeError),
    "+ from concat": (lambda: values_of("i4", 1) + values_of("i4", 1), TypeError),
    "* from repeat": (lambda: values_of("i4", 1) * 2, TypeError),
    "2 *": (lambda: 2 * values_of("i4", 1), TypeError),
    "+=": (lambda: operator.iadd(values_of("i4", 1), 1), TypeError),
    "@": (lambda: values_of("i4", 1) @ values_of("i4", 1), TypeError),
    "divmod": (lambda: divmod(values_of("i4", 1), 1), TypeError),
    "pow": (lambda: values_of("i4", 1) ** 2, TypeError),
    "<<": (lambda: values_of("i4", 1) << 2, TypeError),
    "array +": (lambda: (np.array([1]) + values_of("i4", 1)).tolist(), [2]),
    "+ array": (lambda: (values_of("i4", 1) + np.array([1])).tolist(), [2]),
    "len, 0-d": (lambda: len(m.from_dlpack(np.array(3))), TypeError),
    "setitem": (lambda: operator.setitem(values_of("i4", 1), 0, 1), None),
    "delitem": (lambda: operator.delitem(values_of("i4", 1), 0), TypeError),
    "call": (lambda: values_of("i4", 1)(), TypeError),
    "context": (lambda: values_of("i4", 1).__enter__, AttributeError),
    "await": (lambda: values_of("i4", 1).__await__, AttributeError),
    "array.array": (lambda: array.array("d", values_of("f4", 1.5)).tolist(), [1.5]),
    "array.array of int": (lambda: array.array("i", values_of("i4", 1)).tolist(), [1]),
    "format": (lambda: f"{values_of('i4', 1):d}", TypeError),
    "% of bytes": (lambda: b"%b" % values_of("u1", 65), TypeError),
    "hash from identity": (lambda: hash(m.from_dlpack(np.array(3))), TypeError),
    "in a set": (lambda: m.from_dlpack(np.array(3)) in {3}, TypeError),
    "a dict": (lambda: {3: 7}.get(m.from_dlpack(np.array(3))), TypeError),
    "floor from float": (lambda: math.floor(m.from_dlpack(np.array(2**53 + 1))), 2**53 + 1),
    "ceil from float": (lambda: math.ceil(m.from_dlpack(np.array(-(2**53) - 1))), -(2**53) - 1),
    "ceil": (lambda: math.ceil(m.from_dlpack(np.array(1.5))), 2),
    "os.fspath": (lambda: os.fspath(values_of("u1", 65)), TypeError),
    "open": (lambda: open(values_of("u1", 65)), TypeError),
}


@pytest.mark.parametrize("call, want", SLOTS.values(), ids=SLOTS)
def test_number_slots(call, want):
    if isinstance(want, type):
        with pytest.raises(want):
            call()
    else:
        got = call()
        assert type(got) is type(want) and got == want


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


NUMPYS = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SPECS = ["", "d", "x", "b", "+d", ".2f", "8.3e", "g", ">9", "s", "%", ",", "z", "é"]


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,), (2,)], ids=str)
@pytest.mark.parametrize("value", [0, 1, 2, 77])
def test_index_and_format_are_numpys(name, shape, value):
    array = np.full(shape, value, name)
    t = m.from_dlpack(array)
    takes = [operator.index, hex, lambda x: [*range(100)][x], lambda x: list(range(100))[:x],
             lambda x: np.arange(100)[x].item(),
             *(lambda x, spec=spec: format(x, spec) for spec in SPECS if spec or not array.ndim)]
    for number, take in enumerate(takes):
        if number == 4 and array.ndim:
            continue  # an array of indices
        want, got = outcome(take, array), outcome(take, t)
        if isinstance(want, Exception):
            assert isinstance(got, (type(want), TypeError)), (number, want, got)
            assert type(got) is type(want) or array.ndim, (number, want, got)
        else:
            assert same_value(got, want), (number, want, got)
    if array.ndim:
        assert format(t, "") == str(t)


@pytest.mark.parametrize("name", [*NUMPYS, *(dtype for dtype in DTYPES if dtype.kind == "V")],
                         ids=str)
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


# --- NumPy, pandas, PyTorch -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@given(st.integers(0, 2**32))
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


def test_pandas_sees_the_array():
    pandas = pytest.importorskip("pandas")
    t = m.from_dlpack(np.arange(6, dtype="i2").reshape(2, 3))
    assert pandas.Series(t[0]).tolist() == [0, 1, 2] and pandas.Series(t[0]).dtype == "int16"
    assert pandas.DataFrame(t).dtypes.tolist() == [np.dtype("i2")] * 3
    assert pandas.DataFrame({"a": t[1]})["a"].tolist() == [3, 4, 5]
    assert pandas.Index(t[0]).tolist() == [0, 1, 2]


def test_torch_sees_the_array():
    torch = pytest.importorskip("torch")
    for source in (torch.arange(6).reshape(2, 3), torch.tensor(7), torch.ones(2, 3).T,
                   torch.zeros(0, 2), torch.tensor([1 + 2j]), torch.tensor([True])):
        for take in (torch.asarray, torch.as_tensor, torch.tensor, torch.from_dlpack):
            found = take(m.from_dlpack(source))
            assert found.shape == source.shape and found.dtype == source.dtype
            assert found.tolist() == source.tolist(), take


# --- Tensors that stay alive ------------------------------------------------------------------


IN_PLACE = {
    "squeeze_": lambda x: x.squeeze_(), "unsqueeze_": lambda x: [x.unsqueeze_(0) for _ in range(4)],
    "t_": lambda x: x[:, 0].t_() if x.ndim > 2 else x.t_(), "resize_": lambda x: x.resize_(1000),
    "set_": lambda x: x.set_(), "transpose_": lambda x: x.transpose_(0, -1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1), "as_strided_": lambda x: x.as_strided_((1,), (1,)),
}


def by_legacy_capsule(x):
    return m.from_dlpack(x.__dlpack__(), legacy_writable=True)


@pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE)
@pytest.mark.parametrize("take", [
    m.from_dlpack, by_legacy_capsule, lambda x: m.from_dlpack(x.__dlpack__(max_version=(1, 3))),
    lambda x: m.from_dlpack(x, device="cpu"), lambda x: m.from_dlpack(x, copy=False),
    lambda x: m.from_dlpack(x).T.T, lambda x: pyabi_tensor(x),
], ids=["exchange", "legacy", "versioned", "device", "no-copy", "view", "C"])
def test_in_place_shape_changes_by_torch_do_not_affect_the_tensor(change, take):
    torch = pytest.importorskip("torch")
    x = torch.arange(24.0).reshape(3, 1, 8)
    t = take(x)
    values, shape, strides = t.tolist() if hasattr(t, "tolist") else None, t.shape, t.strides
    change(x)
    assert (t.shape, t.strides) == (shape, strides) == ((3, 1, 8), (8, 8, 1))
    if values and change is not IN_PLACE["resize_"]:
        assert t.tolist() == values
    assert np.from_dlpack(t).shape == shape


def pyabi_tensor(x):
    import pyabi
    return pyabi.import_(x)


def test_the_struct_may_change_and_be_freed():
    """A producer that keeps its struct, and rewrites it after every kind of import."""
    class Live:
        def __init__(self):
            self.array = np.arange(6.0).reshape(2, 3)
            self.capsule = self.array.__dlpack__(max_version=(1, 0))
            self.struct = abi.capsule.managed(self.capsule)

        def __dlpack__(self, **_):
            return self.capsule

    for steps in ([], [lambda t: t.T.T], [lambda t: t[:]], [lambda t: t.reshape(2, 3)]):
        live = Live()
        t = m.from_dlpack(live)
        inner = live.struct.dl_tensor
        inner.shape[0], inner.shape[1], inner.strides[0] = 1 << 40, -7, 1 << 50
        inner.ndim, inner.byte_offset, inner.dtype.bits = 60, 1 << 40, 8
        for step in steps:
            t = step(t)
        assert t.shape == (2, 3) and t.strides == (3, 1) and t.dtype == "float64"
        assert t.tolist() == live.array.tolist() and t.nbytes == 48 and repr(t)
        assert np.from_dlpack(t).tolist() == live.array.tolist()


REFUSED = {
    "requires_grad": (lambda torch: torch.ones(3, requires_grad=True), "require gradient"),
    "not a leaf": (lambda torch: torch.ones(3, requires_grad=True) * 2, "require gradient"),
    "half": (lambda torch: torch.ones(3, dtype=torch.bfloat16, requires_grad=True), "gradient"),
    "complex": (lambda torch: torch.ones(3, dtype=torch.complex64, requires_grad=True), "gradient"),
    "parameter": (lambda torch: torch.nn.Parameter(torch.ones(3)), "require gradient"),
    "sparse": (lambda torch: torch.zeros(2).to_sparse(), "layout"),
    "csr": (lambda torch: torch.eye(2).to_sparse_csr(), "layout"),
    "meta": (lambda torch: torch.zeros(2, device="meta"), "meta"),
    "quantised": (lambda torch: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
                  "not supported"),
    "conjugated": (lambda torch: torch.tensor([1 + 2j]).conj(), "conjugate bit"),
    "negated": (lambda torch: torch.tensor([1 + 2j]).conj().imag, "resolve_neg"),
    "negated, 0-d": (lambda torch: torch.tensor([1 + 2j]).conj().imag[0], "resolve_neg"),
    "negated complex": (lambda torch: torch._neg_view(torch.tensor([1 + 2j])), "resolve_neg"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make, words", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("keywords", [{}, {"device": "cpu"}, {"copy": True}, {"copy": False}],
                         ids=["plain", "device", "copy", "no-copy"])
def test_tensors_that_torch_rejects(make, words, keywords):
    """The text of its `__dlpack__`, which its exchange API does not check; on one line."""
    torch = pytest.importorskip("torch")
    x = make(torch)
    own = outcome(lambda: x.__dlpack__(**{"dl_device": (1, 0)} if "device" in keywords else {}))
    kind, own_words = BufferError, words
    if isinstance(own, NotImplementedError):  # of meta, for another device
        kind, own_words = type(own), "no data"
    with pytest.raises(kind, match=own_words) as caught:
        m.from_dlpack(x, **keywords)
    assert len(str(caught.value).splitlines()) == 1
    if isinstance(own, Exception):
        assert str(caught.value) == str(own)
    plain = {"requires_grad": lambda x: x.detach(), "conjugated": lambda x: x.resolve_conj(),
             "negated": lambda x: x.resolve_neg()}
    for name, cure in plain.items():
        if name in words or (name == "requires_grad" and "gradient" in words):
            assert m.from_dlpack(cure(x)).shape == tuple(x.shape)


def test_tensors_without_gradients_use_the_exchange_api():
    torch = pytest.importorskip("torch")
    asked = []

    class Spied(torch.Tensor):
        def __dlpack__(self, **keywords):
            asked.append(keywords)
            return super().__dlpack__(**keywords)

    for x in (torch.ones(3), torch.ones(3, dtype=torch.int32), torch.tensor([True])):
        m.from_dlpack(x.as_subclass(Spied))
    assert not asked
    m.from_dlpack(torch.tensor([1j]).as_subclass(Spied))
    assert len(asked) == 1


@pytest.mark.parametrize("name, watched", [("requires_grad", True), ("stop_gradient", False)])
def test_gradient_flags_of_any_framework(name, watched):
    """An object's attributes count, not PyTorch's name, and only where there is a table."""
    import test_pyabi
    for says in (True, False):
        obj = test_pyabi.with_table(test_pyabi.Table(test_pyabi.hands_out))
        setattr(type(obj), name, says)
        m.from_dlpack(obj)
        assert len(obj.calls) == (says == watched)


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
        pyabi_tensor(source)


@pytest.mark.parametrize("source", [np.float64(2.5), np.int8(-3), np.bool_(True), np.uint64(7),
                                    np.complex64(1j), np.float16(0.5), ml_dtypes.bfloat16(1.5),
                                    ml_dtypes.float8_e5m2(-1), ml_dtypes.int4(-2)],
                         ids=lambda s: s.dtype.name)
def test_scalars_of_numpy(source):
    t = m.from_dlpack(source)
    assert t.shape == () and t.dtype == source.dtype.name and t.item() == source
    assert t.readonly == isinstance(source, np.number | np.bool_)  # else it is a copy of its own


class Interface:
    def __init__(self, array, name="__array_interface__", **changes):
        self.array = array
        found = {**array.__array_interface__, **changes}
        setattr(self, name, {key: value for key, value in found.items() if value is not ...})


@pytest.mark.parametrize("flag, readonly", [
    (np.True_, True), (np.False_, False), (None, False), (1, True), (0, False), ("x", True)])
def test_the_flag_of_an_array_interface_is_any_truth(flag, readonly):
    array = np.arange(6.0)
    t = m.from_dlpack(Interface(array, data=(array.ctypes.data, flag)))
    assert t.readonly is readonly and t.tolist() == array.tolist()


@pytest.mark.parametrize("address", [np.int64, np.uint64, int])
def test_the_address_of_an_array_interface_is_any_integer(address):
    array = np.arange(6.0)
    t = m.from_dlpack(Interface(array, data=(address(array.ctypes.data), False)))
    assert t.tolist() == array.tolist()


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
    class Producer:
        def __init__(self, device):
            self.device = device

        def __dlpack__(self, **_):
            capsule = np.arange(3.0).__dlpack__(max_version=(1, 0))
            inner = abi.capsule.managed(capsule).dl_tensor
            inner.device.device_type, inner.device.device_id = self.device
            return capsule

    for code, name in ((3, "cuda_host"), (11, "rocm_host"), (13, "cuda_managed")):
        for ordinal in (0, 1, 7):
            t = m.from_dlpack(Producer((code, ordinal)))
            assert t.__dlpack_device__() == (code, ordinal)
            assert t.device == (f"{name}:{ordinal}" if ordinal else name)
            assert t.tolist() == [0, 1, 2] and t[1].item() == 1
            assert t[::-1].device == t.device and np.from_dlpack(t).tolist() == [0, 1, 2]
        with pytest.raises(BufferError, match="value -1"):
            m.from_dlpack(Producer((code, -1)))
    with pytest.raises(BufferError, match="value 1, limit 0"):
        m.from_dlpack(Producer((1, 1)))


# --- Messages ---------------------------------------------------------------------------------


def test_remedies_do_not_refer_to_the_documentation():
    source = Path(__file__).parents[2] / "crates/core/src/error/status.rs"
    assert "See the function's documentation" not in source.read_text()


READ_ONLY = np.arange(3.0)
READ_ONLY.flags.writeable = False


class Legacy:
    def __dlpack__(self):
        return np.arange(3.0).__dlpack__()


WORDS = {
    "dtype": (lambda t: m.empty(3, "flaot32"), ValueError,
              ["empty", "dtype", "flaot32", "float32"]),
    "device": (lambda t: m.empty(3, "i", "gpu"), ValueError, ["dtype", '"i"']),
    "device name": (lambda t: t.to("gpu"), ValueError, ["to", "device", "gpu", "cuda:0"]),
    "ordinal": (lambda t: t.to("cpu:1"), BufferError, ["device", "cpu:1", "value 1", "limit 0"]),
    "keyword": (lambda t: t.__dlpack__(foo=1), TypeError, ["__dlpack__", "'foo'"]),
    "positions": (lambda t: t.copy("C", 1), TypeError, ["copy", "at most 1", "2 given"]),
    "twice": (lambda t: t.copy("C", order="C"), TypeError, ["copy", "multiple values", "'order'"]),
    "order": (lambda t: t.copy("Ä"), ValueError, ["copy", "order", "'K'", r"\xc3\x84"]),
    "a long text": (lambda t: t.copy("C" * 10**6), ValueError, ["order", "CCC..."]),
    "read-only": (lambda t: m.from_dlpack(READ_ONLY).__dlpack__(), BufferError,
                  ["read-only", "max_version=(1, 0)", "copy()"]),
    "legacy": (lambda t: m.from_dlpack(Legacy()).__dlpack__(), BufferError,
               ["legacy_writable=True"]),
    "version": (lambda t: t.__dlpack__(max_version=(1, 2, 3)), TypeError, ["max_version", "3"]),
    "large ordinal": (lambda t: t.__dlpack__(dl_device=(1, 2**40)), ValueError,
                      ["dl_device", str(2**40)]),
    "large ordinal of a pair": (lambda t: t.to((1, 2**40)), ValueError, ["device", str(2**40)]),
    "large type of a pair": (lambda t: t.to((-2**40, 0)), ValueError, ["device", str(-2**40)]),
    "no protocol": (lambda t: m.from_dlpack([1, 2]), AttributeError, ["'list'", "__dlpack__"]),
    "a foreign name": (lambda t: m.from_dlpack(type("Ünder", (), {})()), AttributeError,
                       ["nder'"]),
    "hash": (lambda t: hash(t), TypeError, ["unhashable", "Tensor"]),
    "int": (lambda t: int(t), TypeError, ["int()", "3 elements", "tolist()"]),
    "bool": (lambda t: bool(t), ValueError, ["bool()", "3 elements", "tolist()"]),
    "item": (lambda t: t.item(), ValueError, ["item", "value 3", "limit 1"]),
    "==": (lambda t: t == 3, TypeError, ["==", "numpy()", "`is`"]),
    "in": (lambda t: 3 in t, TypeError, ["__contains__", "numpy()"]),
    "axes": (lambda t: t.permute(0, 5), ValueError, ["permute", "axes"]),
    "index": (lambda t: t[7], IndexError, ["value 7", "limit 2"]),
}


@pytest.mark.parametrize("call, kind, words", WORDS.values(), ids=WORDS)
def test_messages_echo_the_value_and_name_the_argument(call, kind, words):
    with pytest.raises(kind) as caught:
        call(m.from_dlpack(np.arange(3.0)))
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "documentation" not in text and len(text) < 420


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
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
