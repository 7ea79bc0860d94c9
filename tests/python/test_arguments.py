"""Shapes, axes and devices as NumPy, PyTorch and Python programs give them."""

import math
from array import array as packed

import numpy as np
import pytest
import tvm_ffi

import py_module
from fakes import refuses

try:
    import torch
except ImportError:
    torch = None

m = py_module.load()
# PyTorch's own, where it is installed.
TORCH_SIZE, TORCH_SINGLE, TORCH_CPU = (
    ([torch.Size], [torch.tensor], [torch.device("cpu")]) if torch else ([], [], []))


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


SEQUENCES = [tuple, list, range, bytes, np.array, *TORCH_SIZE, lambda v: np.array(v, "u1"),
             lambda v: [np.int64(x) for x in v], lambda v: tuple(map(Index, v)),
             lambda v: tuple(map(np.array, v)), lambda v: packed("h", v)]
SINGLE = [int, np.int8, np.uint64, np.array, Index, *TORCH_SINGLE, lambda v: [v],
          lambda v: np.array([v])]
CALLS = {
    "zeros": lambda v: m.zeros(v).shape,
    "full": lambda v: m.full(v, 7).shape,
    "empty": lambda v: m.empty(v, "int8", order="F").shape,
    "strides": lambda v: m.empty((2,) * m.zeros(v).ndim, strides=v).strides,
    "reshape": lambda v: m.zeros(math.prod(m.zeros(v).shape)).reshape(v).shape,
    "broadcast_to": lambda v: m.zeros(()).broadcast_to(v).shape,
    "permute": lambda v: m.zeros((2,) * 3).permute(v).strides,
    "transpose": lambda v: m.zeros((2,) * 3).transpose(v).strides,
    "flip": lambda v: m.zeros((2,) * 3).flip(v).strides,
    "squeeze": lambda v: m.zeros((1,) * 3).squeeze(v).shape,
}


@pytest.mark.parametrize("name", CALLS)
def test_shapes_and_axes_are_any_sequence_of_integers(name):
    """NumPy's arrays too, of which each could be an index by its type."""
    several = (2, 0, 1) if name in ("permute", "transpose", "flip", "squeeze") else \
        (4, 2, 1) if name == "strides" else (0, 1, 2)
    want = CALLS[name](several)
    for make in SEQUENCES:
        if make is range:
            if name in ("zeros", "full", "empty", "reshape", "broadcast_to", "flip", "squeeze"):
                assert CALLS[name](range(3)) == CALLS[name]((0, 1, 2))
            continue
        assert CALLS[name](make(several)) == want, make
    one = 0 if name in ("flip", "squeeze") else 5
    if name not in ("permute", "transpose"):
        for make in SINGLE:
            assert CALLS[name](make(one)) == CALLS[name]((one,)), make
    for wrong in (2.0, np.array([1.0]), np.array(1.0), "ab", [None], {1: 2}, iter([1]), object(),
                  np.array([[1, 2]]), m.zeros(2)):
        refuses(TypeError, ".", CALLS[name], wrong)
    for wrong in (1 << 70, [1 << 70], np.array([2**64 - 1], "u8")):
        refuses(ValueError, ".", CALLS[name], wrong)
    fails = type("Fails", (), {"__len__": lambda self: 1 // 0})()
    refuses(ZeroDivisionError, ".", CALLS[name], fails)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", (1, 0), [1, 0], (np.int64(1), Index(0)),
                                    np.array([1, 0]), *TORCH_CPU, tvm_ffi.device("cpu"),
                                    np.zeros(1).device], ids=repr)
def test_devices_of_other_libraries(device):
    assert m.zeros(2, device=device).device == "cpu"
    assert m.from_dlpack(np.zeros(2), device=device).device == "cpu"
    assert m.asarray([1], device=device).to(device).device == "cpu"
    refuses(TypeError, "'cuda:0'.*this 'Odd' is none", m.zeros, 2,
            device=type("Odd", (), {"__str__": lambda self: "no device"})())
    refuses(TypeError, "__str__|str", m.zeros, 2,
            device=type("Odd", (), {"__str__": lambda self: 1})())
    refuses(BufferError, "99|cuda|CUDA", m.zeros, 2, device=tvm_ffi.device("cuda", 99))
