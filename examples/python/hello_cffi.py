"""The C functions with cffi: a view of NumPy's memory, copied into a tensor of the library.
Run: python3 hello_cffi.py"""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # or: pip install dlpack_rs
from dlpack_rs.abi.cffi import ffi, lib


def call(function, *arguments):
    error = ffi.new("dlrs_error *", {"struct_size": ffi.sizeof("dlrs_error")})
    if function(*arguments, error) != lib.DLRS_OK:
        raise ValueError(ffi.string(error.message).decode())


# A description of the array's memory. cffi keeps neither shape nor strides: the names do.
array = np.arange(6, dtype=np.int16).reshape(2, 3).T
shape, strides = ffi.new("int64_t[]", array.shape), ffi.new("int64_t[]", [1, 3])
int16, cpu = (lib.kDLInt, 16, 1), (lib.kDLCPU, 0)
view = ffi.new("DLTensor *", {
    "data": ffi.cast("void *", array.ctypes.data), "device": cpu, "ndim": 2, "dtype": int16,
    "shape": shape, "strides": strides})

out = ffi.new("DLManagedTensorVersioned **")
call(lib.dlrs_tensor_new, shape, 2, int16, cpu, ffi.NULL, out)
tensor = ffi.gc(out[0], lib.dlrs_release)
call(lib.dlrs_copy_desc, view, 0, ffi.addressof(tensor.dl_tensor), 0, ffi.NULL)

# The structs of dlpack.h, and its memory as a buffer.
print("DLPack", tensor.version.major, tensor.version.minor, "flags", tensor.flags)
copied = np.frombuffer(ffi.buffer(tensor.dl_tensor.data, array.nbytes), np.int16).reshape(3, 2)
assert np.array_equal(copied, array) and not np.shares_memory(copied, array)
text = ffi.new("char[256]")
call(lib.dlrs_managed_to_string, tensor, ffi.NULL, text, len(text), ffi.NULL)
print(ffi.string(text).decode())
