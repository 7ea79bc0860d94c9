"""The C ABI itself: structs, codes and functions of dlpack.h and dlpack_rs.h, for ctypes and cffi.

    from dlpack_rs import abi
    tensor = abi.DLTensor(...)
    abi.call(abi.lib.dlrs_validate, tensor, 0, abi.DLRS_LEVEL_STRICT)   # ctypes

    from dlpack_rs.abi.cffi import ffi, lib                             # cffi, ABI mode

The declarations are generated from the headers; the library checks their layout when this module
is imported. The manual of every function is its docstring,
help(abi.lib.dlrs_copy), and dlpack_rs.h, in the folder abi.include().

`lib` lets other threads of Python run; functions that call Python are in `pylib`, which keeps the
interpreter's lock. `wrap` makes a tensor over memory. Codes and flags as enumerations: abi.enums.
"""

from __future__ import annotations

import builtins
import functools
import sys
from ctypes import CDLL, Structure, alignment, byref, c_void_p, cast, sizeof

from .._library import library_path as library_path
from . import _declarations
from ._declarations import *  # noqa: F403
from ._declarations import FUNCTIONS as FUNCTIONS
from ._declarations import dlrs_abi_table as dlrs_abi_table
from ._declarations import dlrs_error as dlrs_error
from ._declarations import dlrs_set_error_fn as dlrs_set_error_fn

TYPE_CHECKING = False  # what type checkers take for true; the module typing is slow to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from . import capsule as capsule
    from . import enums as enums
    from ._declarations import _Library
    from ._headers import cdef as cdef
    from ._headers import include as include
    from ._python import new_object as new_object
    from ._python import pylib as pylib
    from ._python import wrap as wrap

    _S = TypeVar("_S", bound=Structure)

# DLPack's own macros and those of dlpack_rs.h that Python programs need most, without prefixes.
READ_ONLY = _declarations.DLPACK_FLAG_BITMASK_READ_ONLY
IS_COPIED = _declarations.DLPACK_FLAG_BITMASK_IS_COPIED
IS_SUBBYTE_TYPE_PADDED = _declarations.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED


def declare(library: CDLL, functions: dict[str, tuple[Any, ...]]) -> None:
    """Types of functions, which ctypes would take for int. And docstrings, read on first use."""
    plain: Any = library._FuncPtr

    library._FuncPtr = type("Function", (plain,), {
        "_flags_": plain._flags_, "_restype_": plain._restype_, "__doc__": property(_manual)})
    for name, (result, *parameters) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters


def _manual(function: Any) -> str:
    """A function's docstring."""
    from ._headers import prototypes

    return "\n\n".join(prototypes()[function.__name__])


def _load() -> _Library:
    library = CDLL(library_path())
    declare(library, FUNCTIONS)
    return library  # type: ignore[return-value]


def DLRS_INIT(struct: type[_S], **members: Any) -> _S:
    """A struct that starts with struct_size, which is set; all others except `members` are 0."""
    made = struct(struct_size=sizeof(struct), **members)
    for name, value in members.items():  # ctypes takes any name, and drops bits that do not fit
        if name not in (field for field, *_ in struct._fields_):
            raise TypeError(f"{struct.__name__} has no member {name!r}")
        if isinstance(value, int) and getattr(made, name) != value:
            raise OverflowError(f"{struct.__name__}.{name} cannot be {value}")
    return made


def exception_of(status: int) -> type[Exception]:
    """The class of exception for a status, as the library chooses it."""
    return _exception_of(status)


@functools.cache
def _exception_of(status: int) -> type[Exception]:
    kinds: list[bytes | None] = []
    note = dlrs_set_error_fn(lambda context, kind, message: kinds.append(kind))
    lib.dlrs_error_forward(DLRS_INIT(dlrs_error, status=status), None, note, None)
    found: type[Exception] = getattr(builtins, (kinds[0] or b"").decode())
    return found


def call(function: Callable[..., int], *arguments: object) -> None:
    """Calls a function that returns a status; an error is raised with the library's message.

    The exception also has `status`, its `name`, and the numbers of `dlrs_error` as `details`.
    """
    error = DLRS_INIT(dlrs_error)
    status = function(*arguments, byref(error))
    if status != 0:
        exception: Any = exception_of(status)(error.message.decode())
        exception.status, exception.details = status, error
        exception.name = lib.dlrs_status_name(status).decode()
        raise exception


def _check_layout() -> None:
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


# What calls CPython, and what few programs need, by the module that has it.
_LAZY = {"capsule": "capsule", "cdef": "_headers", "enums": "enums", "include": "_headers",
         "new_object": "_python", "pylib": "_python", "wrap": "_python"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        module = importlib.import_module("." + _LAZY[name], __name__)
        return module if name == _LAZY[name] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


lib = _load()
_check_layout()
