import numpy
import tvm_ffi
from capsule import Forged, say


def edit(managed):
    managed.device_type.value = 99


try:
    found = tvm_ffi.from_dlpack(Forged(numpy.ones(3, "f4"), edit))
    say(True, f"a tensor on device type 99, which DLPack does not have, is taken: {found.shape}")
except Exception as error:
    say(False, str(error))
