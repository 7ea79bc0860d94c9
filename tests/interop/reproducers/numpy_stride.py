import numpy
from capsule import Forged, say


def edit(managed):
    managed.strides[0] = 1 << 62  # times 4 bytes it is 0 in 64 bits


try:
    taken = numpy.from_dlpack(Forged(numpy.arange(12, dtype="f4").reshape(3, 4), edit))
    say(True, f"a stride of 2^62 elements became {taken.strides[0]} bytes")
except Exception:
    say(False, "")
