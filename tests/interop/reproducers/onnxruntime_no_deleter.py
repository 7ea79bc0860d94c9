import gc

import numpy
from capsule import Forged, say
from onnxruntime.capi.onnxruntime_pybind11_state import OrtValue


def edit(managed):
    managed.deleter.value = None


print("violated: the process ends where the deleter is NULL, which dlpack.h allows", flush=True)
value = OrtValue.from_dlpack(Forged(numpy.zeros(16, "f4"), edit).__dlpack__())
del value
gc.collect()
say(False, "")
