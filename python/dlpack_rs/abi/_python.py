"""The functions of the library that call Python, and memory as a tensor; for CPython."""

from __future__ import annotations

import operator
from ctypes import PyDLL, byref, c_int64, c_uint64, py_object, pythonapi

from .. import DEVICES
from .._library import library_path
from . import DLRS_INIT, call, declare, lib
from ._declarations import (DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
                            DLPACK_FLAG_BITMASK_READ_ONLY, DLRS_LEVEL_LAYOUT, PYTHON_FUNCTIONS,
                            DLDataType, DLDevice, DLTensor, Versioned, dlrs_import_options,
                            dlrs_py_import_options)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._declarations import _PythonLibrary


def _load() -> _PythonLibrary:
    library = PyDLL(library_path())
    declare(library, PYTHON_FUNCTIONS)
    return library  # type: ignore[return-value]


# What a call sets as Python's exception is raised by it.
pylib = _load()


def new_object(out: py_object[Any]) -> Any:
    """The object that a function of `pylib` wrote to `out`, whose reference it takes."""
    value = out.value
    pythonapi.Py_DecRef(out)
    return value


class _Owner:
    """The owner of a tensor of `wrap`: the memory, and the function to call at the end."""

    def __init__(self, memory: object) -> None:
        self.memory, self.on_free = memory, None

    on_free: Callable[[], object] | None

    def __del__(self) -> None:
        self.memory = None
        if self.on_free is not None:
            self.on_free()


class _Import:
    """The tensor that a Python object exports, as long as this object exists."""

    def __init__(self, memory: object) -> None:
        self.tensor = Versioned()
        wanted = DLRS_INIT(dlrs_import_options, level=DLRS_LEVEL_LAYOUT, copy=-1, order=ord("K"))
        options = DLRS_INIT(dlrs_py_import_options)
        options.import_options.contents = wanted
        call(pylib.dlrs_py_import, memory, byref(options), byref(self.tensor))

    def __del__(self, release: Callable[..., None] = lib.dlrs_release) -> None:
        if self.tensor:
            release(self.tensor)


def wrap(memory: Any, shape: Sequence[int], dtype: str | DLDataType,
         on_free: Callable[[], object] | None = None, *, strides: Sequence[int] | None = None,
         device: str | DLDevice | None = None, flags: int = 0) -> Versioned:
    """A managed tensor over memory: an address, or an object with a buffer or a `__dlpack__`.

    The tensor keeps the object and `on_free` alive; when its last reference is released, on any
    thread, the object is released and `on_free()` is called, once. Memory at an address must stay valid
    until then; its size cannot be checked. A tensor that does not fit into an object's memory is
    a ValueError, and a read-only object gives a read-only tensor.

    `strides` are in elements; None is compact and row-major. `device` is the object's own, and
    "cpu" for an address. The caller owns the tensor, until dlrs_release or
    dlrs_py_capsule_new_take.
    """
    if on_free is not None and not callable(on_free):
        raise TypeError(f"wrap: on_free must be callable, not {type(on_free).__name__!r}")
    tensor = DLTensor(ndim=len(shape), shape=_int64("shape", shape), dtype=_dtype(dtype))
    _in_range("flags", flags, 0, 64)
    if strides is not None:
        if len(strides) != len(shape):
            raise ValueError(f"wrap: strides has {len(strides)} numbers, and shape {len(shape)}")
        tensor.strides = _int64("strides", strides)
    if isinstance(memory, int):
        _in_range("memory", memory, 0, 64)
        tensor.data, tensor.device = memory, _device("cpu" if device is None else device)
        owner = _Owner(None)
    else:
        held = _Import(_as_bytes(memory))
        given = held.tensor.contents
        tensor.data, tensor.byte_offset = given.dl_tensor.data, given.dl_tensor.byte_offset
        tensor.device = given.dl_tensor.device
        if device is not None:
            wanted, there = _device(device), tensor.device
            if (wanted.device_type, wanted.device_id) != (there.device_type, there.device_id):
                raise ValueError(f"wrap: device is {device}, and the memory is on another")
        flags |= given.flags & DLPACK_FLAG_BITMASK_READ_ONLY
        _fit(tensor, flags, given)
        owner = _Owner(held)
    out = Versioned()
    call(pylib.dlrs_py_wrap, byref(tensor), flags, owner, byref(out))
    owner.on_free = on_free  # not before: on failure nothing was taken
    return out


def _fit(tensor: DLTensor, flags: int, given: Any) -> None:
    """ValueError for elements outside the memory given."""
    (low, high), (first, end) = _reach(tensor, flags), _reach(given.dl_tensor, given.flags)
    if low < high and (low < first or high > end):
        raise ValueError(f"wrap: the elements take bytes {low} to {high} of memory that has "
                         f"bytes {first} to {end}; give another shape, strides or dtype")


def _reach(tensor: DLTensor, flags: int) -> tuple[int, int]:
    """The bytes that a tensor takes, from its first element on: the first, and one past the last."""
    bits = c_uint64()
    padded = flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
    call(lib.dlrs_itemsize_bits, byref(tensor), padded, byref(bits))
    low, high, compact = 0, 1, 1
    for axis in reversed(range(tensor.ndim)):
        extent = tensor.shape[axis]
        step = (extent - 1) * (tensor.strides[axis] if tensor.strides else compact)
        low, high, compact = low + min(step, 0), high + max(step, 0), compact * extent
    return (low * bits.value // 8, -(-high * bits.value // 8)) if compact else (0, 0)


def _as_bytes(memory: Any) -> Any:
    """A buffer as plain bytes, whatever its elements are; anything else as it is."""
    try:
        return memoryview(memory).cast("B")
    except (TypeError, ValueError):  # none, one with no bytes or gaps, or of a type without a name
        return memory


def _in_range(name: str, number: int, low: int, bits: int) -> None:
    """ValueError for a number of which ctypes would drop bits."""
    if not low <= number < low + (1 << bits):
        raise ValueError(f"wrap: {name}: {number} has more than {bits} bits; it must be at least "
                         f"{low} and less than {low + (1 << bits)}")


def _int64(name: str, numbers: Sequence[int]) -> Any:
    for number in numbers:
        _in_range(name, operator.index(number), -1 << 63, 64)
    return (c_int64 * len(numbers))(*numbers)


def _text(name: str, value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"wrap: {name} must be a name or a struct, not {type(value).__name__!r}")
    return value.encode()


def _dtype(dtype: str | DLDataType) -> DLDataType:
    if isinstance(dtype, DLDataType):
        return dtype
    found, text = DLDataType(), _text("dtype", dtype)
    call(lib.dlrs_dtype_parse, text, len(text), byref(found))
    return found


def _device(device: str | DLDevice) -> DLDevice:
    if isinstance(device, DLDevice):
        return device
    kind, colon, ordinal = _text("device", device).partition(b":")  # digits are ASCII's only
    codes = [code for code, name in DEVICES.items() if name.encode() == kind]
    if codes and ordinal.isdigit() == bool(colon):
        return DLDevice(codes[0], int(ordinal or 0))
    raise ValueError(f"wrap: device: {device!r} is none of DLPack's; write it as cpu or cuda:1")
