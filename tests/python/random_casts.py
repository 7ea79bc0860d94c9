"""dlrs_cast of random layouts against NumPy and ml_dtypes, whose values test_cast.py computes.

    python tests/python/random_casts.py target/lib/libdlpack_rs.so [CASES [SEED]]

Any two dtypes; up to 24 dimensions, none, extents of 0 and 1; strides with gaps, negative ones, of
the source also 0; packed and padded elements of fewer than 8 bits; any byte offset; as many
elements as make or miss a vector, a tile, a piece. One case in four has both tensors in the same
memory: the call must fail if they share a bit and DLRS_COPY_ALLOW_OVERLAP is missing, and else only
where the library could not decide, which is rare. All bytes of the destination's memory are
compared, those between elements too.
"""

import ctypes as c
import sys

import numpy as np
import test_cast as cast
from test_cast import PADDED, TYPES, abi

COUNTS = [1, 7, 8, 9, 31, 33, 100, 127, 128, 129, 255, 257, 511, 512, 513, 1000, 2500, 4097]
LARGE = [16383, 32769, 65536, 70001, 131073]


def shape_of(rng, most):
    """A shape of about as many elements."""
    count = int(rng.choice(COUNTS if most is None else most))
    ndim = int(rng.choice([0, 1, 1, 2, 2, 3, 4, 6, 24]))
    shape = []
    for left in range(ndim, 0, -1):
        extent = count if left == 1 else int(rng.integers(1, 2 + round(count ** (2 / left))))
        shape.append(min(extent, max(count, 1)))
        count //= max(shape[-1], 1)
    if shape and rng.integers(20) == 0:
        shape[rng.integers(ndim)] = 0
    return [int(n) for n in rng.permutation(shape)]


class Layout:
    """Where elements of a dtype are: in slots from the first one of the memory on."""

    def __init__(self, rng, name, shape, repeats):
        self.bits = TYPES[name][2]
        self.name, self.shape, self.flags = name, shape, 0
        self.slot = self.bits
        if self.bits < 8 and rng.integers(2):
            self.slot, self.flags = 8, PADDED
        self.strides, self.first, step = [0] * len(shape), 0, 1
        for i in rng.permutation(len(shape)):
            step += int(rng.choice([0, 0, 0, 1, 2, 5])) if len(shape) < 24 else 0
            if repeats and rng.integers(8) == 0:
                continue
            self.strides[i] = step
            if rng.integers(5) == 0:
                self.strides[i] = -step
                self.first += step * max(shape[i] - 1, 0)
            step *= max(shape[i], 1)
        # The first element begins at a whole byte.
        while self.first * self.slot % 8:
            self.first += 1
        self.nbytes = (self.first + step) * self.slot // 8 + 1
        places = np.array([self.first])
        for n, stride in zip(shape, self.strides):
            places = (places[:, None] + np.arange(n) * stride).reshape(-1)
        self.places = places

    def tensor(self, memory, start):
        return c.byref(cast.managed(memory.ctypes.data + start, self.name, self.shape,
                                    self.strides, self.flags, self.first * self.slot // 8))

    def units(self, start):
        """The bits of every element, or its bytes where these are whole."""
        unit = 8 if self.slot % 8 == 0 else 1
        first = start * 8 // unit + self.places * (self.slot // unit)
        return unit, first[:, None] + np.arange(self.slot // unit)

    def bits_of(self, start, room):
        """Which bits of the memory belong to elements."""
        unit, units = self.units(start)
        mask = np.zeros((room * 8 // unit, unit), bool)
        mask[units.reshape(-1)] = True
        return mask.reshape(-1)

    def read(self, memory, start):
        unit, units = self.units(start)
        if unit == 8:
            raw = np.ascontiguousarray(memory[units])
        else:
            weights = 1 << np.arange(self.slot)
            raw = (np.unpackbits(memory, bitorder="little")[units] * weights).sum(1).astype("u1")
        if self.bits < 8:
            raw &= (1 << self.bits) - 1
        if self.name == "bool":
            raw = (raw != 0).astype("u1")
        return raw.reshape(-1).view(TYPES[self.name][0])

    def write(self, memory, start, values):
        unit, units = self.units(start)
        raw = np.ascontiguousarray(values).view("u1").reshape(len(values), values.itemsize)
        if unit == 8:
            memory[units] = raw
            return memory
        bits = np.unpackbits(memory, bitorder="little")
        bits[units] = raw >> np.arange(self.slot) & 1
        return np.packbits(bits, bitorder="little")


def one(rng, number, large):
    """Whether a random case is right; None if the library could not decide on an overlap."""
    source, target = rng.choice(list(TYPES), 2, replace=False)
    shape = shape_of(rng, LARGE if large else None)
    src, dst = Layout(rng, source, shape, True), Layout(rng, target, shape, False)
    shared = rng.integers(4) == 0
    room = src.nbytes + dst.nbytes + 16
    memory = np.frombuffer(rng.bytes(room), "u1").copy()
    if source != "bool" and src.slot >= 16 and rng.integers(2):
        memory[rng.random(room) < 0.5] = 0  # small numbers
    src_at = int(rng.integers(8))
    dst_at = src_at + src.nbytes + int(rng.integers(8))
    if shared:
        dst_at = int(rng.integers(src.nbytes + 8))
    flags = abi.DLRS_COPY_ALLOW_OVERLAP if rng.integers(2) else 0
    options = abi.DLRS_INIT(abi.dlrs_copy_options, flags=flags, threads=int(rng.choice([0, 1, 2])))
    before = memory.copy()
    error = abi.DLRS_INIT(abi.dlrs_error)
    status = abi.lib.dlrs_cast(src.tensor(memory, src_at), dst.tensor(memory, dst_at),
                               c.byref(options), c.byref(error))
    what = f"case {number}: {source} -> {target}, {shape}, {src.strides} -> {dst.strides}"
    overlap = shared and (src.bits_of(src_at, room) & dst.bits_of(dst_at, room)).any()
    wanted = abi.DLRS_OVERLAP_SRC_DST if overlap and not flags else 0
    undecided = status == abi.DLRS_OVERLAP_SRC_DST and shared and not flags and not overlap
    if status != wanted and not undecided:
        print(f"FAIL  {what}: status {status}, not {wanted}: {error.message.decode()}")
        return False
    if status:
        same = np.array_equal(memory, before)
        print("" if same else f"FAIL  {what}: a refused call wrote\n", end="")
        return None if same and undecided else same
    values = src.read(before, src_at)
    result = dst.read(memory, dst_at)
    expected = cast.expected(values, source, target) if len(values) else result
    _, wrong = cast.compare(result, np.asarray(expected, TYPES[target][0]), source, target, values)
    # NaNs may differ in their payload, so the result's own codes are put between the other bytes.
    others = np.array_equal(dst.write(before, dst_at, result), memory)
    if wrong or not others:
        print(f"FAIL  {what}: {'' if others else 'bytes beside the elements changed'}")
    return not wrong and others


def main():
    np.seterr(all="ignore")
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    # Each case has a generator of its own, so that one can be repeated alone.
    found = [one(np.random.default_rng([seed, number]), number, number % 50 == 0)
             for number in range(cases)]
    failed, undecided = found.count(False), found.count(None)
    if undecided > cases // 200:
        failed += undecided
        print(f"FAIL  {undecided} overlaps were not decided")
    print(f"{cases - failed} passed, {failed} failed (seed {seed})")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
