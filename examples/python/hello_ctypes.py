"""A NumPy array through libdlpack_rs and back, with ctypes. Run: python3 hello_ctypes.py"""

import numpy as np

import capsules
import dlpack_ctypes as dlpack

array = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1, ::2]

# In: no copy, whatever the strides; the tensor keeps the array alive.
tensor = dlpack.from_dlpack(array)
print(tensor.describe())
assert tensor.address == array.ctypes.data and tensor.strides == (-4, 2)

# A copy is dense, writable and owned by the consumer; its flags mark it as a copy.
clone = tensor.clone()
assert clone.flags == dlpack.IS_COPIED and clone.is_contiguous("C")
clone.attach(lambda: print("the copy is freed"))

# Out: NumPy shares the memory, and writes to it.
back = np.from_dlpack(clone)
back[0, 0] = 100
print(clone)
assert array[0, 0] == 8 and back.base is not None

# The last reference frees: ours is released first, then NumPy's.
del clone
print("NumPy still has", back.ravel())
del back
capsules.sweep()

# Errors are exceptions with the library's message.
try:
    dlpack.empty((2, -1))
except ValueError as error:
    print(error)
