"""CuPy without a GPU: only its checks of tensors of ours; arrays need a driver."""

import cupy

VENV, PIP = "cupy", ["numpy==2.4.6", "cupy-cuda13x==14.2.0"]


def take(tensor):
    return cupy.from_dlpack(tensor)


def refused(system):
    """CuPy rejects host memory with an error, and our tensor is unchanged."""
    import numpy as np

    from checks import Wrong, of_array, offer

    offer(system, of_array(np.arange(6, dtype=np.float32)))
    raise Wrong("took host memory without a GPU")


def no_gpu(_):
    return "not run: no GPU"


CHECKS = {"import": refused, "export": no_gpu}
