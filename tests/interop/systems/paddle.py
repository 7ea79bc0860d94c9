"""PaddlePaddle."""

import numpy as np
import paddle
from hooks import data_ptr as address

VENV, PIP = "paddle", ["numpy==2.4.6", "paddlepaddle==3.3.1"]
FAULTS = {"import raw offset": "ignores byte_offset",
          "import reversed": "takes negative strides, then fails at the first operation"}


def make(array):
    if array.dtype == "uint16":
        raise TypeError("Paddle takes NumPy's uint16 for bfloat16")
    return paddle.to_tensor(array)


def transposed(x):
    return paddle.transpose(x, (1, 0))


def take(tensor):
    return paddle.from_dlpack(tensor)


def values(x):
    return np.asarray(x.numpy())


def writable(x):
    x[...] = x + 0
    return True
