"""MXNet 1.9: legacy capsules through functions of MXNet, no __dlpack__."""

import mxnet as mx

VENV, PIP = "mxnet", ["numpy==1.23.5", "mxnet==1.9.1"]
# It has no __dlpack__: Exporter implements the keywords.
CONFORM = "C*,R*,P10,P11,P12,P13,P29,P3*,P4*,P5*,P61,P62,P63,P64"
FAULTS = {"import raw offset": "ignores byte_offset"}


class Exporter:
    """The wrapper that a program needs to export MXNet's arrays."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **_):
        return mx.nd.to_dlpack_for_write(self.x)

    def __dlpack_device__(self):
        return 1, 0


exporter = Exporter


def make(array):
    return mx.nd.array(array, dtype=array.dtype)


def take(tensor):
    return mx.nd.from_dlpack(tensor.__dlpack__())


def values(x):
    return x.asnumpy()


def address(x):
    from ours import Facts

    return Facts(mx.nd.to_dlpack_for_read(x)).address
