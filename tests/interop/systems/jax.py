"""JAX."""

import jax
import numpy as np
from hooks import transposed

VENV, PIP = "jax", ["numpy==2.4.6", "jax[cpu]==0.10.2"]

jax.config.update("jax_enable_x64", True)


def make(array):
    return jax.numpy.asarray(array.copy())


def take(tensor):
    return jax.numpy.from_dlpack(tensor)


def address(x):
    return x.unsafe_buffer_pointer()


def values(x):
    return np.asarray(x).copy()  # JAX keeps the array of np.asarray


def writable(x):
    return False  # arrays of JAX are immutable
