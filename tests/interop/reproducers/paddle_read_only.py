import numpy
import paddle
from capsule import Managed, say

array = numpy.zeros(64, "f4")
array.flags.writeable = False
tensor = paddle.from_dlpack(array)
shared = tensor.data_ptr() == array.ctypes.data
flags = Managed(tensor.__dlpack__(max_version=(1, 0))).flags.value
say(shared and not flags & 1, f"a read-only array is exported again with flags {flags}")
