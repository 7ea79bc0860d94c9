"""Tensors in and out, their views and what is made of them."""

from __future__ import annotations

import numpy as np

import dlpack_rs
from dlpack_rs import Tensor


class Producer:
    """Something else with __dlpack__."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, *, stream: int | None = None,
                   max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device,
                                      copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


array = np.arange(12, dtype=np.float32).reshape(3, 4)
tensor = dlpack_rs.from_dlpack(array)
assert np.shares_memory(np.from_dlpack(tensor), array)
turned: Tensor = tensor[::-1, 1:3].permute(1, 0)
shape: tuple[int, ...] = turned.shape
assert shape == (2, 3) and turned.dtype == "float32" and not turned.readonly
rows: list[Tensor] = [row.contiguous() for row in tensor]
assert np.array_equal(np.asarray(turned), array[::-1, 1:3].T) and rows[0].nbytes == 16
again = dlpack_rs.from_dlpack(Producer(tensor), device="cpu", copy=False)
half = dlpack_rs.empty((2, 3), "float16", device="cpu").to("cpu", copy=True)
assert again.size == 12 and half.itemsize == 2 and dlpack_rs.DEVICES[1] == "cpu"
half[...] = dlpack_rs.full((3,), 2, dtype=np.float32)
half.fill(1.5)
whole: Tensor = half.astype(np.int32, copy=False)
assert whole.tolist() == [[1, 1, 1], [1, 1, 1]] and whole.is_contiguous("F") is False
assert dlpack_rs.asarray([[1.5] * 3] * 2, dtype="float16").equal(half) and len(half.tobytes()) == 12
zeros = dlpack_rs.zeros(np.array([2, 3]), "float32").reshape(range(2, 4))
difference: float = zeros.max_diff(dlpack_rs.from_numpy(np.full((2, 3), 3, np.float32)))
major, minor = dlpack_rs.dlpack_version
print(f"DLPack {major}.{minor}, {dlpack_rs.__version__}", difference, again.layout())
