"""Intel oneAPI through dpctl: kDLOneAPI tensors, on the CPU by Intel's OpenCL runtime."""

import os
import sys

os.environ["OCL_ICD_FILENAMES"] = os.path.join(sys.prefix, "lib", "libintelocl.so")

import dpctl  # noqa: E402
import dpctl.tensor as dpt  # noqa: E402

VENV, PIP = "oneapi", ["numpy==2.4.6", "dpctl==0.21.1", "intel-opencl-rt<2026"]


# Its NumPy array over host memory starts at `data`.
FAULTS = {"import raw offset": "ignores byte_offset"}


def version():
    return dpctl.__version__


def make(array):
    return dpt.asarray(array)


def transposed(x):
    return x.T


def reversed(x):
    return x[::-1]


def take(tensor):
    return dpt.from_dlpack(tensor)


def values(x):
    return dpt.asnumpy(x) if isinstance(x, dpt.usm_ndarray) else x  # host memory: NumPy's


def address(x):
    from ours import Facts, capsules

    return Facts(capsules.request(x)).address


def to_host(system):
    from checks import export_to_host

    return export_to_host(system)


MORE = {"to the host": to_host}
