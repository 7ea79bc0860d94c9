import numpy
from capsule import Forged, say


def edit(managed):
    managed.shape_pointer.value = None


print("violated: the process ends where shape is NULL and ndim 2", flush=True)
try:
    numpy.from_dlpack(Forged(numpy.ones((3, 4), "f4"), edit))
except Exception:
    say(False, "")
