"""What is copied: the rows of the table, as views that NumPy, torch and jax all understand."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Case:
    """A compact array of `dtype` and `shape`, copied through `view` into a compact output.

    view(xp, array) gives the view; xp is the module that the array is of.
    """
    name: str
    dtype: str
    shape: tuple
    view: Callable
    target: float
    peers: tuple = ("torch", "jax")
    read: float = 1.0  # bytes of the source's lines for each byte of the output


@dataclass(frozen=True)
class BitCase:
    """Packed sub-byte elements: `rows` x `pitch` in the source, of which `columns` are copied."""
    name: str
    bits: int
    rows: int
    pitch: int
    columns: int
    action: str  # "slice", "transpose", "pad" or "pack"
    target: float = 0.30

    @property
    def read(self):
        return {"pad": self.bits / 8, "pack": 8 / self.bits}.get(self.action, 1.0)


def same(_, array):
    return array


def permuted(*axes):
    """The view with its axes in another order."""
    def view(xp, array):
        return (xp.permute if hasattr(xp, "permute") else xp.transpose)(array, axes)
    return view


def sliced(*index):
    return lambda _, array: array[index]


ALL, EVEN, BACK = slice(None), slice(None, None, 2), slice(None, None, -1)
TURN = permuted(1, 0)


def column(n):
    """A column as `n` of them."""
    return lambda xp, array: xp.broadcast_to(array, (array.shape[0], n))


TABLE = [
    Case("contiguous f32 64 MiB", "float32", (1 << 24,), same, 1.15),
    Case("transpose f32 4096²", "float32", (4096, 4096), TURN, 0.95),
    Case("transpose f32 1024²", "float32", (1024, 1024), TURN, 0.90),
    Case("transpose f32 4095×4097", "float32", (4095, 4097), TURN, 0.90),
    Case("transpose f64 4096²", "float64", (4096, 4096), TURN, 0.95),
    Case("transpose u8 8192²", "uint8", (8192, 8192), TURN, 0.85),
    Case("transpose f16 8192×4096", "float16", (8192, 4096), TURN, 0.90),
    Case("transpose c128 2048²", "complex128", (2048, 2048), TURN, 0.95),
    Case("NCHW→NHWC f32 32×3×224×224", "float32", (32, 3, 224, 224), permuted(0, 2, 3, 1), 0.90),
    Case("NHWC→NCHW f32 32×224×224×3", "float32", (32, 224, 224, 3), permuted(0, 3, 1, 2), 0.90),
    Case("NCHW→NHWC f32 16×64×56×56", "float32", (16, 64, 56, 56), permuted(0, 2, 3, 1), 0.95),
    Case("reversal of axes f32 32·24·16·24·32", "float32", (32, 24, 16, 24, 32),
         permuted(4, 3, 2, 1, 0), 0.80),
    Case("(0,2,1,3) of f32 8×16×512×64", "float32", (8, 16, 512, 64), permuted(0, 2, 1, 3), 1.05),
    Case("inner step 2 f32 4096×8192", "float32", (4096, 8192), sliced(ALL, EVEN), 0.50,
         read=2.0),
    Case("row step 2 f32 8192×4096", "float32", (8192, 4096), sliced(EVEN), 1.0),
    Case("broadcast column to f32 4096²", "float32", (4096, 1), column(4096), 1.6, read=0.0),
    Case("reversed inner axis f32 4096²", "float32", (4096, 4096), sliced(ALL, BACK), 0.95,
         ("jax",)),  # torch has no negative strides
]

# Not in the table of targets: no case may be under NumPy, nor under 0.25 of memcpy.
EDGES = [
    Case("transpose u8 8191×8193", "uint8", (8191, 8193), TURN, 0.25),
    Case("transpose 3-byte 4096²", "V3", (4096, 4096), TURN, 0.25, ()),
    Case("transpose 12-byte 2048²", "V12", (2048, 2048), TURN, 0.25, ()),
    Case("transpose u8 11 × 1,000,000", "uint8", (11, 1_000_000), TURN, 0.25),
    Case("transpose u8 1,000,000 × 11", "uint8", (1_000_000, 11), TURN, 0.25),
    Case("f32 [:, ::-1] of 1,000,000×5", "float32", (1_000_000, 5), sliced(ALL, BACK), 0.25,
         ("jax",)),
    Case("f32 [:, :5] of 1,000,000×7", "float32", (1_000_000, 7), sliced(ALL, slice(5)), 0.25,
         read=7 / 5),
    Case("f32 [:, :9] of 500,000×13", "float32", (500_000, 13), sliced(ALL, slice(9)), 0.25,
         read=13 / 9),
    Case("both axes reversed f32 4096²", "float32", (4096, 4096), sliced(BACK, BACK), 0.25,
         ("jax",)),
    Case("NHWC→NCHW u8 32×224×224×3", "uint8", (32, 224, 224, 3), permuted(0, 3, 1, 2), 0.25),
    Case("RGB→BGR u8 1080×1920×3", "uint8", (1080, 1920, 3), sliced(ALL, ALL, BACK), 0.25,
         ("jax",)),
    Case("RGBA→RGB u8 1080×1920×4", "uint8", (1080, 1920, 4), sliced(ALL, ALL, slice(3)), 0.25,
         read=4 / 3),
    Case("left to right u8 1080×1920×3", "uint8", (1080, 1920, 3), sliced(ALL, BACK), 0.25,
         ("jax",)),
    Case("(0,2,1) of f32 10000×16×16", "float32", (10_000, 16, 16), permuted(0, 2, 1), 0.25),
    Case("(0,2,1) of f32 50000×3×3", "float32", (50_000, 3, 3), permuted(0, 2, 1), 0.25),
    Case("(0,2,1) of f64 2000×31×31", "float64", (2000, 31, 31), permuted(0, 2, 1), 0.25),
    Case("(0,2,1) of f16 192×512×64", "float16", (192, 512, 64), permuted(0, 2, 1), 0.25),
    Case("(0,2,1) of c128 240×72×72", "complex128", (240, 72, 72), permuted(0, 2, 1), 0.25),
    Case("(2,1,0) of u8 256×256×256", "uint8", (256, 256, 256), permuted(2, 1, 0), 0.25),
    Case("transpose u8 251 × 250,000", "uint8", (251, 250_000), TURN, 0.25),
    Case("transpose f16 298 × 100,000", "float16", (298, 100_000), TURN, 0.25),
    Case("transpose f32 81 × 200,000", "float32", (81, 200_000), TURN, 0.25),
    Case("broadcast column to f64 1,000,000×9", "float64", (1_000_000, 1), column(9), 0.25,
         read=1 / 9),
    Case("f32 [:, ::-1] of 300,000×50", "float32", (300_000, 50), sliced(ALL, BACK), 0.25,
         ("jax",)),
    Case("every axis of f32 2^22 reversed", "float32", (2,) * 22, permuted(*range(21, -1, -1)),
         0.25, ("torch",)),
]

BITS = [
    BitCase("fp4 packed transpose 8192²", 4, 8192, 8192, 8192, "transpose"),
    BitCase("fp6 packed transpose 8192²", 6, 8192, 8192, 8192, "transpose"),
    BitCase("fp4 packed slice 8191 of 8193", 4, 8191, 8193, 8191, "slice"),
    BitCase("fp6 packed slice 8191 of 8193", 6, 8191, 8193, 8191, "slice"),
    BitCase("fp4 packed → padded 8192²", 4, 8192, 8192, 8192, "pad"),
    BitCase("fp4 padded → packed 8192²", 4, 8192, 8192, 8192, "pack"),
    BitCase("fp6 packed → padded 8192²", 6, 8192, 8192, 8192, "pad"),
    BitCase("fp6 padded → packed 8192²", 6, 8192, 8192, 8192, "pack"),
]


def dense(nbytes):
    return Case("dense copy", "uint8", (nbytes,), same, 0.0)


def turned(nbytes):
    """A transpose of f32 of that many bytes, a power of two."""
    power = (nbytes // 4).bit_length() - 1
    return Case("f32 transpose", "float32", (1 << power // 2, 1 << (power + 1) // 2), TURN, 0.0)


SIZES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def random_permutation(rng):
    """Rank 2 to 6, elements of 1 to 16 bytes, 1 to 16 MiB; never the identity."""
    rank, size = int(rng.integers(2, 7)), int(rng.integers(1, 17))
    elements = 2.0 ** rng.uniform(20, 24) / size
    parts = rng.uniform(0.3, 1.0, rank)
    shape = [max(2, round(elements ** part)) for part in parts / parts.sum()]
    while size * product(shape) > 1 << 24:
        shape[shape.index(max(shape))] -= 1
    shape[0] = max(shape[0], -(-(1 << 20) // (size * product(shape[1:]))))
    axes = tuple(range(rank))
    while axes == tuple(range(rank)):
        axes = tuple(int(axis) for axis in rng.permutation(rank))
    name = f"{size} B {'·'.join(map(str, shape))} {axes}"
    return Case(name, SIZES.get(size, f"V{size}"), tuple(shape), permuted(*axes), 0.25, ())


def random_view(rng):
    """Rank 1 to 5, elements of 1 to 16 bytes, about 256 KiB to 16 MiB, of arrays of at most 64 MiB
    whose axes are cut, reversed, taken in steps of 2 to 4 or repeated; every other one is permuted,
    too."""
    rank, size = int(rng.integers(1, 6)), int(rng.integers(1, 17))
    elements = 2.0 ** rng.uniform(18, 24) / size
    parts = rng.uniform(0.3, 1.0, rank)
    lengths = [max(2, round(elements ** part)) for part in parts / parts.sum()]
    shape, index, words = [], [], []
    for length in lengths:
        kind = rng.choice(["all", "cut", "back", "step", "once"], p=[0.4, 0.2, 0.15, 0.15, 0.1])
        step, first = int(rng.integers(2, 5)), int(rng.integers(1, 9))
        some, whole, word = {
            "all": (ALL, length, ":"),
            "cut": (slice(first, first + length), length + 2 * first, f"{first}:-{first}"),
            "back": (BACK, length, "::-1"),
            "step": (slice(None, None, step), length * step, f"::{step}"),
            "once": (ALL, 1, f"1 to {length}"),
        }[kind]
        shape.append(whole)
        index.append(some)
        words.append(word)
    axes = tuple(int(axis) for axis in rng.permutation(rank))
    axes = axes if rng.random() < 0.5 else tuple(range(rank))

    def view(xp, array):
        return xp.transpose(xp.broadcast_to(array[tuple(index)], lengths), axes)

    if size * product(shape) > 64 << 20:
        return random_view(rng)
    name = f"{size} B {'·'.join(map(str, shape))} [{', '.join(words)}] {axes}"
    return Case(name, SIZES.get(size, f"V{size}"), tuple(shape), view, 0.0, ())


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result
