"""Numbers of each dtype as bytes, and where a layout has them."""

from __future__ import annotations

import ctypes
import math
import struct
from math import prod

FLOAT32 = (2, 32, 1)
VALUES = [float(i) for i in range(12)]  # of a Tensor that nothing else is said of
# Formats of the struct module for the dtypes that every array library has, by code and bits.
FORMATS = {(0, 8): "b", (0, 16): "h", (0, 32): "i", (0, 64): "q",
           (1, 8): "B", (1, 16): "H", (1, 32): "I", (1, 64): "Q",
           (2, 16): "e", (2, 32): "f", (2, 64): "d", (5, 64): "ff", (5, 128): "dd", (6, 8): "?"}
NAMES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
         (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
         (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
         (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool"}
# Others that libraries have, whose elements are known by their bytes.
OTHERS = {(4, 16): "bfloat16", (8, 8): "float8_e4m3", (10, 8): "float8_e4m3fn",
          (12, 8): "float8_e5m2", (14, 8): "float8_e8m0fnu"}


def telling(code, bits):
    """Numbers that tell a dtype from those of the same size, and from a wider or narrower one."""
    if code == 0:
        return [-1, -1 << (bits - 1), (1 << (bits - 1)) - 1]
    if code == 1:
        return [(1 << bits) - 1, (1 << (bits - 1)) + 1, 1]
    if code == 2:
        return [0.5, {16: -65504.0, 32: -(2.0 ** 127), 64: -1e300}[bits], math.nan]
    if code == 5:
        return [1 + 2j, -0.5j, {64: 2.0 ** 127 + 0j, 128: 1e300 - 1e-300j}[bits]]
    return [True, False, True] if code == 6 else [0x3c, 0xc1, 0x7e]


def same(found, expected):
    """Whether numbers are equal, NaN is NaN, and what should be bool is not int."""
    found, expected = list(found), list(expected)
    return len(found) == len(expected) and all(
        (a == b or (a != a and b != b)) and not (type(a) is int and type(b) is bool)
        for a, b in zip(found, expected))


def pack(values, dtype):
    form = FORMATS.get(dtype[:2], "B" if dtype[1] <= 8 else "H")
    return b"".join(struct.pack("=" + form, *(
        (value.real, value.imag) if len(form) == 2 else (value,))) for value in values)


def compact(shape):
    """Strides in elements, row-major."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, strides[0] * max(following, 1) if strides else 1)
        following = extent
    return tuple(strides)


def read(address, shape, strides, size):
    """Elements in row-major order."""
    if 0 in shape:
        return b""
    if not shape:
        return ctypes.string_at(address, size)
    if shape[0] > 1 and strides[0] == 0:
        return read(address, shape[1:], strides[1:], size) * shape[0]
    if tuple(strides) == compact(shape):
        return ctypes.string_at(address, prod(shape) * size)
    return b"".join(read(address + i * strides[0] * size, shape[1:], strides[1:], size)
                    for i in range(shape[0]))


def decode(content, dtype):
    """Numbers, those of all lanes; the bytes of each where the dtype is none of FORMATS."""
    form, size = FORMATS.get(tuple(dtype[:2])), dtype[1] // 8
    if form is None:
        return [content[at:at + size] for at in range(0, len(content), size)]
    found = struct.iter_unpack("=" + form, content)
    return [complex(*value) if len(value) == 2 else value[0] for value in found]
