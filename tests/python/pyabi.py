"""The library's Python functions through ctypes, as thin as can be.

Every function here is the C function of that name. PyDLL: the interpreter's lock stays held, as
these functions demand. A failure becomes the exception that `dlrs_py_error_set` chooses.
"""

import ctypes
from ctypes import (POINTER, Structure, byref, c_int32, c_int64, c_uint32, c_uint64, c_void_p,
                    py_object, pythonapi, sizeof)

import dlpack_ctypes as dlpack
from dlpack_rs.abi import (DLDevice, DLManagedTensor, DLManagedTensorVersioned, dlrs_error,
                           dlrs_import_options)

lib = ctypes.PyDLL(dlpack.lib._name)
UNSUPPORTED = 501


class Request(Structure):
    _fields_ = [("struct_size", c_uint32), ("stream", c_void_p), ("max_version", c_void_p),
                ("dl_device", c_void_p), ("copy", c_void_p), ("work_stream", c_void_p)]


class ImportOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("stream", c_int64),
                ("dl_device", DLDevice), ("imported", POINTER(dlrs_import_options))]


LEGACY_WRITABLE, NO_EXCHANGE_API = 1, 2
Versioned, Legacy = POINTER(DLManagedTensorVersioned), POINTER(DLManagedTensor)
for name, parameters in {
    "dlrs_py_capsule_new_take": (POINTER(Versioned), POINTER(c_void_p)),
    "dlrs_py_capsule_new_legacy_take": (POINTER(Legacy), POINTER(c_void_p)),
    "dlrs_py_capsule_consume": (py_object, c_uint64, POINTER(Versioned)),
    "dlrs_py_export": (Versioned, POINTER(Request), POINTER(c_void_p)),
    "dlrs_py_import": (py_object, POINTER(ImportOptions), POINTER(Versioned)),
    "dlrs_exchange_api_from_type": (py_object, POINTER(c_void_p)),
    "dlrs_py_module": (POINTER(c_void_p),),
}.items():
    function = getattr(lib, name)
    function.restype, function.argtypes = c_int32, (*parameters, POINTER(dlrs_error))

lib.dlrs_exchange_api.restype = c_void_p
lib.dlrs_py_error_set.argtypes = (POINTER(dlrs_error), c_void_p)
lib.dlrs_release.restype, lib.dlrs_release.argtypes = None, (Versioned,)


def call(function, *arguments):
    """Calls; a failure is raised. What Python has set is raised by PyDLL, whatever is returned."""
    error = dlrs_error(struct_size=sizeof(dlrs_error))
    status = function(*arguments, byref(error))
    if status != 0:
        assert status == error.status
        lib.dlrs_py_error_set(byref(error), None)
        raise AssertionError("dlrs_py_error_set raised nothing")


class Tensor:
    """Holds one tensor."""

    def __init__(self, versioned):
        self.versioned = versioned

    def __del__(self):
        if self.versioned:
            lib.dlrs_release(self.versioned)

    @property
    def struct(self):
        return self.versioned.contents

    @property
    def shape(self):
        tensor = self.struct.dl_tensor
        return tuple(tensor.shape[i] for i in range(tensor.ndim))

    @property
    def strides(self):
        tensor = self.struct.dl_tensor
        return tuple(tensor.strides[i] for i in range(tensor.ndim))

    @property
    def dtype(self):
        dtype = self.struct.dl_tensor.dtype
        return dtype.code, dtype.bits, dtype.lanes

    @property
    def flags(self):
        return self.struct.flags

    @property
    def address(self):
        tensor = self.struct.dl_tensor
        return (tensor.data or 0) + tensor.byte_offset

    @property
    def device(self):
        device = self.struct.dl_tensor.device
        return device.device_type, device.device_id

    def values(self, n):
        return (ctypes.c_double * n).from_address(self.address)

    def take(self):
        taken, self.versioned = self.versioned, None
        return taken

    def holders(self):
        return dlpack.lib.dlrs_ref_count(self.versioned)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        return self.device


def import_(obj, flags=0, stream=0, dl_device=(0, 0), **wanted):
    options = None
    if flags or stream or dl_device[0] or wanted:
        inner = dlrs_import_options(struct_size=sizeof(dlrs_import_options), **wanted)
        options = byref(ImportOptions(sizeof(ImportOptions), flags, stream, DLDevice(*dl_device),
                                      ctypes.pointer(inner)))
    out = Versioned()
    call(lib.dlrs_py_import, obj, options, byref(out))
    return Tensor(out)


def _object(out):
    """A new reference that C gave."""
    obj = ctypes.cast(out, py_object).value
    pythonapi.Py_DecRef(py_object(obj))
    return obj


def export(tensor, stream=None, max_version=None, dl_device=None, copy=None):
    keywords = stream, max_version, dl_device, copy
    request = Request(sizeof(Request), *map(id, keywords))  # borrowed; None as it is
    out = c_void_p()
    call(lib.dlrs_py_export, tensor.versioned, byref(request), byref(out))
    return _object(out)


def capsule(tensor):
    out, taken = c_void_p(), tensor.take()
    try:
        call(lib.dlrs_py_capsule_new_take, byref(taken), byref(out))
    finally:
        tensor.versioned = taken if taken else None
    return _object(out)


def legacy_capsule(tensor):
    legacy, out, taken = Legacy(), c_void_p(), tensor.take()
    dlpack.call(dlpack.lib.dlrs_to_legacy_take, byref(taken), dlpack.LEGACY_DROP, byref(legacy))
    call(lib.dlrs_py_capsule_new_legacy_take, byref(legacy), byref(out))
    return _object(out)


def consume(obj, legacy_flags=1):
    out = Versioned()
    call(lib.dlrs_py_capsule_consume, obj, legacy_flags, byref(out))
    return Tensor(out)


def sum_of(array):
    """For other processes, which find it by its name."""
    return sum(import_(array).values(array.size))
