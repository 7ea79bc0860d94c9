"""Writing into a Tensor, converting it, creating new ones: the reference for every value is NumPy,
and ml_dtypes for the types that NumPy lacks.
"""

import itertools
import math
import operator
from collections import deque
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import py_module
from dtypes import ALL, any_dtype, bits_of, converted, small, view_of_any
from fakes import CHEAP, SEEDS, Forger, outcome, refuses, setting
from views import DTYPES, addresses, random_bytes, random_destination

m = py_module.load()


# --- Writing ----------------------------------------------------------------------------------

def random_key(rng, shape):
    key = []
    for extent in shape[:rng.integers(len(shape) + 1)]:
        start, stop = sorted(rng.integers(0, extent + 1, 2))
        key.append([slice(None), slice(start, stop), slice(None, None, -1),
                    int(rng.integers(extent)) if extent else slice(0, 0)][rng.integers(4)])
    place = rng.integers(len(key) + 1) if len(key) == len(shape) else len(key)
    extra = [[], [None], [...]][rng.integers(3)]
    return (*key[:place], *extra, *key[place:]) if rng.integers(2) or len(key) != 1 else key[0]


def fits(rng, shape, dtype):
    """An array that broadcasts to the shape, as NumPy's assignment does."""
    shape = tuple(1 if rng.random() < 0.3 else extent for extent in shape)
    shape = shape[rng.integers(len(shape) + 1):] if rng.random() < 0.4 else shape
    shape = (1,) * rng.integers(3) + shape if rng.random() < 0.2 else shape
    array = np.asarray(small(rng, shape, dtype))
    return array[..., ::-1] if array.ndim and rng.integers(2) else array


@given(SEEDS)
@CHEAP
def test_setitem(seed):
    rng = np.random.default_rng(seed)
    dtype = any_dtype(rng)
    shape = tuple(rng.integers(0 if rng.random() < 0.1 else 1, 5, rng.integers(0, 5)))
    if dtype in DTYPES:
        array, base = random_destination(rng, shape, dtype)
    else:
        array = base = small(rng, shape, dtype)
    key = random_key(rng, shape)
    items = key if type(key) is tuple else (key,)
    keyed = array[items if any(item is ... for item in items) else (*items, ...)]
    other = dtype if rng.integers(2) else any_dtype(rng)
    if other.kind == "c" and dtype.kind != "c":
        other = dtype
    value = fits(rng, keyed.shape, other)
    t, before = m.from_dlpack(array), base.copy()
    with np.errstate(all="ignore"):
        t[key] = m.from_dlpack(value) if rng.integers(2) else value
        after = base.copy()
        base[...] = before
        keyed[...] = converted(value, dtype)
    assert base.tobytes() == after.tobytes()


@given(SEEDS)
@CHEAP
def test_setitem_from_the_same_memory(seed):
    rng = np.random.default_rng(seed)
    base = random_bytes(rng, (6, 7), DTYPES[rng.integers(len(DTYPES))])
    views = []
    rows, columns = rng.integers(1, 5, 2)
    for _ in range(2):
        y, x = rng.integers(0, 7 - rows), rng.integers(0, 8 - columns)
        view = base[y:y + rows, x:x + columns]
        views.append(view[::-1] if rng.integers(2) else view[:, ::-1])
    to, source = views
    before = base.copy()
    m.from_dlpack(to)[...] = m.from_dlpack(source)
    after = base.copy()
    base[...] = before
    to[...] = source
    assert base.tobytes() == after.tobytes()


VALUES = [0, 1, -1, True, False, 127, 128, 255, 256, -128, -129, 1 << 31, 1 << 63, (1 << 64) - 1,
          1 << 64, -(1 << 63), -(1 << 63) - 1, (1 << 53) + 1, 10**30, 0.0, -0.0, 1.5, -2.75, 1e300,
          math.inf, math.nan, 2j, 1 + 1j, np.float32(1.5), np.int64(-3), np.bool_(True),
          Decimal("1.5"), Decimal(300), Decimal(-1), Decimal(10**400), Decimal("NaN"),
          Decimal("inf"), Fraction(7, 2), ml_dtypes.bfloat16(300), ml_dtypes.float8_e5m2(-1), ml_dtypes.int4(-2), ml_dtypes.bfloat16(1.5), np.array(7), np.array([2.5])]


