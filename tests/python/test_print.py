"""The library's text equals NumPy's."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from views import DTYPES, random_bytes, random_view


def check(dlpack, array):
    expected = str(array)
    text = dlpack.from_dlpack(array).describe()
    head, _, values = text.partition("\n")
    assert values == expected, head
    assert f"dtype={array.dtype.name}" in head and f"shape={array.shape}" in head


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_bits(dlpack, dtype):
    rng = np.random.default_rng(21)
    for _ in range(60):
        shape = tuple(rng.integers(0, 6, rng.integers(0, 5)))
        check(dlpack, random_bytes(rng, shape, dtype))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "fc"], ids=str)
def test_common_numbers(dlpack, dtype):
    rng = np.random.default_rng(22)
    special = np.array([0.0, -0.0, 1, -1, 0.1, 1 / 3, 1e-8, 1e8, 1e16, 123456.789, 5e-324, 65504,
                        np.nan, np.inf, -np.inf, 1e4, 99999.5, 0.00012345])
    with np.errstate(all="ignore"):
        for _ in range(150):
            values = rng.choice(special, rng.integers(0, 9))
            if rng.random() < 0.5:
                values = np.round(rng.normal(0, 10.0 ** rng.integers(-4, 6), values.shape),
                                  rng.integers(0, 5))
            array = values.astype(dtype)
            if dtype.kind == "c":
                array = array + 1j * rng.permutation(array)
                array = array.astype(dtype)
            check(dlpack, array)


def test_views(dlpack):
    rng = np.random.default_rng(23)
    for _ in range(500):
        check(dlpack, random_view(rng))


@pytest.mark.parametrize("shape", [(1000,), (1001,), (5000,), (40, 40), (7, 300), (300, 7),
                                   (12, 12, 12), (3, 2, 500), (2000, 1), (1, 2000), (0, 2000),
                                   (1,) * 12, (2,) * 11])
def test_large_arrays_are_summarised(dlpack, shape):
    rng = np.random.default_rng(24)
    for dtype in ("i4", "f8", "f4", "?", "c8"):
        array = (rng.normal(0, 100, shape)).astype(dtype)
        check(dlpack, array)
        check(dlpack, array.T)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
                                  "float8_e4m3b11fnuz", "float8_e3m4"])
def test_small_floats_have_the_values_of_ml_dtypes(dlpack, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = np.arange(256 if dtype.itemsize == 1 else 1 << 16, dtype=f"u{dtype.itemsize}")
    for chunk in np.array_split(bits, max(1, bits.size // 200)):
        tensor = dlpack.empty((chunk.size,), name)
        ctypes.memmove(tensor.address, chunk.ctypes.data, chunk.nbytes)
        with np.errstate(invalid="ignore"):
            expected = chunk.view(dtype).astype(np.float64)
        got = np.array(str(tensor).replace("[", " ").replace("]", " ").split(), np.float64)
        # Eight digits are printed, as NumPy does.
        assert np.allclose(got, expected, rtol=1e-6, atol=1e-8, equal_nan=True)
