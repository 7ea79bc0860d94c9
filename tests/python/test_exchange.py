"""Round trips preserve dtypes, layouts, flags, values, and the address."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import capsules
from views import DTYPES, random_view, unaligned

CHEAP = settings(max_examples=200, deadline=None, database=None,
                 suppress_health_check=[HealthCheck.function_scoped_fixture])


class Old:
    """A producer from before DLPack 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


def check_same(dlpack, array):
    """Imports an array, and returns the expected properties of the tensor and of NumPy's array."""
    tensor = dlpack.from_dlpack(array)
    tensor.validate()
    assert tensor.shape == array.shape
    assert tensor.dtype == array.dtype.name
    assert tensor.flags == (0 if array.flags.writeable else dlpack.READ_ONLY)
    assert tensor.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(tensor)
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    if array.size:
        assert tensor.address == array.ctypes.data == back.ctypes.data
        assert back.flags.writeable == array.flags.writeable
        in_elements = tuple(stride // array.itemsize for stride in array.strides)
        assert tensor.strides == in_elements
    else:
        assert tensor.address is None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_that_both_know(dlpack, dtype):
    check_same(dlpack, np.arange(6).astype(dtype).reshape(2, 3))
    check_same(dlpack, np.ones((), dtype))


@pytest.mark.parametrize("name", ["int4", "uint2", "bfloat16", "float8_e4m3fn", "float4_e2m1fn",
                                  "int8x4"])
def test_dtypes_that_numpy_rejects_are_released(dlpack, name):
    tensor = dlpack.empty((4,), name)
    assert tensor.dtype == name
    with pytest.raises((RuntimeError, BufferError, ValueError)):
        np.from_dlpack(tensor)
    capsules.sweep()
    assert tensor.ref_count == 1


@pytest.mark.parametrize("name, scalar", [("bfloat16", ml_dtypes.bfloat16),
                                          ("float8_e5m2", ml_dtypes.float8_e5m2)])
def test_names_are_those_of_ml_dtypes(dlpack, name, scalar):
    assert dlpack.empty((1,), np.dtype(scalar).name).dtype == name


@pytest.mark.parametrize("make", [
    lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a[::-2, ::-3], lambda a: a.T,
    lambda a: a[1:1], lambda a: a[:, :0], lambda a: a[2, 3, ...], lambda a: a[None, :, None],
    unaligned, lambda a: np.broadcast_to(a[0], (3, 6)), lambda a: np.broadcast_to(a[:, :1], (4, 5)),
    lambda a: np.asfortranarray(a), lambda a: a.ravel()[3:], lambda a: np.array(a[0, 0]),
    lambda a: np.lib.stride_tricks.as_strided(a, (0, 5), (0, 0)),
    lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 2)),
    lambda a: np.zeros((1,) * 64), lambda a: np.zeros((2,) * 12 + (0,)),
])
def test_layouts(dlpack, make):
    check_same(dlpack, make(np.arange(24.0).reshape(4, 6)))


def test_random_layouts(dlpack):
    rng = np.random.default_rng(1)
    for _ in range(1000):
        check_same(dlpack, random_view(rng))


@CHEAP
@given(data=st.data())
def test_any_indexing(dlpack, data):
    dtype = data.draw(st.sampled_from(DTYPES))
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)))
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
    view = np.asarray(array[index])
    check_same(dlpack, view)
    clone = np.from_dlpack(dlpack.from_dlpack(view).clone())
    assert clone.tobytes() == view.copy().tobytes()


def test_read_only_stays_read_only(dlpack):
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = dlpack.from_dlpack(array)
    assert tensor.flags == dlpack.READ_ONLY
    assert not np.from_dlpack(tensor).flags.writeable
    with pytest.raises(BufferError, match="DLRS_READ_ONLY"):
        tensor.__dlpack__()  # legacy: not transmitted
    assert tensor.ref_count == 1
    assert np.from_dlpack(tensor.clone()).flags.writeable


def test_legacy_producers_are_read_only_by_default(dlpack):
    array = np.arange(3.0)
    assert dlpack.from_dlpack(Old(array)).flags == dlpack.READ_ONLY
    tensor = dlpack.from_dlpack(Old(array), legacy_flags=0)
    np.from_dlpack(tensor)[0] = 7
    assert array[0] == 7


