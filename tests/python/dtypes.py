"""Arrays of every dtype, ml_dtypes' included, and their expected conversions."""

import warnings

import ml_dtypes
import numpy as np

import dlpack_rs
from views import DTYPES, random_view

# Every type of ml_dtypes that DLPack can express.
ML = {name: np.dtype(getattr(ml_dtypes, name)) for name in [*dlpack_rs.DTYPES, *(
    f"{sign}int{bits}" for sign in ("", "u") for bits in (1, 2, 4))] if hasattr(ml_dtypes, name)}
ALL = {**{dtype.name: dtype for dtype in DTYPES}, **ML}


def small(rng, shape, dtype):
    """Numbers that every type but the smallest can represent."""
    return rng.integers(0, 2, shape).astype(dtype)


def any_dtype(rng):
    return list(ALL.values())[rng.integers(len(ALL))]


def view_of_any(rng):
    """A random view of any dtype; for ml_dtypes the bits are those of small numbers."""
    dtype = any_dtype(rng)
    if dtype in DTYPES:
        return random_view(rng, dtype)
    array = random_view(rng, np.dtype("u1"))
    array = (array % 2).astype(dtype, order="K")[..., ::rng.choice([1, -1, 2])] if array.ndim else \
        small(rng, (), dtype)
    array.flags.writeable = bool(rng.integers(2))
    return array


def converted(array, dtype):
    """Converts as NumPy and ml_dtypes do, except pairs that ml_dtypes lacks, and int1."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dtype.name == "int1" and "int" not in array.dtype.name and array.dtype != bool:
            # Floats saturate: 1 is out of range.
            array = np.asarray(np.minimum(array.astype("c16").real, 0))
        try:
            return array.astype(dtype)
        except TypeError:
            return array.astype("f4").astype(dtype)


def bits_of(name):
    return dlpack_rs.empty(8, name).nbytes


def same(tensor, array):
    assert (tensor.shape, tensor.dtype) == (array.shape, array.dtype.name)
    assert tensor.tobytes() == array.tobytes()
