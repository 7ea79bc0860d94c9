"""NumPy's and PyTorch's tensors, in and out."""

from __future__ import annotations

import numpy as np
from torch.utils.dlpack import from_dlpack

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


def rows(tensor: Tensor) -> list[Tensor]:
    return [row.contiguous() for row in tensor]


array = np.arange(12, dtype=np.float32).reshape(3, 4)
tensor = dlpack_rs.from_dlpack(array)
assert np.shares_memory(np.from_dlpack(tensor), array)
turned: Tensor = tensor[::-1, 1:3].permute(1, 0)
shape: tuple[int, ...] = turned.shape
assert shape == (2, 3) and turned.dtype == "float32" and not turned.readonly
assert np.array_equal(np.asarray(turned), array[::-1, 1:3].T)
assert len(rows(tensor)) == 3 and rows(tensor)[0].nbytes == 16

of_torch = from_dlpack(tensor)
back = dlpack_rs.from_dlpack(of_torch, device="cpu", copy=False)
assert back.data_ptr == array.ctypes.data == of_torch.data_ptr()
again = dlpack_rs.from_dlpack(Producer(back))
half = dlpack_rs.empty((2, 3), "float16", device="cpu").to("cpu", copy=True)
assert again.size == 12 and half.itemsize == 2 and dlpack_rs.DEVICES[1] == "cpu"
half[...] = dlpack_rs.full((3,), 2, dtype=np.float32)
half.fill(1.5)
whole: Tensor = half.astype(np.int32, copy=False)
assert whole.tolist() == [[1, 1, 1], [1, 1, 1]] and whole.is_contiguous("F") is False
assert dlpack_rs.asarray([[1.5] * 3] * 2, dtype="float16").equal(half) and len(half.tobytes()) == 12
zeros = dlpack_rs.zeros(np.array([2, 3]), "float32", of_torch.device).reshape(range(2, 4))
zeros.copy_from(np.ones((2, 3), "float32"))
difference: float = zeros.max_diff(dlpack_rs.from_numpy(np.full((2, 3), 3, np.float32)))
assert difference == 2
major, minor = dlpack_rs.dlpack_version
print(f"DLPack {major}.{minor}, {dlpack_rs.__version__}")

print(back.layout())
