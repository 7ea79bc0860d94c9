"""Makes the golden files of tests/print.rs with the real NumPy and ml_dtypes.

    python -m venv v && v/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0
    v/bin/python tests/golden/make_numpy_print.py            # rewrites the two files beside it
    v/bin/python tests/golden/make_numpy_print.py 7 20000 f  # another seed, more cases, to file f

A case is one line `dtype shape threshold,edge_items,line_width,precision hex`, then the text that
NumPy prints, each line behind a `|`. `hex` holds the bytes of the elements, little-endian, each in
whole bytes; where it is shorter than the array it repeats from its start.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).parent
SMALL = """float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn""".split()
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
REAL = ["float64", "float32", "float16"]
COMPLEX = ["complex64", "complex128"]
INTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOAT32_LIKE = ["bfloat16"] + SMALL
INT8_LIKE = ["int4", "uint4", "int2", "uint2"]
SHAPES = [(), (1,), (2,), (3,), (5,), (8,), (13,), (40,), (2, 3), (3, 1), (4, 7), (2, 2, 3),
          (1, 1, 1), (2, 1, 2, 2), (0,), (2, 0, 3), (1,) * 9 + (3,), (1,) * 64]
BIG = [(1000,), (1001,), (1500, 2), (3, 400), (7, 11, 13), (2, 7, 3, 8, 7), (600, 1, 2)]
DEFAULT = (1000, 3, 75, 8)
LANDMARKS = [1e-4, 1e-3, 0.1, 1.0, 1e3, 999.9, 1e6, 1e8, 99999999.0, 0.0, -0.0]
SPECIALS = [np.nan, np.inf, -np.inf, -0.0]


def real_values(rng, dtype, count):
    """Values of one of many distributions, some with specials among them."""
    info = np.finfo(dtype)
    size = np.dtype(dtype).itemsize
    kind = rng.integers(12)
    with np.errstate(all="ignore"):
        if kind == 0:
            v = rng.normal(size=count)
        elif kind == 1:
            v = np.round(rng.normal(size=count) * 10, rng.integers(0, 4))
        elif kind == 2:
            v = rng.normal(size=count) * 10.0 ** rng.integers(-9, 10)
        elif kind == 3:
            v = rng.normal(size=count) * 10.0 ** rng.integers(-6, 9, size=count)
        elif kind == 4:
            v = rng.integers(0, 256, size=count * size, dtype=np.uint8).view(dtype)
        elif kind == 5:
            v = 2.0 ** rng.integers(info.minexp - info.nmant, info.maxexp, size=count)
        elif kind == 6:
            v = rng.integers(-1000, 1000, size=count)
        elif kind == 7:
            v = rng.integers(0, 300, size=count) * float(info.smallest_subnormal)
        elif kind == 8:
            v = rng.choice(LANDMARKS, count)
        elif kind == 9:
            odd = rng.integers(0, 2**20, size=count) * 2 + 1  # ties at every cutoff
            v = odd / 2.0 ** rng.integers(1, 21, size=count)
        elif kind == 10:
            scale = rng.uniform(1, 1000.5) * 10.0 ** -rng.integers(0, 5)
            v = scale * rng.choice([1, 1000.0], count)
        else:
            v = np.zeros(count)
        v = np.array(v).astype(dtype)
    if rng.integers(3) == 0:
        v[rng.random(count) < rng.choice([0.1, 0.5, 1.0])] = rng.choice(SPECIALS)
    if rng.integers(4) == 0:
        v[rng.random(count) < 0.2] = rng.choice(SPECIALS)
    return v


def values(rng, dtype, count):
    """Elements of a dtype and the text that NumPy must print for them."""
    if dtype in REAL:
        v = real_values(rng, dtype, count)
    elif dtype in COMPLEX:
        part = {"complex64": "float32", "complex128": "float64"}[dtype]
        v = np.empty(count, dtype)
        v.real, v.imag = real_values(rng, part, count), real_values(rng, part, count)
    elif dtype in INTS:
        most = np.iinfo(dtype)
        if rng.integers(2):
            v = rng.integers(most.min, most.max, count, dtype, endpoint=True)
        else:
            v = rng.integers(max(most.min, -9), 99, count).astype(dtype)
    elif dtype == "bool":
        v = rng.integers(0, 2, count).astype(bool)
    elif dtype in FLOAT32_LIKE:
        kind = np.dtype(getattr(ml_dtypes, dtype))
        most = 2 ** BITS.get(dtype, 8 * kind.itemsize)
        v = rng.integers(0, most, count).astype(f"u{kind.itemsize}").view(kind)
        if dtype == "bfloat16" and rng.integers(3):
            v = (rng.normal(size=count) * 10.0 ** rng.integers(-3, 4)).astype(kind)
        return v, v.astype(np.float32)
    else:
        v = rng.integers(0, 2 ** int(dtype[-1]), count).astype(np.uint8)
        v = v.astype(np.int8).astype(getattr(ml_dtypes, dtype))
        return v.view(np.uint8) & (2 ** int(dtype[-1]) - 1), v.astype(np.int8)
    return v, v


def write_case(out, dtype, shape, options, raw, shown):
    count = int(np.prod(shape, dtype=np.int64))
    array = np.resize(shown, count).reshape(shape)
    threshold, edge, width, precision = options
    with np.printoptions(threshold=threshold, edgeitems=edge, linewidth=width, precision=precision):
        text = str(array)
    dims = ",".join(map(str, shape)) or "-"
    used = raw[: max(count, 0)]
    out.write(f"{dtype} {dims} {','.join(map(str, options))} {used.tobytes().hex() or '-'}\n")
    out.writelines(f"|{line}\n" for line in text.split("\n"))


def write_cases(out, rng, count):
    """Half of the cases are real floats: they have the most rules."""
    others = COMPLEX + INTS + ["bool"] + FLOAT32_LIKE + INT8_LIKE
    out.write(f"# numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}\n")
    for number in range(count):
        dtype = str(rng.choice(REAL if number % 2 else others))
        big = number % 16 in (0, 1)
        shape = (BIG if big else SHAPES)[rng.integers(len(BIG if big else SHAPES))]
        options = DEFAULT
        if number % 10 == 9:
            choices = [0, 5, 10**6 if not big else 2000], [1, 2, 3, 4], [1, 20, 40, 79, 120]
            options = [int(rng.choice(c)) for c in (*choices, [0, 1, 3, 4, 12, 17, 30])]
        used = int(rng.choice([37, 60])) if big else int(np.prod(shape, dtype=np.int64))
        write_case(out, dtype, shape, options, *values(rng, dtype, used))


def write_decoded(out):
    """The value of every pattern of the small formats, as the bits of a binary32."""
    out.write(f"# ml_dtypes {ml_dtypes.__version__}\n")
    for name in SMALL:
        kind = np.dtype(getattr(ml_dtypes, name))
        every = np.arange(2 ** BITS.get(name, 8), dtype=np.uint8).view(kind).astype(np.float32)
        words = ["nan" if np.isnan(v) else f"{v.view(np.uint32):08x}" for v in every]
        out.write(f"{name} {' '.join(words)}\n")


def main():
    seed, count = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (20, 500)
    target = sys.argv[3] if len(sys.argv) > 3 else HERE / "numpy_print.txt"
    with open(target, "w") as out:
        write_cases(out, np.random.default_rng(seed), count)
    if len(sys.argv) == 1:
        with open(HERE / "ml_dtypes_values.txt", "w") as out:
            write_decoded(out)


main()
