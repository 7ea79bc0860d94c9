"""Intel oneAPI through dpctl: kDLOneAPI tensors, on the CPU by Intel's OpenCL runtime."""

import os
import sys

os.environ["OCL_ICD_FILENAMES"] = os.path.join(sys.prefix, "lib", "libintelocl.so")

import dpctl.tensor as dpt  # noqa: E402
from hooks import exported as address, reversed, to_host, transposed  # noqa: E402

VENV, PIP = "oneapi", ["numpy==2.4.6", "dpctl==0.21.1", "intel-opencl-rt<2026"]


# Its NumPy array over host memory starts at `data`.
FAULTS = {"import raw offset": "ignores byte_offset"}


def make(array):
    return dpt.asarray(array)


def take(tensor):
    return dpt.from_dlpack(tensor)


def values(x):
    return dpt.asnumpy(x) if isinstance(x, dpt.usm_ndarray) else x  # host memory: NumPy's


MORE = {"to the host": to_host}
