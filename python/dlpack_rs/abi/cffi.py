"""The C ABI for cffi, without its parser: `ffi` has the types, `lib` the functions and constants.

    from dlpack_rs.abi.cffi import ffi, lib
    error = ffi.new("dlrs_error *", {"struct_size": ffi.sizeof("dlrs_error")})
    status = lib.dlrs_validate(tensor, 0, lib.DLRS_LEVEL_STRICT, error)

ABI mode: neither a compiler nor, to import it, cffi's parser is needed. To add
declarations, make a cffi.FFI() of abi.cdef().
"""

from __future__ import annotations

from .._library import library_path
from ._cffi import ffi as ffi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

lib: Any = ffi.dlopen(library_path())