NUMPYS = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_numbers_are_written_as_numpy_writes_them(name, value):
    array, got, errors = np.zeros(3, name), np.zeros(3, name), []
    for write in (lambda: operator.setitem(array, ..., value),
                  lambda: operator.setitem(m.from_dlpack(got), ..., value)):
        try:
            with np.errstate(all="ignore"):
                write()
            errors.append(None)
        except Exception as error:
            errors.append(type(error))
    unsure = isinstance(value, (float, np.generic)) and not isinstance(value, np.complexfloating)
    if array.dtype.kind in "iu" and unsure and errors[0] is None:
        # NumPy leaves out-of-range values of some types to C; here they are an error.
        fits = np.iinfo(name).min <= int(value) <= np.iinfo(name).max
        assert errors[1] is (None if fits else OverflowError)
    elif array.dtype.kind != "c" and isinstance(value, np.ndarray):
        assert errors == [None, None]
    else:
        assert errors[0] is errors[1]
    if errors == [None, None]:
        assert array.tobytes() == got.tobytes()


# Every road by which a number becomes an element.
ROADS = {
    "full": lambda x, dtype: m.full(1, x, dtype),
    "fill": lambda x, dtype: (lambda t: t.fill(x) or t)(m.zeros(1, dtype)),
    "setitem": lambda x, dtype: (lambda t: operator.setitem(t, 0, x) or t)(m.zeros(1, dtype)),
    "setitem of all": lambda x, dtype: (
        lambda t: operator.setitem(t, ..., x) or t)(m.zeros(1, dtype)),
    "list": lambda x, dtype: m.asarray([x], dtype=dtype),
    "nested": lambda x, dtype: m.asarray([[[x]], ((x,),)], dtype=dtype)[0, 0],
    "mixed": lambda x, dtype: m.asarray([x, 0, False], dtype=dtype)[:1],
    "array in a list": lambda x, dtype: m.asarray([np.array([x], object)], dtype=dtype)[0],
}
KINDS = [int, float, np.int64, np.uint64, np.float64, np.float32, Decimal, Fraction,
         lambda x: ml_dtypes.bfloat16(float(x)), lambda x: type("Sub", (float,), {})(x),
         lambda x: type("Sub", (int,), {})(x)]


def rounded(x, digits):
    """The nearest integer with so many binary digits, the even one of two: by integers alone."""
    unit = 1 << max(abs(x).bit_length() - digits, 0)
    whole, rest = divmod(abs(x), unit)
    up = 2 * rest > unit or 2 * rest == unit and whole % 2 == 1
    return (whole + up) * unit * (1 if x > 0 else -1)


class Whole:
    """What is an integer by __index__ alone."""

    def __init__(self, x):
        self.x = x

    def __index__(self):
        return self.x


@pytest.mark.parametrize("name, part, digits", [
    ("float16", "float16", 11), ("float32", "float32", 24), ("float64", "float64", 53),
    ("bfloat16", "bfloat16", 8), ("complex64", "float32", 24), ("complex128", "float64", 53),
    ("bcomplex32", "bfloat16", 8), ("float8_e5m2", "float8_e5m2", 3)])
