"""NumPy."""

import numpy as np
from hooks import reversed, transposed

VENV, PIP = "core", ["numpy==2.4.6"]
FAST = True


def make(array):
    return array.copy()


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def take(tensor):
    return np.from_dlpack(tensor)


def address(x):
    return x.ctypes.data


def values(x):
    return x


def writable(x):
    return x.flags.writeable
