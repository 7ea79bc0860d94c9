"""array-api-strict: the array API standard's reference implementation, on top of NumPy."""

import array_api_strict as xp
import numpy as np
from hooks import transposed

VENV, PIP = "core", ["numpy==2.4.6", "array-api-strict==2.6.1"]
FAST = True


def make(array):
    return xp.asarray(array.copy())


def reversed(x):
    return xp.flip(x, axis=0)


def take(tensor):
    return xp.from_dlpack(tensor)


def address(x):
    return x._array.ctypes.data


def values(x):
    return np.asarray(x._array)


def writable(x):
    return x._array.flags.writeable