def test_integers_are_rounded_once(name, part, digits):
    """On every road, near the middle of two neighbours and of two doubles, and exactly there."""
    rng = np.random.default_rng(11)
    most = int(float(ml_dtypes.finfo(part).max))
    for _ in range(300):
        bits = int(rng.integers(2, 200))
        x = int(rng.integers(1 << 53, 1 << 54)) << max(bits - 54, 0) >> max(54 - bits, 0)
        unit = 1 << max(x.bit_length() - digits, 0)
        x = x // unit * unit + unit // 2 + int(rng.integers(-1, 2)) * int(rng.integers(0, 3))
        x *= int(rng.choice([-1, 1]))
        due = rounded(x, digits)
        if x == 0 or abs(due) > most:
            continue
        numbers = [x, Whole(x)]
        numbers += [kind(x) for kind in (np.int64, np.uint64)
                    if np.iinfo(kind).min <= x <= np.iinfo(kind).max]
        for number in numbers:
            filled, assigned = m.empty(1, name), m.zeros(2, name)
            filled.fill(number)
            assigned[1] = number
            made = [filled, assigned[1], m.full((), number, name)]
            if not isinstance(number, Whole):
                made.append(m.asarray([[number]], dtype=name))
            for t in made:
                assert complex(t.item()) == complex(due), (name, type(number), x)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_do_not_fit_are_refused_on_every_road(name, road):
    """An integer fits in the range of its type, computed with Python's numbers; too large for a
    float is infinity, or what its type has in place of it."""
    bits, make = bits_of(name), ROADS[road]
    low = 0 if name[0] == "u" else -(1 << bits - 1)
    high = low + (1 << bits) - 1
    edges = {0, 1, -1, low, low - 1, high, high + 1, 300, -300, 1 << 63, -(1 << 63), 1 << 64}
    for number, kind in itertools.product(edges, KINDS):
        try:
            x = kind(number)
            exact = int(x)
        except OverflowError:
            continue
        if "int" in name:
            if low <= exact <= high:
                assert make(x, name).tolist() == [exact], x
            else:
                refuses(OverflowError, f"out of bounds for {name}", make, x, name)
        elif name == "bool":
            assert make(x, name).tolist() == [exact != 0]
        else:
            want = converted(np.array([complex(x)] if "complex" in name else [float(x)]), ALL[name])
            assert str(make(x, name).tolist()) == str(m.from_dlpack(want).tolist()), x
    floats = {math.nan: ValueError, math.inf: OverflowError, -math.inf: OverflowError}
    for x, error in floats.items() if "int" in name else ():
        refuses(error, ".", make, x, name)
        refuses(error, ".", make, np.float32(x), name)
    if name != "bool":
        refuses(OverflowError, ".", make, 10**400, name)
    for x in (1j, np.complex64(2 + 1j), Both()):
        if "complex" in name:
            assert make(x, name).tolist() == [complex(x)]
    if "complex" not in name and name != "bool":
        refuses(TypeError, ".", make, 1j, name)
    for x in ("7", None, {}, object):
        refuses((TypeError, ValueError, BufferError), ".", make, x, name)


class Both:
    """A complex number of another library."""

    def __float__(self):
        return 2.0

    def __complex__(self):
        return 2 - 3j


def test_lists_of_numbers():
    for lists in ([], [[]], [[], []], (), [(), ()], [[[1, 2]], [[3, 4]]], [range(3), [4, 5, 6]],
                  [np.arange(3), m.asarray([4, 5, 6]), np.array([7, 8, 9], "i2")], 5, True):
        for name in ("uint4", "uint8", "float32", "bfloat16", "complex64", "bool"):
            t = m.asarray(lists, dtype=name)
            want = np.asarray(lists).astype(ALL[name])
            assert t.shape == want.shape and t.tolist() == m.from_dlpack(want).tolist()
            assert t.dtype == name and not t.readonly
    deep = 1
    for _ in range(70):
        deep = [deep]
    refuses(ValueError, "no number", m.asarray, deep, dtype="int8")
    refuses(ValueError, "differ in length.*no number", m.asarray, [[1], [1, 2]], dtype="int8")
    refuses(TypeError, "lanes", m.asarray, [1, 2], dtype="float32x2")


class Odd(BaseException):
    pass


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("error", [ValueError, OverflowError, ArithmeticError, MemoryError, Odd,
                                   KeyboardInterrupt, AttributeError, BufferError])
def test_exceptions_of_a_number_propagate(name, error):
    def fails(self):
        raise error("its own")

    array = np.ones(3, name)
    t, number = m.from_dlpack(array), type("Number", (), {"__float__": fails})()
    for write in (t.fill, lambda number: operator.setitem(t, 0, number)):
        refuses(error, "its own", write, number)
    if error is ValueError:
        refuses(ValueError, "signaling NaN", t.fill, Decimal("sNaN"))
        for other in ("1", None, object(), {}, type):
            refuses(TypeError, "no __dlpack__|__array_interface__|class", t.fill, other)
    assert array.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [None, *NUMPYS])
@pytest.mark.parametrize("nest", [lambda value: value, lambda value: [value],
                                  lambda value: [(1, value), [value, 0]]], ids=[0, 1, 2])
def test_asarray_of_numbers_is_numpys(name, nest):
    for number in [value for value in VALUES if type(value) in (bool, int, float, complex)]:
        results = []
        for make in (np.asarray, m.asarray):
            try:
                with np.errstate(all="ignore"):
                    made = make(nest(number), dtype=name)
                result = np.dtype(made.dtype).name, made.shape, made.tobytes()
            except Exception as error:
                result = type(error)
            results.append(result)
        if type(results[0]) is tuple and results[0][0] == "object":
            results[0] = BufferError
        assert results[0] == results[1], number


