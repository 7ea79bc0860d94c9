"""Intel oneAPI through dpnp."""

import os
import sys

os.environ["OCL_ICD_FILENAMES"] = os.path.join(sys.prefix, "lib", "libintelocl.so")

import dpnp  # noqa: E402

VENV, PIP = "dpnp", ["numpy==2.4.6", "dpnp==0.20.0"]


# As dpctl, which implements it.
FAULTS = {"import raw offset": "ignores byte_offset"}


def version():
    return dpnp.__version__


def make(array):
    return dpnp.asarray(array)


def transposed(x):
    return x.T


def reversed(x):
    return x[::-1]


def take(tensor):
    return dpnp.from_dlpack(tensor)


def values(x):
    return dpnp.asnumpy(x)


def address(x):
    from ours import Facts, capsules

    return Facts(capsules.request(x)).address


def to_host(system):
    from checks import export_to_host

    return export_to_host(system)


MORE = {"to the host": to_host}
