"""Checks of consumers: what becomes of a tensor that a library's from_dlpack took, or refused."""

import ctypes
import gc
import sys
import threading
from math import prod

from ._abi import IS_COPIED, MAX_VERSION, PADDED
from ._consumers import requested, right, wrong
from ._exports import newest
from ._model import Failed, Noted, Skipped, check, must, own, said
from ._taking import freed_once, refused, take, threads, took
from ._tensors import Handmade


wrong("C45", "MUST", "exports", "__dlpack__ that returns None: an exception", answer=lambda: None)
check("C46", "MUST", "name", "a capsule of another name: an exception", lambda library:
      take(library.take, Handmade(name=b"something"))[1] is not None or "accepted")


@check("C47", "MUST", "once", "a used capsule: an exception, and nothing is freed")
def _(library):
    for name in (b"used_dltensor", b"used_dltensor_versioned"):
        producer = Handmade(name=name)
        must(take(library.take, producer)[1] is not None, f"accepted {name.decode()}")
        must(producer.deleted == 0, f"the deleter ran {producer.deleted} times")


class _Own(Exception):
    pass


@check("C48", "MUST", "propagate", "an exception of the producer comes through")
def _(library):
    def answer():
        raise _Own("mine")

    failure = take(library.take, Handmade(answer=answer))[1]
    must(isinstance(failure, _Own), said(failure) if failure else "accepted")


@check("C49", "SHOULD", "borrow", "struct, shape and strides are not written")
def _(library):
    for producer in (Handmade(), Handmade([1.0, 2.0, 3.0], (1, 3, 1), strides=(999, 1, -7))):
        take(library.take, producer)
        must(producer.unchanged, "they are")


@check("C50", "MUST", "owner-object", "a view of the result keeps the memory")
def _(library):
    producer, result = requested(library)
    if library.address(result) != producer.start:
        raise Skipped("it was copied")
    with own("the library's own view (rows)"):
        rows = library.rows(result)
    if library.address(rows) != producer.start + 16:
        raise Skipped("views are copies")
    del result
    gc.collect()
    must(producer.deleted == 0, "freed under a view")
    del rows
    freed_once(library, producer)


@check("C51", "MUST", "both-used", "the result may go on another thread")
def _(library):
    producer, result = requested(library)
    box = [result]
    del result
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    freed_once(library, producer)


@check("C52", "MUST", "both-used", "Python ends cleanly while a result is alive", ends=True)
def _(library):
    sys._dlpack_conformance = requested(library)


@check("C53", "SHOULD", "no-methods", "no __dlpack__: TypeError, AttributeError or BufferError")
def _(library):
    try:
        library.take(object())
    except (TypeError, AttributeError, BufferError):
        return
    raise Failed("accepted")


def take_often(library, count):
    producers = [Handmade() for _ in range(count)]
    for producer in producers:
        library.take(producer)
        producer.capsule = None
    return producers


check("C54", "MUST", "owner-object", "500 rounds: each deleter is called once",
      lambda library: freed_once(library, *take_often(library, 500)))


def tried(function):
    if function is None:
        raise Skipped("copy is not tried")
    return function


def copied(library, producer):
    result, failure = take(tried(library.take_copy), producer)
    must(failure is None, said(failure) if failure else "")
    return result


@check("C55", "MUST", "from-copy", "copy=True is known, and gives memory of its own")
def _(library):
    producer = Handmade()
    result = copied(library, producer)
    must(library.address(result) != producer.start, "it shares the memory")


@check("C56", "MUST", "from-copy", "a copy by copy=True does not change with its source")
def _(library):
    producer = Handmade()
    result = copied(library, producer)
    ctypes.c_float.from_address(producer.start).value = 99.0
    must(library.values(result)[0] == 0.0, "it changed with the source")


@check("C58", "ROBUST", "practice", "a stride of 2^62 is refused")
def _(library):
    """Overflows times the element size: 2^62 * 4 is 0 in 64 bits, and all rows the first."""
    refused(library, Handmade(strides=(1 << 62, 1)))


wrong("C59", "ROBUST", "practice", "shape NULL with dimensions is refused", no_shape=True)


@check("C60", "MUST", "packed", "4-bit floats, packed: right, or refused")
def _(library):
    producer = Handmade([0x21] * 4, (8,), dtype=(17, 4, 1))
    result = took(library, producer)
    try:
        found = newest(result)
    except Exception as error:
        raise Noted(f"taken; cannot be asked: {said(error)}") from None
    bits = prod((*found.shape, *found.dtype[1:]))
    must(bits == 32, f"8 numbers became {found.shape} of {found.dtype}")
    must(ctypes.string_at(found.address, 4) == b"\x21" * 4, "the bytes are others")
    found = result = None
    freed_once(library, producer)


right("C61", "SHOULD", "padded", "IS_SUBBYTE_TYPE_PADDED on float32: ignored, or refused",
      flags=PADDED)


@check("C62", "MUST", "owner-object", "8 threads take 200 tensors each")
def _(library):
    producers = []
    threads(8, lambda: producers.extend(take_often(library, 200)))
    freed_once(library, *producers)


right("C64", "MUST", "is-copied", "IS_COPIED is taken: right values, freed once", flags=IS_COPIED)


@check("C66", "MUST", "shape", "int64 extents: a tensor of 2^32 + 1 equal elements (stride 0)")
def _(library):
    """An extent that is cut to 32 bits would be 1."""
    producer = Handmade([1], ((1 << 32) + 1,), strides=(0,), dtype=(1, 8, 1))
    result = took(library, producer)
    try:
        shape = newest(result).shape
    except (AttributeError, BufferError, TypeError) as error:
        raise Skipped(f"cannot be asked: {said(error)}") from None
    must(shape == ((1 << 32) + 1,), f"the shape is {shape}")


@check("C67", "SHOULD", "max_version", "max_version is a pair of integers, and one that there is")
def _(library):
    producer, _ = requested(library)
    for keywords in producer.asked:
        version = keywords.get("max_version")
        if version is not None:
            must(isinstance(version, tuple) and len(version) == 2
                 and all(type(part) is int for part in version)
                 and version[0] <= MAX_VERSION[0], f"it is {version!r}")


@check("C68", "MUST", "propagate", "an exception of the producer is not hidden by another request")
def _(library):
    """Only a TypeError says that a keyword is not known."""
    for error in (BufferError, _Own, ValueError):
        def answer(error=error):
            if producer.asked[-1]:
                raise error("mine")
            return producer.lend(False).new_capsule(b"dltensor")

        producer = Handmade(answer=answer)
        failure = take(library.take, producer)[1]
        if not producer.asked[0]:
            raise Skipped("it requests without keywords")
        must(failure is not None, f"{error.__name__}: requested again, without keywords")


@check("C69", "MUST", "from-copy", "copy=True with a producer that does not know copy: a copy")
def _(library):
    for known in ({"stream", "max_version"}, {"stream"}):
        producer = Handmade(keywords=known)
        result = took(library, producer, tried(library.take_copy))
        must(library.address(result) != producer.start, f"shared, where it knows {sorted(known)}")
