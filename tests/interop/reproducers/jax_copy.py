import jax.dlpack
import numpy
from capsule import say

memory = numpy.zeros(100, "f4")
array = memory[-memory.ctypes.data % 64 // 4:][:16]  # aligned as JAX requires
copy = jax.dlpack.from_dlpack(array, copy=True)
array[0] = 99
say(float(copy[0]) == 99, "from_dlpack(copy=True) shares memory with its source")
