"""Random NumPy views, and their properties, counted by brute force."""

import numpy as np

DTYPES = [np.dtype(name) for name in
          "bool i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()]


def random_bytes(rng, shape, dtype):
    """An array of random bits; a bool has only two valid bytes."""
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(bytearray(rng.bytes(count * dtype.itemsize)), dtype).reshape(shape)


def unaligned(array):
    """The same values one byte past an aligned address."""
    room = np.zeros(array.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return room[1:].view(array.dtype).reshape(array.shape)


def random_slice(rng, extent):
    start, stop = sorted(rng.integers(0, extent + 1, 2))
    step = int(rng.choice([1, 1, 1, 2, 3]))
    if rng.random() < 0.3:
        return slice(stop - 1 if stop else None, start - 1 if start else None, -step)
    return slice(start, stop, step)


def random_view(rng, dtype=None, most=6):
    """A view of 0 to 5 dimensions of at most this many: sliced, reversed, transposed, broadcast,
    unaligned."""
    dtype = dtype or DTYPES[rng.integers(len(DTYPES))]
    shape = tuple(rng.integers(1, most + 1, rng.integers(0, 6)))
    if rng.random() < 0.1 and shape:
        shape = shape[:-1] + (0,)
    view = random_bytes(rng, shape, dtype)
    if rng.random() < 0.2:
        view = unaligned(view)
    if rng.random() < 0.7:
        view = view[tuple(random_slice(rng, extent) for extent in view.shape) + (...,)]
    if rng.random() < 0.5:
        view = view.transpose(rng.permutation(view.ndim))
    if rng.random() < 0.15:
        view = np.broadcast_to(view, (int(rng.integers(1, 4)), *view.shape))
    return view


def random_destination(rng, shape, dtype):
    """A writable view of that shape with gaps around it, and the array that contains it."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 2, 3])) for _ in shape]
    room = [shape[axis] * steps[axis] + 1 for axis in order]
    base = random_bytes(rng, room, dtype)
    if rng.random() < 0.2:
        base = unaligned(base)
    view = base.transpose(np.argsort(order))
    view = view[tuple(slice(1, 1 + extent * step, step) if rng.random() < 0.7
                      else slice(None if not extent else extent * step, 0, -step)
                      for extent, step in zip(shape, steps)) + (...,)]
    assert view.shape == tuple(shape)
    return view, base


def addresses(view):
    """For every element."""
    offsets = np.zeros(view.shape, np.int64)
    for axis, stride in enumerate(view.strides):
        steps = np.arange(view.shape[axis], dtype=np.int64) * stride
        offsets += steps.reshape([-1 if other == axis else 1 for other in range(view.ndim)])
    return offsets.ravel() + view.ctypes.data
