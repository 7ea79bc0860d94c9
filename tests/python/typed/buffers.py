"""What each function takes: arrays, buffers, capsules, array interfaces, and dtypes of any kind."""

from __future__ import annotations

import mmap
from array import array
from ctypes import c_float
from typing import Any

import numpy as np

import dlpack_rs


class Interface:
    def __init__(self) -> None:
        self.array = np.zeros(3)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__


class Convertible:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.zeros(3, dtype)


mapped = mmap.mmap(-1, 3)
for tensor in (
    dlpack_rs.from_dlpack(b"abc"), dlpack_rs.from_dlpack(bytearray(3)),
    dlpack_rs.from_dlpack(memoryview(b"abc")), dlpack_rs.from_dlpack(array("d", [1.0] * 3)),
    dlpack_rs.from_dlpack(mapped, copy=True), dlpack_rs.from_dlpack((c_float * 3)()),
    dlpack_rs.from_dlpack(np.zeros(3)), dlpack_rs.from_dlpack(Interface()),
    dlpack_rs.from_dlpack(dlpack_rs.zeros(3).__dlpack__(max_version=(1, 0))),
    dlpack_rs.from_numpy(bytearray(3)), dlpack_rs.asarray(b"abc"), dlpack_rs.asarray(range(3)),
    dlpack_rs.asarray(Convertible(), dtype=int), dlpack_rs.full(3, [1, 2, 3]),
):
    assert tensor.shape == (3,)
    copy = tensor.copy()
    copy.copy_from(bytearray(3))
    copy.copy_from([1, 2, 3])
    copy[...] = [4, 5, 6]
    copy[0] = 7
    assert copy.astype(float).astype("int8").equal(array("b", [7, 5, 6]))
    assert copy.astype(np.uint8).max_diff(b"\7\5\6") == 0
one = dlpack_rs.full((), 2)
value: int = [5, 6, 7][one] + dlpack_rs.asarray([5, 6, 7])[int(one)].__index__()
text: str = f"{one:d}" + format(one, ">4") + str(round(one, 1))
assert one.astype(dtype=float).equal(other=one.astype(dtype="float64"))
assert value == 14 and one.__array_interface__["shape"] == () and text == "2   22"
