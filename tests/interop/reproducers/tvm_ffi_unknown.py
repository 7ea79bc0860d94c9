import numpy
import tvm_ffi
from capsule import Forged, say


def edit(managed):
    managed.code.value = 200


try:
    found = tvm_ffi.from_dlpack(Forged(numpy.ones(3, "f4"), edit))
    say(True, f"dtype code 200, which DLPack does not have, is taken: shape {found.shape}")
except Exception as error:
    say(False, str(error))
