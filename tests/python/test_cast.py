"""dlrs_cast against NumPy and ml_dtypes: every code of the small types, boundaries of the large.

    python tests/python/test_cast.py target/lib/libdlpack_rs.so

Needs numpy and ml_dtypes. Compared bit for bit, except that of a NaN with payload bits (float16,
float32, float64) only the sign counts. Where NumPy or ml_dtypes round twice (through float32 on
the way to 16 bits and fewer), or where C leaves the result undefined (float to int out of range),
the expected value is computed here with exact arithmetic instead.
"""

import ctypes as c
import os
import sys
from pathlib import Path

import ml_dtypes as ml
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
os.environ["DLPACK_RS_LIBRARY"] = os.path.abspath(
    sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/lib/libdlpack_rs.so")
sys.path.append(str(ROOT / "python"))
from dlpack_rs import abi  # noqa: E402

PADDED = abi.IS_SUBBYTE_TYPE_PADDED
SMALL = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
         "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
         "float4_e2m1fn"]
BITS = {name: 8 if "8_" in name else 6 if "6_" in name else 4 for name in SMALL}
# name -> (NumPy dtype, DLPack code, bits)
TYPES = {name: (np.dtype(getattr(ml, name)), 7 + i, BITS[name]) for i, name in enumerate(SMALL)}
TYPES |= {"bfloat16": (np.dtype(ml.bfloat16), 4, 16), "bool": (np.dtype(bool), 6, 8)}
for bits in (16, 32, 64):
    TYPES[f"float{bits}"] = (np.dtype(f"f{bits // 8}"), 2, bits)
for bits in (8, 16, 32, 64):
    TYPES[f"int{bits}"] = (np.dtype(f"i{bits // 8}"), 0, bits)
    TYPES[f"uint{bits}"] = (np.dtype(f"u{bits // 8}"), 1, bits)
for bits in (1, 2, 4):
    TYPES[f"int{bits}"] = (np.dtype(getattr(ml, f"int{bits}")), 0, bits)
    TYPES[f"uint{bits}"] = (np.dtype(getattr(ml, f"uint{bits}")), 1, bits)
TYPES |= {"complex64": (np.dtype("c8"), 5, 64), "complex128": (np.dtype("c16"), 5, 128),
          "complex32": (np.dtype("u4"), 5, 32), "bcomplex32": (np.dtype("u4"), 18, 32)}
INTS = [name for name in TYPES if "int" in name]
FLOATS = ["float64", "float32", "float16", "bfloat16", *SMALL]
# Complex numbers are pairs of these, each converted alone; NumPy has not all of them.
PARTS = {"complex64": "float32", "complex128": "float64", "complex32": "float16",
         "bcomplex32": "bfloat16"}


def managed(address, name, shape, strides, flags=PADDED, byte_offset=0):
    """A tensor over memory; sub-byte types are padded, as in ml_dtypes, or packed."""
    _, code, bits = TYPES[name]
    numbers = [(c.c_int64 * max(len(shape), 1))(*values) for values in (shape, strides)]
    tensor = abi.DLTensor(address, abi.DLDevice(abi.kDLCPU, 0), len(shape),
                          abi.DLDataType(code, bits, 1), *numbers, byte_offset)
    return abi.DLManagedTensorVersioned(version=(1, 3), flags=flags, dl_tensor=tensor)


