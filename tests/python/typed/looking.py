"""The reports of inspect, and its table of consumers."""

from __future__ import annotations

import numpy as np

import dlpack_rs
from dlpack_rs.consumers import CONSUMERS, Consumer, judge


def taken_by(obj: object) -> list[str]:
    found = dlpack_rs.inspect(obj)
    return [consumer.name for consumer, verdict, _ in found.consumers if verdict == "takes"]


def problems(consumer: Consumer, obj: object) -> str:
    verdict, why = judge(consumer, dlpack_rs.inspect(obj))
    return f"{consumer.name} {verdict}: {why}"


array = np.arange(6.0)[::-1]
seen = dlpack_rs.inspect(array)
if seen.shape is not None and seen.strides is not None:
    steps: list[int] = [stride * seen.dtype[1] // 8 for stride in seen.strides]
    assert steps == list(array.strides)
assert seen.device == (1, 0) and seen.valid == "strictly" and "numpy" in taken_by(array)
names: tuple[str, ...] = dlpack_rs.register_numpy_dtypes() if array.size == 0 else ()
print(names, problems(CONSUMERS[2], array), *(f"{name}: {text}" for name, text in seen.rows()), sep="\n")
