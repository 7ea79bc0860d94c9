"""The C functions with ctypes: memory as a tensor, a copy, NumPy, a callback, an error.
docs/python.md explains them. Run: python3 hello_ctypes.py"""

import sys
from ctypes import byref, create_string_buffer, py_object
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # or: pip install dlpack_rs
from dlpack_rs import abi


class Exported:
    """What NumPy and others take: an object with a capsule."""

    def __init__(self, tensor):
        capsule = py_object()
        abi.call(abi.pylib.dlrs_py_capsule_new_take, byref(tensor), byref(capsule))
        self.capsule = abi.new_object(capsule)  # owns the tensor, until a consumer takes it

    def __dlpack__(self, **_):
        return self.capsule


# Every second column, from the last row up: strides count elements. Memory at an address must stay
# valid until the function is called.
memory = np.arange(12, dtype=np.float32)
tensor = abi.wrap(memory[8:].ctypes.data, (3, 2), "float32", lambda: print("freed"), strides=(-4, 2))
text = create_string_buffer(256)
abi.call(abi.lib.dlrs_managed_to_string, tensor, None, text, len(text), None)
print(text.value.decode())

# A copy is dense, and its flags say that it is one.
clone = abi.Versioned()
abi.call(abi.lib.dlrs_clone, tensor, abi.DLDevice(abi.kDLCPU, 0), None, byref(clone))
assert clone.contents.flags == abi.IS_COPIED and clone.contents.dl_tensor.strides[:2] == [2, 1]
abi.lib.dlrs_release(tensor)  # prints "freed"

# NumPy shares the copy's memory, and keeps it.
array = np.from_dlpack(Exported(clone))
array[0, 0] = 100
print(array.ravel())

# Errors are exceptions with the library's message.
try:
    abi.wrap(bytearray(24), (2, -1), "float32")
except ValueError as error:
    print(error)
