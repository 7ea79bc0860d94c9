"""CuPy without a GPU: only what it says about tensors of ours; arrays need a driver."""

import cupy

VENV, PIP = "cupy", ["numpy==2.4.6", "cupy-cuda13x==14.2.0"]


def version():
    return cupy.__version__


def take(tensor):
    return cupy.from_dlpack(tensor)


def refused(system):
    """Host memory is not CuPy's: it says so, and our tensor stays ours."""
    import numpy as np

    from checks import Wrong, of_array, offer

    offer(system, of_array(np.arange(6, dtype=np.float32)))
    raise Wrong("took host memory without a GPU")


def no_gpu(_):
    return "not run: no GPU"


CHECKS = {"import": refused, "export": no_gpu}
