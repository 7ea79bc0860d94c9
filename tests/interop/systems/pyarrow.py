"""pyarrow's tensors."""

import pyarrow as pa

VENV, PIP = "arrow", ["numpy==2.4.6", "pyarrow==26.0.1"]


def make(array):
    return pa.Tensor.from_numpy(array.copy())


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return pa.Tensor.from_numpy(array)


def transposed(x):
    return pa.Tensor.from_numpy(x.to_numpy().T)


def take(tensor):
    return pa.Tensor.from_dlpack(tensor)


def values(x):
    return x.to_numpy()


def address(x):
    return x.to_numpy().ctypes.data


def writable(x):
    return x.is_mutable
