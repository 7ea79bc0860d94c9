"""Intel oneAPI through dpnp."""

import os
import sys

os.environ["OCL_ICD_FILENAMES"] = os.path.join(sys.prefix, "lib", "libintelocl.so")

import dpnp  # noqa: E402
from hooks import exported as address, reversed, to_host, transposed  # noqa: E402

VENV, PIP = "dpnp", ["numpy==2.4.6", "dpnp==0.20.0"]


# As dpctl, which implements it.
FAULTS = {"import raw offset": "ignores byte_offset"}


def make(array):
    return dpnp.asarray(array)


def take(tensor):
    return dpnp.from_dlpack(tensor)


def values(x):
    return dpnp.asnumpy(x)


MORE = {"to the host": to_host}
