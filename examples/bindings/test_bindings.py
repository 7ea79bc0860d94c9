"""The extensions of this folder exchange tensors with NumPy and other frameworks, both ways."""
import gc
import importlib
import sys

import numpy as np
import pytest

import grid_nanobind
import grid_plain
import grid_pybind11
import vector_plain

BOUND = [grid_nanobind, grid_pybind11]


def name(module):
    return module.__name__


def made(module, rows, columns):
    """An array of a module, 0, 1, 2, ...; a vector of C has the elements of one row."""
    if module is vector_plain:
        vector = vector_plain.zeros(rows * columns)
        np.from_dlpack(vector)[:] = np.arange(rows * columns)
        return vector
    if module is grid_plain:
        return module.Array(rows, columns)
    return module.range([rows, columns])


ALL = [grid_nanobind, grid_pybind11, grid_plain, vector_plain]


def frameworks():
    """For each framework: how it imports an object, and how its tensor is read as an array."""
    yield "numpy", np.from_dlpack, np.asarray
    for module in ("tvm_ffi", "torch"):
        try:
            taking = importlib.import_module(module).from_dlpack
        except ImportError:
            continue
        yield module, taking, np.from_dlpack


TAKING = [pytest.param(take, read, id=name) for name, take, read in frameworks()]


@pytest.mark.parametrize("module", ALL, ids=name)
@pytest.mark.parametrize("take, read", TAKING)
def test_export_shares_the_memory(module, take, read):
    ours = made(module, 3, 4)
    theirs = take(ours)
    assert read(theirs).ravel().tolist() == list(range(12))
    np.from_dlpack(ours)[...] = 7
    assert read(theirs).ravel().tolist() == [7] * 12


@pytest.mark.parametrize("module", ALL, ids=name)
@pytest.mark.parametrize("take, read", TAKING)
def test_import_shares_the_memory(module, take, read):
    base = np.arange(12.0)
    ours = module.from_dlpack(take(base))
    base[5] = 100
    assert np.from_dlpack(ours).tolist() == base.tolist()
    assert np.shares_memory(np.from_dlpack(ours), base)


@pytest.mark.parametrize("module", ALL, ids=name)
@pytest.mark.parametrize("other", ALL, ids=name)
def test_each_takes_what_the_others_have(module, other):
    array = np.arange(10.0)[::-3]
    ours = module.from_dlpack(other.from_dlpack(array))
    assert np.from_dlpack(ours).tolist() == [9, 6, 3, 0]
    assert np.shares_memory(np.from_dlpack(ours), array)


@pytest.mark.parametrize("module", BOUND, ids=name)
def test_layouts(module):
    a = module.range([2, 3])
    assert np.from_dlpack(a.T).tolist() == np.arange(6.0).reshape(2, 3).T.tolist()
    for x in (np.zeros((0, 3)), np.array(5.0), np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2],
              np.broadcast_to(np.float32(2), (3, 2)), np.arange(6, dtype="i4")[::2]):
        b = module.from_dlpack(x)
        back = np.from_dlpack(b)
        assert b.sum() == x.sum() and back.dtype == x.dtype and back.tolist() == x.tolist()
        assert back.flags.writeable == (x.flags.writeable or x.size == 0)


@pytest.mark.parametrize("module", ALL, ids=name)
def test_device_and_attributes(module):
    a = made(module, 2, 2)
    assert a.__dlpack_device__() == (1, 0)
    assert type(type(a).__dlpack_c_exchange_api__).__name__ == "PyCapsule"
    assert "dltensor_versioned" in repr(a.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(a.__dlpack__())
    copied = np.from_dlpack(a, copy=True)
    assert not np.shares_memory(copied, np.from_dlpack(a))


@pytest.mark.parametrize("module", ALL, ids=name)
def test_requests_that_fail(module):
    a = made(module, 2, 2)
    for kind, call in (
            (TypeError, lambda: a.__dlpack__(foo=1)),
            (TypeError, lambda: a.__dlpack__(1)),
            (TypeError, lambda: a.__dlpack__(max_version=(1,))),
            (BufferError, lambda: a.__dlpack__(dl_device=(2, 0))),
            (AttributeError, lambda: module.from_dlpack([1])),
            (AttributeError, lambda: module.from_dlpack(b"abcd")),
            (AttributeError, lambda: module.from_dlpack(3)),
            (BufferError, lambda: module.from_dlpack(np.zeros(2, "i2")))):
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize("module", [*BOUND, grid_plain], ids=name)
def test_device_and_copy_of_from_dlpack(module):
    x = np.arange(4.0)
    for device in (None, (1, 0), "cpu"):
        for copy in (None, False, True):
            back = np.from_dlpack(module.from_dlpack(x, device=device, copy=copy))
            assert np.shares_memory(back, x) == (copy is not True)
            assert back.tolist() == x.tolist()
    with pytest.raises(ValueError):
        module.from_dlpack(x, copy="x")
    with pytest.raises(TypeError):
        module.from_dlpack(x, x)


@pytest.mark.parametrize("module", BOUND, ids=name)
def test_read_only(module):
    a = module.range([4])
    a.read_only = True
    assert not np.from_dlpack(a).flags.writeable
    with pytest.raises(BufferError):
        a.__dlpack__()
    x = np.arange(3.0)
    x.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        module.from_dlpack(x).fill(1)


def test_a_vector_copies_what_is_read_only():
    x = np.arange(3.0)
    x.flags.writeable = False
    assert not np.shares_memory(np.from_dlpack(vector_plain.from_dlpack(x)), x)
    for wrong in (np.zeros((2, 2)), np.zeros(2, "f4")):
        with pytest.raises(BufferError, match="^vector_plain: "):
            vector_plain.from_dlpack(wrong)


@pytest.mark.parametrize("module", BOUND, ids=name)
def test_a_tensor_as_an_argument(module):
    assert module.trace(np.arange(9.0).reshape(3, 3).T) == 12
    assert module.trace(module.range([3, 3])) == 12
    for kind, wrong in ((TypeError, 3), (TypeError, [[1.0]]), (ValueError, np.zeros(3)),
                        ((TypeError, BufferError), np.zeros((2, 2), "f4"))):
        with pytest.raises(kind):
            module.trace(wrong)


@pytest.mark.parametrize("module", BOUND, ids=name)
@pytest.mark.parametrize("take, read", TAKING)
def test_a_tensor_as_a_result(module, take, read):
    made = module.halves(5)
    assert read(take(made)).tolist() == [0, .5, 1, 1.5, 2]
    assert made.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError):
        type(made)()
    again = module.from_dlpack(made)
    del made
    gc.collect()
    assert np.from_dlpack(again).tolist() == [0, .5, 1, 1.5, 2]


@pytest.mark.parametrize("module", ALL, ids=name)
def test_nothing_is_leaked(module):
    x = np.arange(4.0)
    a = made(module, 2, 2)
    counts = [sys.getrefcount(thing) for thing in (x, a, type(a))]
    for _ in range(1000):
        np.from_dlpack(module.from_dlpack(module.from_dlpack(x)))
        np.from_dlpack(a)
        a.__dlpack__()
        with pytest.raises(BufferError):
            module.from_dlpack(np.zeros(2, "i2"))
        if module in BOUND:
            module.trace(np.ones((2, 2)))
            module.halves(3)
    gc.collect()
    assert counts == [sys.getrefcount(thing) for thing in (x, a, type(a))]
