"""Copies between random views, against NumPy: long.py [COUNT [SEED]], 100,000 by default.

Elements of 1 to 32 bytes, 0 to 8 dimensions, strides of both signs, extents of 0, gaps, broadcasts,
any alignment; two cases in five have more elements than the limit of the plain loops, and one in a
hundred is large. `make test-long` runs it, and `make test` with 2,000 of another seed; the library
is that of DLPACK_RS_LIBRARY. The bytes around a destination's elements must stay unchanged.
"""

import sys
from ctypes import addressof, c_int32, c_int64, c_uint64, c_void_p, sizeof
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))
import dlpack_ctypes as dlpack  # noqa: E402

COPY = dlpack.lib.dlrs_copy_desc
COPY.restype = c_int32
COPY.argtypes = (c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p)
OPTIONS = [dlpack.dlrs_copy_options(struct_size=sizeof(dlpack.dlrs_copy_options), threads=threads)
           for threads in (0, 1, 2)]
SMALL, MEDIUM, LARGE = 2000, 40_000, 3 << 20
EXTENTS = [0] + [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 257, 1000] * 3


def random_shape(rng, most):
    shape, total = [], 1
    for _ in range(rng.integers(0, 9)):
        extent = int(rng.choice(EXTENTS))
        if total * extent <= most:
            shape.append(extent)
            total *= max(extent, 1)
    return tuple(shape)


def random_view(rng, shape, dtype, broadcasts):
    """A view of that shape in new memory, any order, gaps and signs; and the memory."""
    order = rng.permutation(len(shape))
    steps = rng.choice([1, 1, 1, 1, 2, 3] if rng.random() < 0.4 else [1], len(shape))
    extents = [1 if broadcasts and rng.random() < 0.08 else extent for extent in shape]
    room = [int(extents[axis] * steps[axis]) for axis in order]
    skip = int(rng.integers(0, 70))
    nbytes = int(np.prod(room, dtype=np.int64)) * dtype.itemsize
    memory = np.frombuffer(bytearray(rng.bytes(nbytes + skip + 70)), np.uint8)
    base = memory[skip:skip + nbytes].view(dtype).reshape(room).transpose(np.argsort(order))
    index = tuple(slice(None, None, int(step) * (-1 if rng.random() < 0.2 else 1))
                  for step in steps)
    view = base[(*index, ...)]
    return (np.broadcast_to(view, shape) if broadcasts else view), memory


def tensor(view):
    size, rank = view.itemsize, view.ndim
    shape = (c_int64 * rank)(*view.shape)
    strides = (c_int64 * rank)(*(step // size for step in view.strides))
    dtype = dlpack.DLDataType(1, 8, size)
    return dlpack.DLTensor(view.ctypes.data, dlpack.CPU, rank, dtype, shape, strides)


def one(rng):
    size = int(rng.integers(1, 33))
    dtype = np.dtype(f"V{size}")
    most = rng.choice([SMALL, MEDIUM, LARGE], p=[0.3, 0.69, 0.01])
    shape = random_shape(rng, int(most) // size)
    source, _ = random_view(rng, shape, dtype, True)
    target, memory = random_view(rng, shape, dtype, False)
    before = memory.copy()
    src, dst, options = tensor(source), tensor(target), OPTIONS[rng.integers(3)]
    status = COPY(addressof(src), 0, addressof(dst), 0, addressof(options), None)
    got = memory.copy()
    memory[:] = before
    target[...] = source
    if status != 0 or not np.array_equal(got, memory):
        raise AssertionError(f"status {status}: {size} bytes, {shape}, "
                             f"strides {source.strides} to {target.strides}")


def main(count=100_000, seed=1):
    rng = np.random.default_rng(seed)
    for done in range(count):
        one(rng)
        if (done + 1) % 10_000 == 0:
            print(f"long: {done + 1} of {count}", flush=True)
    print(f"long: {count} copies equal NumPy's, seed {seed}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
