"""The library's text, read back, is the tensor again: the same nesting, the same bits."""

import re

import numpy as np
import pytest

from views import DTYPES


def number(text, dtype):
    """What a number's text says; float32 is not read as a float64 that is rounded again."""
    if dtype.kind == "b":
        return {"True": True, "False": False}[text]
    if dtype.kind in "iu":
        return int(text)
    if dtype.kind == "c":
        parts = complex(text)
        return np.array([parts.real, parts.imag]).astype(f"f{dtype.itemsize // 2}").view(dtype)[0]
    return np.float64(text) if dtype == np.float64 else np.float32(text)


def read(text, dtype):
    """Nested lists of numbers, and of `...`."""
    words = re.sub(r"[^][,\s]+", lambda word: f"of({word[0]!r})", text)
    return eval(words, {"of": lambda word: ... if word == "..." else number(word, dtype)})


def bits(array):
    """The bytes; NaNs are all alike."""
    if array.dtype.kind in "fc":
        array = np.ascontiguousarray(array).reshape(-1).view(f"f{array.real.itemsize}")
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def same_text(text, array):
    found = np.array(read(text, array.dtype), array.dtype)
    assert found.shape == (array.shape if array.size else (0,))
    assert bits(found) == bits(array)


def check(dlpack, array):
    head, _, values = dlpack.from_dlpack(array).describe().partition("\n")
    same_text(values, array)
    assert f"dtype={array.dtype.name}" in head and f"shape={array.shape}" in head


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "fc"], ids=str)
def test_common_numbers(dlpack, dtype):
    common = np.array([0.0, -0.0, 1, -1, 0.1, 1 / 3, 1e-8, 1e8, 1e16, 123456.789, 5e-324, 65504,
                       np.nan, np.inf, -np.inf, 1e4, 99999.5, 0.00012345])
    with np.errstate(all="ignore"):
        check(dlpack, common.astype(dtype))
        if dtype.kind == "c":
            pairs = np.array(np.meshgrid(common, common)).T.reshape(-1, 2)
            check(dlpack, pairs.astype(f"f{dtype.itemsize // 2}").view(dtype))


@pytest.mark.parametrize("shape", [(1000,), (1001,), (5000,), (40, 40), (7, 300), (300, 7),
                                   (12, 12, 12), (3, 2, 500), (2000, 1), (1, 2000), (0, 2000),
                                   (1,) * 12, (2,) * 11, (6, 6, 6, 6), (7, 7, 7, 7)])
def test_large_arrays_are_summarised(dlpack, shape):
    def edges(rows):
        if not isinstance(rows, list):
            return rows
        if len(rows) > 6:
            rows = [*rows[:3], ..., *rows[-3:]]
        return [edges(row) for row in rows]

    array = np.arange(np.prod(shape)).reshape(shape)
    for array in (array, array.T):
        text = dlpack.from_dlpack(array).describe().partition("\n")[2]
        wanted = edges(array.tolist()) if array.size > 1000 else array.tolist()
        assert read(text, array.dtype) == (wanted if array.size else [])
