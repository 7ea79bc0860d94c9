"""A NumPy array through libdlpack_rs and back, with cffi. Run: python3 hello_cffi.py"""

import numpy as np

import dlpack_cffi as dlpack

array = np.arange(6, dtype=np.int16).reshape(2, 3).T
tensor = dlpack.from_dlpack(array)
print(tensor.describe())

# cffi accesses the structs of dlpack.h.
managed = tensor.pointer
print("DLPack", managed.version.major, managed.version.minor, "flags", managed.flags)
assert tensor.address == array.ctypes.data

# Dense in C order: a copy, because the array is transposed. Dense in F order: the tensor itself.
dense, itself = tensor.contiguous("C"), tensor.contiguous("F")
assert dense.address != tensor.address and itself.address == tensor.address
assert np.array_equal(np.from_dlpack(dense), array)

# A write through a tensor changes the array, and nothing around it.
dlpack.copy(dlpack.from_dlpack(-array), tensor)
print(array)