class Convertible:
    """Only `__array__`, as objects of pandas have it."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype)


SEQUENCES = [[1, 2, 3], (1, 2, 3), range(3), [[1, 2, 3]], [[1], [2]], [[1, 2, 3], (4, 5, 6)],
             [1.5, True, np.int8(3)], [np.arange(3), [4, 5, 6]], deque([1, 2, 3]), [7], [[[7]]],
             [], [1, 2], [[1], [1, 2]], [1, [2]], ["x", 1, 2], "7x", {}, {1, 2}, object(),
             [{}, 1, 2],
             Convertible([1, 2, 3]), Convertible([[1.5], [2]]), Convertible(7), Convertible([1, 2])]


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("index", [..., 0, (1, slice(0, 2)), (slice(None), 1)], ids=str)
@pytest.mark.parametrize("value", SEQUENCES, ids=str)
def test_sequences_are_assigned_as_numpy_assigns_them(name, index, value):
    array, t = np.zeros((2, 3), name), m.zeros((2, 3), name)
    view = array[index]
    # An array, as lists may not have more axes there.
    copies = [lambda: np.copyto(view, np.asarray(value), casting="unsafe")] * 2
    wants = [*copies, lambda: np.full(view.shape, np.asarray(value), name)]
    gots = [lambda: operator.setitem(t, index, value), lambda: t[index].copy_from(value),
            lambda: m.full(view.shape, value, name)]
    for want, got in zip(wants, gots):
        array[...] = 0
        t.fill(0)
        try:
            made = want()
        except (TypeError, ValueError):
            with pytest.raises((TypeError, ValueError)):
                got()
            assert t.tolist() == np.zeros((2, 3), name).tolist()
        else:
            result = outcome(got)
            if name == "bool" and isinstance(result, (TypeError, ValueError)):
                # To NumPy any object is true, and any text is.
                assert type(value) in (dict, set, object, str) or type(value[0]) in (dict, str)
                continue
            assert not isinstance(result, Exception), result
            assert t.tolist() == array.tolist()
            assert made is None or result.tolist() == made.tolist()


@pytest.mark.parametrize("value", [*SEQUENCES, None, 1.5j, object], ids=str)
def test_wrong_values_are_no_attribute_errors(value):
    t = m.zeros((2, 3))
    for take in (m.asarray, m.from_numpy, t.copy_from, t.fill, t.equal, t.max_diff,
                 lambda value: m.full(3, value), lambda value: m.asarray(value, dtype="int8"),
                 lambda value: operator.setitem(t, 0, value)):
        result = outcome(lambda: take(value))
        assert not isinstance(result, AttributeError), result


def test_rejected_assignments_write_nothing():
    array = np.zeros((2, 3), "f4")
    t = m.from_dlpack(array)
    for kind, words, key, value in [
            (ValueError, "SHAPE_MISMATCH|extents|NOT_VIEWABLE", ..., np.zeros(4)),
            (ValueError, ".", ..., np.zeros((2, 1, 3))), (ValueError, ".", 0, np.zeros((2, 3))),
            (TypeError, "integers, slices", "x", 1.0),
            (BufferError, ".", ..., np.zeros(3, "M8[s]"))]:
        refuses(kind, words, operator.setitem, t, key, value)
    refuses(TypeError, "delete", operator.delitem, t, 0)
    for value in (1.0, np.ones((2, 3), "f4"), np.ones((2, 3)), np.ones(3)):
        refuses(BufferError, "READ_ONLY", operator.setitem, t.read_only(), ..., value)
        refuses(BufferError, "READ_ONLY", operator.setitem, t.broadcast_to(2, 2, 3), ..., value)
    refuses(BufferError, "READ_ONLY", t.read_only().copy_from, array)
    refuses(ValueError, "exactly one element", t.fill, np.zeros(3))
    refuses(TypeError, ".", m.empty(2, "float32x2").fill, 1.0)
    assert not array.any()


# --- Conversion, comparison, bytes ------------------------------------------------------------

@given(SEEDS)
@CHEAP
def test_astype(seed):
    """Of small numbers; of all, test_cast.py and random_casts.py."""
    rng = np.random.default_rng(seed)
    base, target = small(rng, (2, 4, 6), any_dtype(rng)), any_dtype(rng)
    array = np.asarray(base[random_key(rng, base.shape)]).transpose()
    t, want = m.from_dlpack(array).astype(target), converted(array, target)
    assert (t.dtype, t.shape, t.device) == (target.name, array.shape, "cpu")
    assert t.is_copied and not t.readonly
    if bits_of(target.name) < 8:  # packed here, or with 0 where ml_dtypes has a sign
        assert t.tolist() == m.from_dlpack(want).tolist()
        bits = int.from_bytes(t.tobytes(), "little")
        padded = t.nbytes == t.size
        assert padded or bits >> t.size * bits_of(target.name) == 0  # behind the last element
        return
    assert t.tobytes() == want.tobytes()
    steps = zip(array.shape, t.strides, want.strides)  # NumPy keeps the order of the axes, too
    assert not t.size or all(step * want.itemsize == due for extent, step, due in steps
                             if extent > 1)


def saturated(array, dtype):
    """Values out of range become the largest finite value: computed with Python's numbers."""
    most = float(ml_dtypes.finfo(dtype).max) if "float" in dtype.name else None
    if dtype == bool or most is not None and (
            array.dtype == bool or dtype.name == "float64" or
            dtype.name == "float32" and array.dtype.name != "float64"):
        return converted(array, dtype)  # nothing is out of range
    numbers = [x if isinstance(x, int) else float(x) for x in (
        map(int, array) if "float" not in array.dtype.name else array.astype("f8"))]
    if most is None:
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        whole = [0 if x != x else min(max(x, low), high) for x in numbers]
        return np.array([int(x) for x in whole], "u8" if low == 0 else "i8").astype(dtype)
    if most > 2.0 ** 60 and "float" not in array.dtype.name:
        return converted(array, dtype)
    least = -most
    if dtype.name == "float8_e8m0fnu":  # negative ones are NaN; ml_dtypes converts through float32
        least, numbers = -math.inf, [max(x, 2.0 ** -127) if x > 0 else x for x in numbers]
    return converted(np.array([x if x != x else min(max(x, least), most) for x in numbers],
                              "f8"), dtype)


