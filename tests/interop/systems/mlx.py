"""MLX on the CPU."""

import mlx.core as mx
import numpy as np
from hooks import reversed, transposed

VENV, PIP = "mlx", ["numpy==2.4.6", "mlx[cpu]==0.32.4"]


def version():
    return mx.__version__


def make(array):
    if array.dtype == "float64":
        raise TypeError("MLX makes float32 of float64")
    return mx.array(array)


def take(tensor):
    return mx.from_dlpack(tensor)


def values(x):
    return np.array(x)


def address(x):
    from ours import Facts

    mx.eval(x)
    return Facts(x.__dlpack__()).address
