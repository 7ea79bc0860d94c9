"""The C ABI itself: structs, codes and functions of dlpack.h and dlpack_rs.h, for ctypes and cffi.

    from dlpack_rs import abi
    tensor = abi.DLTensor(...)
    abi.call(abi.lib.dlrs_validate, tensor, abi.DLRS_LEVEL_STRICT)      # ctypes

    ffi = cffi.FFI()
    ffi.cdef(abi.cdef())                                                # cffi, ABI mode
    lib = ffi.dlopen(abi.library_path())

Nothing here is written by hand twice: the declarations are those of the headers, the library
confirms their layout when this module is imported. The manual of every function is dlpack_rs.h, in
the folder abi.include().
"""

import builtins
import functools
import sys
from ctypes import CDLL, POINTER, alignment, byref, c_void_p, cast, sizeof

from .._library import library_path
from . import _declarations
from ._declarations import *  # noqa: F403
from ._declarations import FUNCTIONS, dlrs_abi_table, dlrs_error, dlrs_set_error_fn
from ._headers import cdef, include

# DLPack's own macros and those of dlpack_rs.h that Python programs need most, without prefixes.
READ_ONLY = _declarations.DLPACK_FLAG_BITMASK_READ_ONLY
IS_COPIED = _declarations.DLPACK_FLAG_BITMASK_IS_COPIED
IS_SUBBYTE_TYPE_PADDED = _declarations.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED


def _load():
    """The library with its functions declared: ctypes guesses int for everything else."""
    library = CDLL(library_path())
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


@functools.cache
def exception_of(status):
    """The class of exception that fits a status: the library's choice."""
    kinds = []
    note = dlrs_set_error_fn(lambda context, kind, message: kinds.append(kind.decode()))
    lib.dlrs_error_forward(dlrs_error(struct_size=sizeof(dlrs_error), status=status), None,
                           cast(note, c_void_p), None)
    return getattr(builtins, kinds[0])


def call(function, *arguments):
    """Calls a function that reports errors; a failure is raised with the library's message.

    The exception also has `status`, its `name`, and the numbers of `dlrs_error` as `details`.
    """
    error = dlrs_error(struct_size=sizeof(dlrs_error))
    status = function(*arguments, byref(error))
    if status != 0:
        exception = exception_of(status)(error.message.decode())
        exception.status, exception.details = status, error
        exception.name = lib.dlrs_status_name(status).decode()
        raise exception


def _check_layout():
    """Compares the structs of this module with those the library was compiled with."""
    declared = vars(_declarations)
    expected = dlrs_abi_table(
        struct_size=sizeof(dlrs_abi_table), pointer_size=sizeof(c_void_p),
        big_endian=sys.byteorder == "big", dlpack_major=declared["DLPACK_MAJOR_VERSION"],
        dlpack_minor=declared["DLPACK_MINOR_VERSION"], tensor_align=alignment(declared["DLTensor"]))
    structs = {"version": "DLPackVersion", "device": "DLDevice", "dtype": "DLDataType",
               "tensor": "DLTensor", "legacy": "DLManagedTensor",
               "versioned": "DLManagedTensorVersioned",
               "exchange_header": "DLPackExchangeAPIHeader", "exchange_api": "DLPackExchangeAPI"}
    for prefix, name in structs.items():
        setattr(expected, f"{prefix}_size", sizeof(declared[name]))
        if prefix in ("tensor", "legacy", "versioned"):
            for member, _ in declared[name]._fields_:
                setattr(expected, f"{prefix}_{member}", getattr(declared[name], member).offset)
    header = sum(declared[f"DLRS_VERSION_{part}"] * scale for part, scale in
                 (("MAJOR", 1_000_000), ("MINOR", 1_000), ("PATCH", 1)))
    call(lib.dlrs_abi_check, header, byref(expected))


def __getattr__(name):
    """`capsule` calls CPython, which the rest does not need."""
    if name == "capsule":
        import importlib

        return importlib.import_module(".capsule", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


lib = _load()
_check_layout()
Legacy = POINTER(_declarations.DLManagedTensor)
Versioned = POINTER(_declarations.DLManagedTensorVersioned)
