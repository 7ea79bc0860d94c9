"""Dask without DLPack support: arrays are exchanged through NumPy's."""

import dask
import dask.array
import numpy as np

VENV, PIP = "dask", ["numpy==2.4.6", "dask==2026.8.0", "numba==0.68.1"]


def make(array):
    return dask.array.from_array(array, chunks=array.shape or 1)


def exporter(x):
    return x.compute()


def take(tensor):
    return dask.array.from_array(np.from_dlpack(tensor), name=False)


def values(x):
    return x.compute()