REAL = [name for name in ALL if "complex" not in name]


@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize("source", REAL)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_astype_saturates(source, target):
    rng = np.random.default_rng(7)
    kind = ALL[source]
    if bits_of(source) < 8:
        array = np.arange(2 ** bits_of(source), dtype="u1").astype("u1").view(kind) \
            if "int" not in source else np.arange(2 ** bits_of(source)).astype(kind)
    elif kind == bool:
        array = np.array([False, True])
    else:
        array = rng.integers(0, 256, 8 * 400, "u1").view(kind)
    want = saturated(array, ALL[target])
    t = m.from_dlpack(array).astype(target, saturate=True)
    if source == target:
        assert t.tobytes() == m.from_dlpack(array).tobytes()
    elif bits_of(target) < 8:
        got = t.tolist()
        assert str(got) == str(m.from_dlpack(want).tolist())
    else:
        nan = np.isnan(want.astype("f8")) if "float" in target else np.zeros(want.shape, bool)
        got = t.numpy()
        assert np.array_equal(got.view(f"u{got.itemsize}")[~nan], want.view(f"u{got.itemsize}")[~nan])
        assert not nan.any() or np.isnan(got.astype("f8"))[nan].all()


def test_astype_itself():
    t = m.from_dlpack(np.arange(3.0))
    assert t.astype(float, copy=False).data_ptr == t.data_ptr != t.astype("float64").data_ptr
    assert t.astype(np.float32, copy=False).dtype == "float32"
    refuses(TypeError, "needs a dtype", t.astype)
    refuses(TypeError, "lanes", t.astype, "float32x2")
    refuses(BufferError, "DEVICE_TYPE", m.from_dlpack(
        Forger(setting("device.device_type", 12))).astype, "int8")


@given(SEEDS)
@CHEAP
def test_contiguity_and_tobytes(seed):
    rng = np.random.default_rng(seed)
    array = view_of_any(rng)
    t = m.from_dlpack(array)
    for order in "CFA":
        if array.dtype in DTYPES:
            assert t.tobytes(order) == array.tobytes(order)
        flag = {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous, "A":
                array.flags.forc}[order]
        assert t.is_contiguous(order) is flag, order
    dense = bool(array.size < 2 or len(set(addresses(array))) == array.size and np.ptp(
        addresses(array)) == (array.size - 1) * array.itemsize and min(
        s for n, s in zip(array.shape, array.strides) if n > 1) > 0)
    assert t.is_contiguous("K") is dense
    assert t.transpose().strides == t.T.strides and t.transpose(None).shape == array.T.shape
    axes = rng.permutation(array.ndim) - rng.integers(2) * array.ndim
    assert t.transpose(*axes).shape == array.transpose(*axes).shape
    if array.ndim:
        assert t.transpose(tuple(axes)).tobytes() == array.transpose(axes).tobytes()


