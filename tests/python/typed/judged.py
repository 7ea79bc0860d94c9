"""A conforming library, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import dlpack_conformance as conform

Array = npt.NDArray[Any]


class MyLibrary(conform.Library):
    name = "mine"

    def make(self, tensor: conform.Tensor) -> Array:
        return np.array(tensor.numpy())

    def take(self, producer: Any) -> Array:
        return np.from_dlpack(producer)

    def version(self) -> str:
        return "1.0"

    def address(self, result: Array) -> int:
        return result.ctypes.data


test_dlpack = conform.checks(MyLibrary, known={"P15": "issue 7"})
test_exports = conform.checks(MyLibrary(), skips=["C01"])
check = conform.CHECKS["P01"]
verdict = conform.judge(MyLibrary(), check)
assert isinstance(verdict, conform.Verdict) and not verdict.counts, verdict.text
print(check.explain(), conform.SEVERITIES, verdict.outcome)
