import numpy
import tensorflow
from capsule import Forged, say


def edit(managed):
    managed.lanes.value, managed.shape[0] = 4, 3


taken = tensorflow.experimental.dlpack.from_dlpack(
    Forged(numpy.arange(12, dtype="f4"), edit).__dlpack__())
say(tuple(taken.shape) == (3,), "3 elements of float32x4 became 3 numbers")
