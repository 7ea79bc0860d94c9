"""Copies, overlaps and memory orders against NumPy's."""

import numpy as np
import pytest

from views import (DTYPES, addresses, elements_overlap, random_bytes, random_destination,
                   random_view)

OVERLAP_DST, OVERLAP_SRC_DST = 304, 305
EXTENTS = [6, 14]  # few elements are copied by plain loops


def test_clone_is_numpys_copy(dlpack):
    rng = np.random.default_rng(11)
    for _ in range(2000):
        view = random_view(rng, most=rng.choice(EXTENTS))
        clone = dlpack.from_dlpack(view).clone()
        assert clone.flags == dlpack.IS_COPIED
        array = np.from_dlpack(clone)
        assert array.tobytes() == view.copy().tobytes()
        assert array.flags.c_contiguous and array.flags.writeable
        assert not np.may_share_memory(array, view)


def test_copy_is_numpys_assignment(dlpack):
    rng = np.random.default_rng(12)
    for _ in range(2000):
        source = random_view(rng, most=rng.choice(EXTENTS))
        view, base = random_destination(rng, source.shape, source.dtype)
        before = base.copy()
        dlpack.copy(dlpack.from_dlpack(source), dlpack.from_dlpack(view))
        got = base.copy()
        base[...] = before
        view[...] = source
        assert got.tobytes() == base.tobytes()


@pytest.mark.parametrize("shape", [(300, 400), (64, 33, 70), (5, 7, 9, 11, 13), (1 << 20,)])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
def test_large_copies(dlpack, shape, dtype):
    rng = np.random.default_rng(13)
    array = random_bytes(rng, shape, np.dtype(dtype))
    for view in (array, array.T, array[::-1], array[..., ::2], np.moveaxis(array, 0, -1)):
        clone = np.from_dlpack(dlpack.from_dlpack(view).clone())
        assert clone.tobytes() == view.tobytes()
        there = np.zeros(view.shape[::-1], dtype).T
        dlpack.copy(dlpack.from_dlpack(view), dlpack.from_dlpack(there))
        assert there.tobytes() == view.tobytes()


def random_pair(rng):
    """Two views of equal shape and dtype somewhere in the same small array."""
    dtype = DTYPES[rng.integers(1, len(DTYPES))]
    memory = random_bytes(rng, (400,), np.dtype(np.uint8))
    shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
    views = []
    for _ in range(2):
        strides = rng.integers(-4, 5, len(shape)) * dtype.itemsize
        ends = [(extent - 1) * stride for extent, stride in zip(shape, strides)]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
        room = memory.size - dtype.itemsize - (high - low)
        if room < 0:
            return random_pair(rng)
        start = int(rng.integers(0, min(room, 24) + 1)) - low
        first = memory[start:start + dtype.itemsize].view(dtype)
        views.append(np.lib.stride_tricks.as_strided(first, shape, strides))
    if rng.random() < 0.05:
        views[1] = views[0]
    return memory, *views


def same_elements(a, b):
    return np.array_equal(addresses(a), addresses(b))


def verdict(dlpack, source, target, **keywords):
    try:
        dlpack.copy(dlpack.from_dlpack(source), dlpack.from_dlpack(target), **keywords)
    except BufferError as error:
        return error.status
    return 0


def test_overlap_is_numpys_exact_answer(dlpack):
    rng = np.random.default_rng(14)
    seen = {0: 0, OVERLAP_DST: 0, OVERLAP_SRC_DST: 0}
    for _ in range(2000):
        memory, source, target = random_pair(rng)
        before = memory.copy()
        shared = np.shares_memory(source, target)
        if elements_overlap(target):
            expected = OVERLAP_DST
        elif shared and not same_elements(source, target):
            expected = OVERLAP_SRC_DST
        else:
            expected = 0
        if not shared:
            assert not np.may_share_memory(source, target, max_work=-1)
        values = source.copy()
        got = verdict(dlpack, source, target)
        assert got == expected, (source.__array_interface__, target.__array_interface__)
        seen[got] += 1
        if got == 0:
            assert target.tobytes() == values.tobytes()
            memory[...] = before
            target[...] = values
        else:
            assert memory.tobytes() == before.tobytes()
        if expected == OVERLAP_SRC_DST:  # when allowed: as through a temporary
            assert verdict(dlpack, source, target, allow_overlap=True) == 0
            after = memory.copy()
            memory[...] = before
            target[...] = values  # not `source`: NumPy 2.4 is wrong there in one dimension
            assert after.tobytes() == memory.tobytes()
    assert min(seen.values()) > 100, seen


def test_memory_orders_are_numpys(dlpack):
    rng = np.random.default_rng(15)
    moved = 0
    for _ in range(800):
        view = random_view(rng)
        tensor = dlpack.from_dlpack(view)
        flags = view.flags
        for order, dense in (("C", flags.c_contiguous), ("F", flags.f_contiguous),
                             ("A", flags.c_contiguous or flags.f_contiguous)):
            assert tensor.is_contiguous(order) == dense, (order, view.__array_interface__)
            result = tensor.contiguous(order)
            assert bool(result.flags & dlpack.IS_COPIED) != dense
            array = np.from_dlpack(result)  # one more reference: IS_COPIED is no longer true
            assert not result.flags & dlpack.IS_COPIED
            assert array.tobytes() == view.tobytes()
            wanted = {"C": np.ascontiguousarray, "F": np.asfortranarray,
                      "A": lambda a: a if dense else np.ascontiguousarray(a)}[order](view)
            if view.ndim and view.size:
                assert array.strides == wanted.strides or 1 in view.shape
            if dense and view.size:
                assert array.ctypes.data == view.ctypes.data
            moved += not dense
    assert moved > 300


def test_order_k_keeps_the_order_of_the_strides(dlpack):
    rng = np.random.default_rng(16)
    for _ in range(1000):
        view = random_view(rng)
        result = dlpack.from_dlpack(view).contiguous("K")
        copied = result.flags & dlpack.IS_COPIED
        assert result.is_contiguous("K")
        array = np.from_dlpack(result)
        assert array.tobytes() == view.tobytes()
        repeats = any(stride == 0 for stride in view.strides)
        if copied and view.size and not repeats and 1 not in view.shape:
            assert array.strides == view.copy(order="K").strides


def test_policy_of_destinations(dlpack):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    source = dlpack.from_dlpack(np.arange(3.0))
    for target, kind, name in ((frozen, BufferError, "DLRS_READ_ONLY"),
                               (np.zeros(4), ValueError, "DLRS_SHAPE_MISMATCH"),
                               (np.zeros((3, 1)), ValueError, "DLRS_SHAPE_MISMATCH"),
                               (np.zeros(3, "f4"), TypeError, "DLRS_DTYPE_MISMATCH"),
                               (np.zeros(3, "i8"), TypeError, "DLRS_DTYPE_MISMATCH")):
        with pytest.raises(kind) as caught:
            dlpack.copy(source, dlpack.from_dlpack(target))
        assert caught.value.name == name and name in str(caught.value)
        assert not target.any()
