"""The rows of workload.txt: arrays, views of them, and the expected result of a copy."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("workload.txt")


@dataclass(frozen=True)
class Element:
    """An element type: for NumPy (packed ones unpacked), for DLPack, and for torch."""
    numpy: str
    code: int
    bits: int
    lanes: int = 1
    torch: str = ""


ELEMENTS = {
    "i8": Element("i1", 0, 8, torch="int8"), "i16": Element("i2", 0, 16, torch="int16"),
    "u8": Element("u1", 1, 8, torch="uint8"), "f16": Element("f2", 2, 16, torch="float16"),
    "f32": Element("f4", 2, 32, torch="float32"), "f64": Element("f8", 2, 64, torch="float64"),
    "bf16": Element("u2", 4, 16, torch="bfloat16"),
    "c128": Element("c16", 5, 128, torch="complex128"),
    "3-byte": Element("V3", 1, 8, lanes=3), "12-byte": Element("V12", 1, 8, lanes=12),
    "fp4": Element("u1", 17, 4), "fp6": Element("u1", 15, 6),
}


@dataclass(frozen=True)
class Row:
    """One copy: a view of a compact array into a compact array."""
    family: str
    title: str
    dtype: str
    shape: tuple
    how: str

    @property
    def name(self):
        return f"{self.title} {self.dtype} {'x'.join(map(str, self.shape))}"

    @property
    def element(self):
        return ELEMENTS[self.dtype]

    def view(self, array):
        """The view of an array of this row's shape."""
        kind, _, rest = self.how.partition(" ")
        if kind == "permute":
            return array.transpose([int(axis) for axis in rest.split()])
        if kind == "broadcast":
            return np.broadcast_to(array, sizes(rest))
        return array if kind == "whole" else array[index(self.how)]


def sizes(text):
    """The numbers of "3x4"."""
    return tuple(int(n) for n in text.split("x"))


def index(text):
    """The slices of "[:, 1:3, ::-1]"."""
    axes = (axis.strip().split(":") for axis in text.strip("[]").split(","))
    return tuple(slice(*(int(n) if n else None for n in axis)) for axis in axes)


def rows():
    """All rows, in the order of the file."""
    found, family = [], None
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if head := re.fullmatch(r"\[(\w+)\]", line):
            family = head[1]
        elif line and not line.startswith("#"):
            title, dtype, shape, how = re.split(r"  +", line)
            found.append(Row(family, title, dtype, sizes(shape), how))
    return found


class Data:
    """A row with its memory: `source` to read, `out` to write, `view` of the values, and `want`.

    `view` has the strides of the copy in elements; for packed elements it is a view
    of the values, one in each byte. All contestants read and write the same memory.
    """

    def __init__(self, row):
        self.row, bits = row, row.element.bits * row.element.lanes
        count = int(np.prod(row.shape))
        self.packed = bits < 8
        self.source = words(-(-count * bits // 8))
        values = self.source
        if self.packed:
            values = unpack(self.source, bits, count)
        self.base = values.view(row.element.numpy).reshape(row.shape)
        self.view = row.view(self.base)
        self.want = np.ascontiguousarray(self.view)
        self.nbytes = -(-self.view.size * bits // 8)
        self.out = np.ones(self.nbytes, np.uint8)
        self.strides = [step // self.view.itemsize for step in self.view.strides]
        self.offset = (self.view.ctypes.data - values.ctypes.data) * (bits if self.packed else 8)
        if self.offset % 8:
            raise ValueError(f"{row.name}: the first element is inside a byte")

    def array(self):
        """The output as a NumPy array; not of packed elements."""
        return self.out.view(self.row.element.numpy).reshape(self.view.shape)

    def right(self):
        """Whether the output equals NumPy's copy of the view, byte by byte."""
        got = self.out
        if self.packed:
            got = unpack(got, self.row.element.bits, self.want.size)
        return np.array_equal(got, self.want.reshape(-1).view(np.uint8))


def words(nbytes):
    """Random bytes. As f32 and f64 they are normal numbers, since HPTT multiplies them by 1.

    Their period is a prime number of words, so that a copy from elsewhere has other values.
    """
    block = np.random.default_rng(1).integers(0, 1 << 64, 1_000_003, np.uint64)
    exponents = np.uint64(0x6000000060000000)  # two bits of each, which become 01
    block = block & ~exponents | exponents // np.uint64(3)
    return np.resize(block, -(-nbytes // 8)).view(np.uint8)[:nbytes]


def unpack(packed, bits, count):
    """The values of packed elements, one in each byte: the first in the lowest bits."""
    if bits == 4:
        return np.stack((packed & 15, packed >> 4), axis=-1).reshape(-1)[:count]
    a, b, c = np.resize(packed, (-(-count // 4), 3)).T
    values = (a & 63, a >> 6 | (b & 15) << 2, b >> 4 | (c & 3) << 4, c >> 2)
    return np.stack(values, axis=-1).reshape(-1)[:count]