@pytest.mark.parametrize("name", ALL)
def test_equal_and_max_diff(name):
    rng = np.random.default_rng(9)
    for _ in range(20):
        a = small(rng, (3, 4), ALL[name])
        b = a.copy()
        if rng.integers(2):
            b[rng.integers(3), rng.integers(4)] = small(rng, (), ALL[name])
        want = bool((a == b).all())
        assert m.from_dlpack(a).equal(b) is want and m.from_dlpack(a.T).equal(b.T) is want
        wide = "c16" if "complex" in name else "f8"
        with np.errstate(all="ignore"):
            apart = np.abs(a.astype(wide) - b.astype(wide))
            distance = float(np.where(a.view("u1") == b.view("u1"), 0, apart).max()) \
                if name == "float8_e8m0fnu" else float(apart.max())
        got = m.from_dlpack(a).max_diff(m.from_dlpack(b))
        assert got == distance or math.isnan(got) and math.isnan(distance)


def test_comparisons():
    t = m.from_dlpack(np.array([1.0, np.nan]))
    assert not t.equal(t) and t.equal(t, equal_nan=True) and not t.equal(np.zeros(3))
    assert m.zeros(2).equal(m.full(2, -0.0)) and math.isnan(t.max_diff(np.zeros(2)))
    refuses(TypeError, "needs another", t.equal)
    refuses(TypeError, "DTYPE_MISMATCH", t.equal, np.zeros(2, "f4"))
    refuses(ValueError, "SHAPE_MISMATCH", t.max_diff, np.zeros(3))


# --- New tensors ------------------------------------------------------------------------------

def test_empty_with_an_order():
    assert m.empty((2, 3, 4)).strides == (12, 4, 1) and m.empty((2, 3, 4), order="C").ndim == 3
    assert m.empty((2, 3, 4), order="F").strides == (1, 2, 6)
    pitched = m.empty((2, 3), "int8", strides=(8, 1))
    assert pitched.strides == (8, 1) and pitched.shape == (2, 3)
    pitched.fill(7)
    assert pitched.tolist() == [[7] * 3] * 2
    for kind, words, keywords in [
            (TypeError, "not both", {"strides": (3, 1), "order": "C"}),
            (TypeError, "as many", {"strides": (3,)}), (ValueError, "order", {"order": "Q"}),
            (BufferError, "share", {"strides": (0, 1)}), (ValueError, ".", {"strides": (-3, 1)})]:
        refuses(kind, words, m.empty, (2, 3), **keywords)


@pytest.mark.parametrize("name", [*ALL, "float32x3", "uint4x2", "complex32"])
def test_zeros_and_full(name):
    for shape in ((), 5, (2, 3), (0, 4)):
        t = m.zeros(shape, name)
        assert not any(t.tobytes()) and t.dtype == name and not t.readonly
        assert t.shape == np.zeros(shape).shape
        if name in ALL:
            one = -1 if name == "int1" else 1
            assert m.full(shape, one, name).tolist() == np.full(shape, one).tolist()


def test_full_of_its_own_dtype():
    for value, name in [(1, "int64"), (1.5, "float32"), (True, "bool"), (1j, "complex64"),
                        (np.float64(2), "float64"), (np.int8(2), "int8"), (m.zeros(3), "float32")]:
        assert m.full((2, 3), value).dtype == name
    assert m.full((2, 3), 7).tolist() == [[7] * 3] * 2
    refuses(TypeError, "needs a fill_value", m.full, 2)
    refuses(OverflowError, "int8", m.full, 2, 300, "int8")


def test_asarray():
    array = np.arange(6.0).reshape(2, 3)
    t = m.from_dlpack(array)
    for x in (array, t, array.__dlpack__(max_version=(1, 0))):
        assert m.asarray(x).data_ptr == array.ctypes.data
    assert m.asarray(t, copy=False, dtype=float, device="cpu").data_ptr == t.data_ptr
    assert m.asarray(t, copy=True).data_ptr != t.data_ptr
    assert m.asarray(t, dtype="bfloat16").tolist() == array.tolist()
    refuses(ValueError, "copy=False", m.asarray, t, dtype="int8", copy=False)
    refuses(ValueError, "copy=False", m.asarray, [1], copy=False)
    refuses(BufferError, "copy", m.asarray, t, device="cuda:0", copy=False)
    refuses(BufferError, ".", m.from_numpy, np.zeros(2, ">f4"))
    refuses(TypeError, "asarray", m.from_numpy, [1])
