"""Numba on the CPU, without DLPack: compiled functions work on NumPy arrays of our memory."""

import numba
import numpy as np

VENV, PIP = "dask", ["numpy==2.4.6", "dask==2026.8.0", "numba==0.68.1"]


@numba.njit
def doubled_back(x, out):
    for i, value in enumerate(x.flat):
        out.flat[i] = value
    return out


def make(array):
    return doubled_back(array, np.empty_like(array))


def take(tensor):
    return np.from_dlpack(tensor)


def values(x):
    return doubled_back(x, np.empty(x.shape, x.dtype))


def address(x):
    return x.ctypes.data
