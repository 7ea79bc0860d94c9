"""The library's Python functions through ctypes, as thin as possible.

Every function here is the C function of that name. PyDLL keeps the GIL held, which these functions
require. A failure becomes the exception that `dlrs_py_error_set_as` chooses.
"""

import ctypes
from ctypes import byref, c_void_p, py_object, pythonapi, sizeof

from dlpack_rs import abi
from dlpack_rs.abi import (DLDevice, Legacy, Versioned, dlrs_error, dlrs_import_options,
                           dlrs_py_import_options, dlrs_py_request)

lib = ctypes.PyDLL(abi.library_path())
for name, (result, *parameters) in abi.FUNCTIONS.items():
    function = getattr(lib, name)
    function.restype, function.argtypes = result, parameters
for name in ("dlrs_py_capsule_consume", "dlrs_py_import"):
    function = getattr(lib, name)
    function.argtypes = (py_object, *function.argtypes[1:])  # c_void_p rejects objects
LEGACY_WRITABLE = abi.DLRS_PY_LEGACY_WRITABLE


def call(function, *arguments):
    """Calls; raises on failure. PyDLL raises a pending Python exception, whatever is returned."""
    error = dlrs_error(struct_size=sizeof(dlrs_error))
    status = function(*arguments, byref(error))
    if status != 0:
        assert status == error.status
        lib.dlrs_py_error_set_as(byref(error), None, None)
        raise AssertionError("dlrs_py_error_set_as raised nothing")


class Tensor:
    """Owns one tensor."""

    def __init__(self, versioned):
        self.versioned = versioned

    def __del__(self, release=lib.dlrs_release):  # at exit the module's globals may be gone
        if self.versioned:
            release(self.versioned)

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

    def ref_count(self):
        return abi.lib.dlrs_ref_count(self.versioned)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        return self.device


def import_(obj, flags=0, stream=0, dl_device=(0, 0), protocols=0, asked=(), **wanted):
    """`asked`: the objects `device` and `copy` of a from_dlpack."""
    options = None
    if flags or stream or dl_device[0] or protocols or asked or wanted:
        inner = dlrs_import_options(struct_size=sizeof(dlrs_import_options), **wanted)
        options = byref(dlrs_py_import_options(
            sizeof(dlrs_py_import_options), flags, stream, DLDevice(*dl_device),
            ctypes.pointer(inner), protocols, 0, *map(id, asked)))
    out = Versioned()
    call(lib.dlrs_py_import, obj, options, byref(out))
    return Tensor(out)


def _object(out):
    """A new reference returned by C."""
    obj = ctypes.cast(out, py_object).value
    pythonapi.Py_DecRef(py_object(obj))
    return obj


def export(tensor, stream=None, max_version=None, dl_device=None, copy=None):
    keywords = stream, max_version, dl_device, copy
    request = dlrs_py_request(sizeof(dlrs_py_request), *map(id, keywords))  # borrowed; None is kept
    out = c_void_p()
    call(lib.dlrs_py_export, tensor.versioned, byref(request), byref(out))
    return _object(out)


def capsule(tensor, make=lib.dlrs_py_capsule_new_take, *named):
    out, taken = c_void_p(), tensor.take()
    try:
        call(make, byref(taken), *named, byref(out))
    finally:
        tensor.versioned = taken if taken else None
    return _object(out)


def legacy_capsule(tensor):
    legacy, out, taken = Legacy(), c_void_p(), tensor.take()
    abi.call(abi.lib.dlrs_to_legacy_take, byref(taken), abi.DLRS_LEGACY_DROP, byref(legacy))
    call(lib.dlrs_py_capsule_new_legacy_take, byref(legacy), byref(out))
    return _object(out)


def consume(obj, legacy_flags=1):
    out = Versioned()
    call(lib.dlrs_py_capsule_consume, obj, legacy_flags, byref(out))
    return Tensor(out)
