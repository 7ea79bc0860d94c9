"""PyTorch."""

import torch
from hooks import data_ptr as address, transposed

VENV, PIP = "torch", ["numpy==2.4.6", "torch==2.15.0"]


def version():
    return torch.__version__


def make(array):
    return torch.from_numpy(array.copy())


def take(tensor):
    return torch.from_dlpack(tensor)


def values(x):
    return x.numpy()


def writable(x):
    x[...] = x + 0  # PyTorch has no read-only tensors
    return True


def lazy(x, plain):
    """A tensor whose type differs from its memory: it must be rejected, or be right."""
    from checks import Refused, as_numpy, must
    from ours import take as ours

    try:
        tensor = ours(x)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    must((as_numpy(tensor) == plain.numpy()).all(), "exported as if it were plain")
    return "taken, and right"


def conjugate(_):
    return lazy(torch.tensor([1 + 2j, 3 - 4j]).conj(), torch.tensor([1 - 2j, 3 + 4j]))


def negated(_):
    return lazy(torch.tensor([1 + 2j]).conj().imag, torch.tensor([-2.0]))


def gradient(_):
    return lazy(torch.ones(3, requires_grad=True), torch.ones(3))


MORE = {"a conjugated view": conjugate, "a negated view": negated, "requires_grad": gradient}
