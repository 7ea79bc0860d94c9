import gc

import dpctl.tensor
import numpy
from capsule import Forged, say


def edit(managed):
    managed.deleter.value = None


print("violated: the process ends where the deleter is NULL, which dlpack.h allows", flush=True)
array = dpctl.tensor.from_dlpack(Forged(numpy.zeros(16, "f4"), edit))
del array
gc.collect()
say(False, "")
