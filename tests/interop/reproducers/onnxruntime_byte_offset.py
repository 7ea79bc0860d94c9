import numpy
from capsule import Forged, say
from onnxruntime.capi.onnxruntime_pybind11_state import OrtValue


def edit(managed):
    managed.byte_offset.value = 4


array = numpy.arange(8, dtype="f4")
found = OrtValue.from_dlpack(Forged(array, edit).__dlpack__()).numpy()
say(found[0] != 1, f"byte_offset of 4 is ignored: the first element is {found[0]}, not 1")