def ours(values, source, target):
    out = np.zeros(values.shape, TYPES[target][0])
    tensors = [c.byref(managed(array.ctypes.data, name, array.shape,
                               [stride // array.itemsize for stride in array.strides]))
               for array, name in ((values, source), (out, target))]
    abi.call(abi.lib.dlrs_cast, *tensors, None)
    return out


def codes(array):
    return array.view(f"u{array.dtype.itemsize}")


def patterns(name, rng):
    """Values worth converting: all codes up to 16 bits, else edges, neighbours and random bits."""
    dtype, _, bits = TYPES[name]
    if name == "bool":
        return np.array([False, True])
    if bits <= 16:
        return np.arange(1 << bits, dtype=f"u{dtype.itemsize}").view(dtype)
    if name in INTS:
        return integers(dtype, bits, rng)
    if name in PARTS:
        parts = patterns(PARTS[name], rng)
        return parts[rng.permutation(len(parts))[: len(parts) & ~1]].view(dtype)
    return edges(name, rng)


def integers(dtype, bits, rng):
    powers = [1 << k for k in range(bits)]
    near = {s * (p + d) for p in powers for d in (-1, 0, 1) for s in (1, -1)}
    near |= {s * (p + p // 256 * f + d) for p in powers for f in (1, 3, 127, 255)
             for d in (-1, 0, 1) for s in (1, -1)}
    near |= {p | p >> 24 | d for p in powers for d in (0, 1)} | {0}
    info = np.iinfo(dtype)
    known = [n for n in near if info.min <= n <= info.max]
    return np.concatenate([np.array(known, dtype), np.frombuffer(rng.bytes(bits // 8 * 100_000), dtype),
                           rng.integers(-2000 if info.min else 0, 2000, 10_000).astype(dtype)])


def edges(name, rng):
    """Values of the smaller formats, halfway points, their neighbours in `name`, random bits."""
    dtype, _, bits = TYPES[name]
    near = []
    for other in ["float16", "bfloat16", *SMALL, "float32"]:
        other_dtype, _, width = TYPES[other]
        if width < 32:
            all_codes = np.arange(1 << width, dtype=f"u{other_dtype.itemsize}").view(other_dtype)
            exact = all_codes.astype("f8")
            exact = np.unique(exact[np.isfinite(exact)])
        else:
            if bits == 32:
                continue
            exact = np.sort(np.frombuffer(rng.bytes(40_000), "f4").astype("f8"))
            exact = exact[np.isfinite(exact)]
            exact = np.unique(np.concatenate([exact, np.nextafter(exact.astype("f4"), np.float32(0)).astype("f8")]))
        step = exact[-1] - exact[-2]
        middle = (exact[1:] + exact[:-1]) / 2
        near.append(np.concatenate([exact, middle, [exact[-1] + step / 2, exact[-1] + step]]))
    near = np.concatenate(near).astype(dtype)
    infinity = dtype.type(np.inf)
    bounds = [float(2**k) for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    special = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 0.5, -0.5, 1.5, *bounds,
                        *(-b for b in bounds)], dtype)
    special = np.concatenate([special, np.nextafter(special, infinity), np.nextafter(special, -infinity)])
    random = np.frombuffer(rng.bytes(bits // 8 * 100_000), dtype)
    usual = (rng.standard_normal(50_000) * np.exp2(rng.integers(-30, 30, 50_000))).astype(dtype)
    return np.concatenate([special, near, -near, np.nextafter(near, infinity),
                           np.nextafter(near, -infinity), random, usual])


def to_odd(values):
    """float64 as float32 with the last bit set if inexact, so that rounding again is safe."""
    near = values.astype("f4")
    back, bits = near.astype("f8"), near.view("u4").copy()
    even = bits & 1 == 0
    bits -= (even & (abs(back) > abs(values))).astype("u4")
    bits += (even & (abs(back) < abs(values))).astype("u4")
    return bits.view("f4")


def expected(values, source, target):
    dtype, _, bits = TYPES[target]
    if source == target:
        return values
    if source in PARTS:
        pairs = np.ascontiguousarray(values).view(TYPES[PARTS[source]][0]).reshape(-1, 2)
        if target in PARTS:
            parts = expected(pairs.reshape(-1), PARTS[source], PARTS[target])
            return np.ascontiguousarray(parts).view(dtype)
        if target == "bool":
            return (pairs.astype("f8") != 0).any(1)
        return expected(np.ascontiguousarray(pairs[:, 0]), PARTS[source], target)
    if target in PARTS:
        pairs = np.zeros((len(values), 2), TYPES[PARTS[target]][0])
        pairs[:, 0] = expected(values, source, PARTS[target])
        return pairs.view(dtype).reshape(-1)
    with np.errstate(all="ignore"):
        if source == "bool" and target in INTS and bits < 8:
            return values.view("u1").view(dtype)
        if source in INTS and TYPES[source][2] < 8:
            values = values.astype("i1" if source.startswith("int") else "u1")
            return expected(values, source[:-1] + "8", target)
        if source in FLOATS and target in INTS:
            return saturated(values.astype("f8"), dtype, bits, target)
        if target in INTS and source in INTS:
            wide = values.astype("i8" if source.startswith("int") else "u8").view("u8")
            if bits >= 8:
                return wide.astype(f"u{bits // 8}").view(dtype)
            return (wide & np.uint64((1 << bits) - 1)).astype("u1").view(dtype)
        if target in FLOATS and bits <= 16 and source == "float64" and target != "float16":
            return to_odd(values).astype(dtype)
        if target in FLOATS and bits <= 16 and source in INTS and TYPES[source][2] > 16:
            return to_odd(int_to_odd(values)).astype(dtype)
        if source == "bool" and bits >= 8:
            return values.astype("u1").astype(dtype)
        if target == "bool":
            return (values.astype("f8") != 0) if source in FLOATS else (values != 0)
        if source in SMALL or source == "bfloat16":
            return values.astype("f4").astype(dtype)
        return values.astype(dtype)


def int_to_odd(values):
    """Integers as float64, rounded to odd."""
    negative = values < 0
    magnitude = np.where(negative, (~values.astype("u8")) + np.uint64(1), values.astype("u8"))
    lost = magnitude >> np.uint64(53) != 0
    low = np.uint64(0x7FF)
    odd = (magnitude & ~low) | ((magnitude & low != 0).astype("u8") << np.uint64(11))
    result = np.where(lost, odd, magnitude).astype("f8")
    return np.where(negative, -result, result)


def saturated(values, dtype, bits, target):
    signed = target.startswith("int")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    inside = np.trunc(np.where(np.isnan(values), 0, values))
    above, below = inside >= float(high + 1), inside < low
    safe = np.where(above | below, 0, inside)
    wide = safe.astype("i8").view("u8") if signed else safe.astype("u8")
    wide = np.where(above, np.uint64(high), np.where(below, np.uint64(low % 2**64), wide))
    if bits < 8:
        return (wide & np.uint64((1 << bits) - 1)).astype("u1").view(dtype)
    return wide.astype(f"u{bits // 8}").view(dtype)


def compare(got, wanted, source, target, values):
    if target in PARTS:
        part = TYPES[PARTS[target]][0]
        got, wanted = got.view(part), wanted.view(part)
        values = np.repeat(values, 2)
    a, b = codes(got), codes(wanted)
    same = a == b
    if got.dtype in (np.dtype("f2"), np.dtype("f4"), np.dtype("f8")):
        nans = np.isnan(got) & np.isnan(wanted) & (np.signbit(got) == np.signbit(wanted))
        same |= nans
    wrong = np.flatnonzero(~same)
    if len(wrong):
        i = wrong[0]
        print(f"FAIL  {source} -> {target}: {len(wrong)} of {len(a)} differ; of {values[i]!r}"
              f" ({codes(values)[i] if values.dtype.itemsize < 16 else ''}) got {a[i]:#x}, not {b[i]:#x}")
    return len(a), len(wrong)


def main():
    np.seterr(all="ignore")
    rng = np.random.default_rng(2026)
    compared = pairs = failed = 0
    for source in TYPES:
        values = patterns(source, rng)
        for target in TYPES:
            if target == source:
                continue
            got = ours(values, source, target)
            n, wrong = compare(got, expected(values, source, target), source, target, values)
            compared, pairs, failed = compared + n, pairs + 1, failed + (wrong > 0)
            # The same with strides, and with a few elements (without a table).
            every = ours(values[::-3], source, target)
            few = ours(values[:100].copy(), source, target)
            if every.tobytes() != got[::-3].tobytes() or few.tobytes() != got[:100].tobytes():
                print(f"FAIL  {source} -> {target}: strided or short conversion differs")
                failed += 1
    print(f"{compared} elements compared")
    print(f"{pairs - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
