"""The C ABI with ctypes: calls, errors, memory of one's own, callbacks and capsules."""

from __future__ import annotations

from ctypes import byref, c_int32, c_uint64, py_object, sizeof

import dlpack_rs
from dlpack_rs import abi


def describe(tensor: abi.DLTensor) -> tuple[int, tuple[int, ...]]:
    return tensor.dtype.bits, tuple(tensor.shape[:tensor.ndim])


# [quote:wrap]
memory = bytearray(24)
tensor = abi.wrap(memory, (2, 3), "float32", on_free=lambda: print("freed"))
answer = c_int32()
abi.call(abi.lib.dlrs_is_contiguous, tensor.contents.dl_tensor, ord("C"), byref(answer))
# [/quote]
error = abi.DLRS_INIT(abi.dlrs_error)
options: abi.dlrs_copy_options = abi.DLRS_INIT(abi.dlrs_copy_options, threads=1)
nbytes = c_uint64()
status: int = abi.lib.dlrs_validate_managed(tensor, abi.DLRS_LEVEL_STRICT, byref(error))
if status != abi.DLRS_OK:
    raise ValueError(abi.lib.dlrs_status_name(status).decode(), error.message.decode())
abi.call(abi.lib.dlrs_nbytes, tensor.contents.dl_tensor, tensor.contents.flags, byref(nbytes))
print(describe(tensor.contents.dl_tensor), answer.value, nbytes.value)
flags = abi.enums.TensorFlags(tensor.contents.flags)
print(flags, abi.enums.DeviceType(tensor.contents.dl_tensor.device.device_type).name)
clone = abi.Versioned()
abi.call(abi.lib.dlrs_clone, tensor, abi.DLDevice(abi.kDLCPU, 0), options, byref(clone))
# [quote:capsule]
out = py_object()
abi.call(abi.pylib.dlrs_py_capsule_new_take, byref(clone), byref(out))
capsule = abi.new_object(out)  # for a __dlpack__ to return
# [/quote]
print(type(capsule).__name__, sizeof(abi.dlrs_error), abi.DLTensor.shape.offset)


# [quote:callback]
@abi.dlrs_free_fn
def free(context: int | None) -> None:
    print("free", context)


abi.call(abi.lib.dlrs_attach, tensor, free, 7, abi.DLRS_AFTER_FREE)
# [/quote]
abi.lib.dlrs_release(tensor)
try:
    dlpack_rs.empty((-1,))
except ValueError as wrong:
    print(wrong)
