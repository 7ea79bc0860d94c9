"""Checks of producers: what the exported tensors say of their elements."""

import ctypes
import gc
import sys

from ._abi import IS_COPIED, MAX_VERSION, READ_ONLY
from ._exports import HOST, Export, export, newest
from ._model import Misnamed, Skipped, check, must, own
from ._producers import VALUES, legacy, made, or_refused, plain, raises, says
from ._taking import threads
from ._tensors import Tensor


@check("P41", "MUST", "exports", "shape, dtype and values of a compact tensor")
def _(library):
    found = plain(library)
    must(found.shape == (3, 4), f"shape is {found.shape}")
    must(found.dtype == (2, 32, 1), f"dtype is {found.dtype}")
    must(found.values() == VALUES, f"the values are {found.values()[:4]}")


@check("P42", "MUST", "exports", "a legacy and a versioned export say the same")
def _(library):
    x = made(library)
    one, other = newest(x), Export(legacy(x))
    must((one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype)
         and one.values() == other.values(), "they differ")


says("P43", "SHOULD", "empty", "data is NULL where there are no elements",
     lambda library: newest(library.make(Tensor([], (0, 3)))), lambda e: not e.tensor.data,
     "it is not")


@check("P44", "MUST", "ndim", "a tensor without dimensions has ndim 0")
def _(library):
    found = newest(library.make(Tensor([5.0], ())))
    must(found.ndim == 0, f"ndim is {found.ndim}")
    must(found.values() == [5.0], f"the value is {found.values()[0]}")


@check("P53", "SHOULD", "cannot", "a dtype that DLPack lacks: BufferError")
def _(library):
    found = list(library.foreign())
    if not found:
        raise Skipped("no such dtype")
    for x in found:
        raises(BufferError, lambda: newest(x), f"exported {x!r}")


says("P54", "MUST", "device-id", "device_id is 0 on the CPU", plain,
     lambda e: e.device[0] != 1 or e.device[1] == 0, "it is {.device[1]}")


@check("P55", "INFO", "aligned", "data is aligned to 256 bytes")
def _(library):
    """The header requires it; few libraries comply, and consumers may not rely on it."""
    kept = [newest(library.make(Tensor([1.0] * n, (n,)))) for n in (3, 17, 100, 1000)]
    least = min(found.address & -found.address for found in kept)
    must(least >= 256, f"aligned to {least} bytes")


@check("P56", "SHOULD", "practice", "shape and strides are the struct's own: the source may change")
def _(library):
    x = made(library)
    found = newest(x)
    library.reshape_in_place(x)
    must(found.shape == (3, 4), f"the shape became {found.shape}")


@check("P57", "MUST", "both-used", "8 threads export one object 500 times each")
def _(library):
    x = made(library)
    shape = newest(x).shape

    def run():
        for _ in range(500):
            must(newest(x).shape == shape, "another shape")

    threads(8, run)


@check("P58", "MUST", "copied-flag", "a write through a shared, writable export reaches the source")
def _(library):
    """If this fails, the source was copied or is read-only, without the flag."""
    x = made(library)
    found = newest(x)
    if not found.versioned or found.flags & (READ_ONLY | IS_COPIED):
        raise Skipped("legacy, copied or read-only")
    ctypes.c_float.from_address(found.address).value = 99.0
    first = library.values(x)[:1]
    must(first == [99.0], f"the source still has {first}")


@check("P59", "SHOULD", "practice", "values that are not in memory are refused, or computed")
def _(library):
    found = list(library.lazy())
    if not found:
        raise Skipped("no such tensors")
    for what, x, expected in found:
        try:
            found = newest(x)
        except (BufferError, RuntimeError, TypeError):
            continue
        must(found.values() == expected, f"{what}: the memory is exported, not the values")


@check("P62", "MUST", "owner", "an export of an export's view keeps the memory")
def _(library):
    x = made(library)
    with own("the library's own view (rows)"):
        rows = library.rows(x)
    found = or_refused(lambda: newest(rows)).consume()
    del x, rows
    gc.collect()
    other = [library.make(Tensor([7.0] * 12)) for _ in range(500)]
    must(found.values() == VALUES[4:], "the values changed")
    found.free()
    del other


@check("P64", "MUST", "gil", "a deleter frees on 8 threads at the same time")
def _(library):
    x = made(library)

    def run():
        for _ in range(200):
            newest(x).consume().free_unlocked()

    before = sys.getrefcount(x)
    threads(8, run)
    gc.collect()
    must(sys.getrefcount(x) <= before + 1, f"{before} references became {sys.getrefcount(x)}")


@check("P65", "MUST", "versioned-name", "the name of the capsule fits the struct inside")
def _(library):
    x = made(library)
    for keywords in ({}, {"max_version": (1, 0)}, {"max_version": MAX_VERSION}):
        try:
            Export(x.__dlpack__(**keywords), x)
        except Misnamed:
            raise
        except Exception:  # P04 to P09, and P41, judge it
            continue


@check("P66", "SHOULD", "copy-true", "copy=True is served for a tensor in host memory")
def _(library):
    x = made(library)
    if newest(x).device[0] not in HOST:
        raise Skipped("it is on a device")
    export(x, copy=True)