def test_old_consumers_get_a_legacy_capsule(dlpack):
    tensor = dlpack.from_dlpack(np.arange(6.0)[::2])
    for version in (None, (0, 8)):
        assert '"dltensor"' in repr(tensor.__dlpack__(max_version=version))
    for version in ((1, 0), (1, 3), (2, 0)):
        assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=version))
    again = dlpack.from_dlpack(Old(tensor))
    assert again.address == tensor.address and again.strides == (2,)


@pytest.mark.parametrize("copy, flags", [(None, 0), (False, 0), (True, 2)])
def test_copy_keyword_of_the_producer(dlpack, copy, flags):
    array = np.arange(3.0)
    tensor = dlpack.from_dlpack(array)
    taken = dlpack.from_dlpack(_With(tensor, copy=copy))
    assert taken.flags == flags
    assert (taken.address == tensor.address) == (copy is not True)
    there = np.from_dlpack(tensor, device="cpu", copy=copy)
    assert np.shares_memory(there, array) == (copy is not True)


class _With:
    def __init__(self, tensor, **keywords):
        self.tensor, self.keywords = tensor, keywords

    def __dlpack__(self, max_version=None):
        return self.tensor.__dlpack__(max_version=max_version, **self.keywords)


def test_other_devices_and_streams_are_refused(dlpack):
    tensor = dlpack.from_dlpack(np.arange(3.0))
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError):
        tensor.__dlpack__(stream=1)
    assert tensor.ref_count == 1


@pytest.mark.parametrize("copy", [None, False, True])
def test_import_meets_the_requested_order_and_alignment(dlpack, copy):
    rng = np.random.default_rng(2)
    for _ in range(300):
        array = random_view(rng)
        order = str(rng.choice(list("CFAK")))
        align = int(rng.choice([1, 8, 64]))
        writable = bool(rng.random() < 0.5)
        dense = dlpack.from_dlpack(array).is_contiguous(order)
        serves = (dense and (array.size == 0 or array.ctypes.data % align == 0)
                  and (array.flags.writeable or not writable))
        try:
            tensor = dlpack.from_dlpack(array, copy=copy, order=order, align_bytes=align,
                                        writable=writable)
        except (BufferError, ValueError) as error:
            assert copy is False and not serves
            assert error.name in ("DLRS_READ_ONLY", "DLRS_COPY_NEEDED", "DLRS_MISALIGNED")
            continue
        copied = bool(tensor.flags & dlpack.IS_COPIED)
        assert copied == (copy is True or not serves)
        assert np.from_dlpack(tensor).tobytes() == array.tobytes()
        assert tensor.is_contiguous(order)
        if writable or copied:
            assert not tensor.flags & dlpack.READ_ONLY


@pytest.mark.parametrize("make", [
    lambda: np.arange(4, dtype=">f4"),
    lambda: np.zeros(3, [("a", "f4"), ("b", "f8")]),
    lambda: np.zeros(3, [("a", "u1"), ("b", "f4")])["b"],  # 5 bytes from one to the next
    lambda: np.array(["text"]),
    lambda: np.array([None]),
    lambda: np.zeros(3, "M8[s]"),
    lambda: np.zeros(2, np.longdouble),
])
def test_arrays_that_numpy_does_not_export(dlpack, make):
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        dlpack.from_dlpack(make())


def test_fields_of_structured_arrays(dlpack):
    records = np.zeros(5, [("a", "f4"), ("b", "f4")])
    records["b"] = np.arange(5)
    check_same(dlpack, records["b"])
    dlpack.copy(dlpack.from_dlpack(np.arange(5, dtype="f4")), dlpack.from_dlpack(records["a"]))
    assert records["a"].tolist() == records["b"].tolist() == [0, 1, 2, 3, 4]


def test_objects_without_the_protocol(dlpack):
    for thing in (object(), 3, b"bytes"):
        with pytest.raises(AttributeError):
            dlpack.from_dlpack(thing)
    for answer in (None, 3, b"bytes"):
        with pytest.raises((TypeError, ValueError)):
            dlpack.from_dlpack(Answers(answer))


class Answers:
    def __init__(self, answer):
        self.answer = answer

    def __dlpack__(self, **_):
        return self.answer
