"""The library's text, read back, is the tensor again: the same nesting, the same bits."""

import re

import numpy as np
import pytest

import dlpack_rs


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


@pytest.mark.parametrize("shape", [(1000,), (1001,), (5000,), (40, 40), (7, 300), (300, 7),
                                   (12, 12, 12), (3, 2, 500), (2000, 1), (1, 2000), (0, 2000),
                                   (1,) * 12, (2,) * 11, (6, 6, 6, 6), (7, 7, 7, 7)])
def test_large_arrays_are_summarised(shape):
    def edges(rows):
        if not isinstance(rows, list):
            return rows
        if len(rows) > 6:
            rows = [*rows[:3], ..., *rows[-3:]]
        return [edges(row) for row in rows]

    array = np.arange(np.prod(shape)).reshape(shape)
    for array in (array, array.T):
        text = str(dlpack_rs.from_dlpack(array)).partition("\n")[2]
        wanted = edges(array.tolist()) if array.size > 1000 else array.tolist()
        assert read(text, array.dtype) == (wanted if array.size else [])
