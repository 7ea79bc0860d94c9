import numpy
import tvm_ffi
from capsule import say

x = tvm_ffi.from_dlpack(numpy.ones(3, "f4"))
try:
    x.__dlpack__(max_version=(0, 8))
    say(False, "")
except BufferError:
    say(False, "")
except Exception as error:
    say(True, f"max_version=(0, 8): {type(error).__name__}: {error}")
