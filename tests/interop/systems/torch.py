"""PyTorch."""

import torch

VENV, PIP = "torch", ["numpy==2.4.6", "torch==2.15.0"]


def version():
    return torch.__version__


def make(array):
    return torch.from_numpy(array.copy())


def transposed(x):
    return x.T


def take(tensor):
    return torch.from_dlpack(tensor)


def address(x):
    return x.data_ptr()


def values(x):
    return x.numpy()


def writable(x):
    x[...] = x + 0  # PyTorch has no read-only tensors
    return True
