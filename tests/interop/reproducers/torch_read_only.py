import numpy
import torch
from capsule import Managed, say

array = numpy.ones(3, "f4")
array.flags.writeable = False
again = torch.from_dlpack(array).__dlpack__(max_version=(1, 0))
say(not Managed(again).flags.value & 1, "a read-only array is exported again as writable")
