"""Apache TVM."""

import tvm
from hooks import data_ptr as address

VENV, PIP = "tvm", ["numpy==2.4.6", "apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.15.post2"]


def make(array):
    return tvm.runtime.tensor(array)


def take(tensor):
    return tvm.runtime.from_dlpack(tensor)


def values(x):
    return x.numpy()
