import mxnet
import numpy
from capsule import Forged, say


def edit(managed):
    managed.byte_offset.value = 4


found = mxnet.nd.from_dlpack(Forged(numpy.arange(8, dtype="f4"), edit).__dlpack__()).asnumpy()
say(found[0] != 1, f"byte_offset of 4 is ignored: the first element is {found[0]}, not 1")
