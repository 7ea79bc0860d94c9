import numpy
import tensorflow
from capsule import Forged, say


def edit(managed):
    managed.shape[0] = -3


print("violated: the process ends where an extent is negative", flush=True)
try:
    tensorflow.experimental.dlpack.from_dlpack(
        Forged(numpy.ones((3, 4), "f4"), edit).__dlpack__())
except Exception:
    say(False, "")
