"""Checks of consumers: which tensors, made by hand, a library's from_dlpack takes."""

import gc

from ._model import Noted, Unfreed, check, must, said
from ._numbers import VALUES
from ._taking import freed_once, refused, right_or_refused, take, taken, took
from ._tensors import Handmade

ROWS = [VALUES[at:at + 4] for at in (0, 4, 8)]


def requested(library):
    """A compact tensor that the library imported, and its request."""
    producer = Handmade()
    result = taken(library, producer)
    return producer, result


def left_alone(library, producer, result):
    """Whether a consumer copied the elements, and did not take the capsule, which then frees."""
    return not producer.final_name.startswith(b"used") and library.address(result) != producer.start


def takes(name, severity, text, rule, expected=VALUES, /, **members):
    """A check that a tensor is taken with these values, and freed once."""
    def judge(library):
        producer = Handmade(**members)
        found = library.values(taken(library, producer))
        must(found == expected, f"the values are {found[:6]}")
        freed_once(library, producer)

    check(name, severity, text, rule, judge)


def right(name, severity, text, rule, expected=VALUES, /, **members):
    """A check that a tensor is taken with these values, or rejected, and freed once."""
    check(name, severity, text, rule,
          lambda library: right_or_refused(library, Handmade(**members), expected))


def wrong(name, severity, text, rule, /, **members):
    """A check that a tensor is rejected, and freed once."""
    check(name, severity, text, rule, lambda library: refused(library, Handmade(**members)))


def survives(name, severity, text, rule, /, **members):
    check(name, severity, text, rule,
          lambda library: take(library.take, Handmade(**members)) and gc.collect())


takes("C01", "MUST", "from", "takes a compact float32 tensor: values right, freed once")


@check("C02", "SHOULD", "zero-copy", "shares compact memory that is aligned to 256 bytes")
def _(library):
    producer, result = requested(library)
    must(not any(keywords.get("copy") for keywords in producer.asked), "it requests a copy")
    must(library.address(result) == producer.start, "it was copied")


@check("C03", "MUST", "rename", "renames the capsule to used_dltensor, used_dltensor_versioned")
def _(library):
    producer, result = requested(library)
    if left_alone(library, producer, result):
        raise Noted("copied, and the capsule left to its producer")
    wanted = b"used_dltensor_versioned" if producer.gave_versioned else b"used_dltensor"
    must(producer.final_name == wanted, f"it is named {producer.final_name.decode()}")


@check("C04", "MUST", "owner-object", "calls the deleter once, and not before the result is gone")
def _(library):
    producer, result = requested(library)
    shared = library.address(result) == producer.start
    if shared and producer.deleted:
        raise Unfreed("freed while the result shares it", False)
    del result
    freed_once(library, producer)


takes("C05", "SHOULD", "transition", "takes a legacy tensor, and frees it once", legacy=True)


@check("C06", "SHOULD", "max_version", "requests max_version of at least (1, 0)")
def _(library):
    producer, _ = requested(library)
    must(producer.gave_versioned, f"requested with {producer.asked}")


takes("C07", "SHOULD", "retry", "calls a producer from before 1.0 again, without keywords",
      legacy=True, keywords={"stream"})


@check("C08", "MUST", "stream-none", "passes no stream for host memory")
def _(library):
    streams = [keywords.get("stream") for keywords in requested(library)[0].asked]
    must(all(stream is None for stream in streams), f"passed {streams}")


wrong("C10", "MUST", "major", "major version 2 is refused, and the deleter is called once",
      version=(2, 0))
right("C11", "SHOULD", "minor", "minor version 99 is taken: minor versions only add",
      version=(1, 99))
wrong("C12", "INFO", "practice", "an unknown flag is refused: it may change the layout",
      flags=1 << 40)
survives("C14", "MUST", "deleter-null", "deleter NULL, versioned: no crash", deleter=False,
         version=(1, 0))
survives("C15", "MUST", "deleter-null", "deleter NULL, legacy: no crash", deleter=False,
         legacy=True)
right("C16", "MUST", "context-null", "manager_ctx NULL: no crash", context=None)
right("C17", "MUST", "no-strides", "strides NULL in a legacy tensor: row-major", strides=None,
      legacy=True)
right("C18", "MUST", "no-strides", "strides NULL in version 1.0: row-major", strides=None,
      version=(1, 0))
right("C19", "MUST", "byte_offset", "byte_offset of 64 is honoured, or refused", byte_offset=64)
right("C20", "MUST", "byte_offset", "byte_offset of one element is honoured, or refused",
      byte_offset=4)
right("C21", "MUST", "from", "a tensor without dimensions", [5.0], values=[5.0], shape=())
right("C22", "MUST", "empty", "no elements and data NULL", [], values=[], shape=(0, 3), data=None)
right("C23", "MUST", "from", "no elements, with data and strides of 0", [], values=[],
      shape=(0, 3), strides=(0, 0))
takes("C24", "SHOULD", "practice", "extents of 1 with any stride are compact", VALUES[:3],
      values=VALUES[:3], shape=(1, 3, 1), strides=(999, 1, -7))
right("C25", "MUST", "strides", "negative strides: right, or refused",
      [*ROWS[2], *ROWS[1], *ROWS[0]], strides=(-4, 1), origin=8 * 4)
right("C26", "MUST", "strides", "a stride of 0 (broadcast): right, or refused", ROWS[0] * 3,
      values=ROWS[0], strides=(0, 1))
right("C27", "MUST", "strides", "gaps between rows: right, or refused",
      [float(8 * i + 2 * j) for i in range(3) for j in range(4)], values=range(24), strides=(8, 2))
right("C28", "MUST", "strides", "transposed: right, or refused",
      [row[j] for j in range(4) for row in ROWS], shape=(4, 3), strides=(1, 4))
right("C29", "MUST", "unaligned", "data of one element past an aligned address: right, or refused",
      shift=4)
right("C30", "MUST", "unaligned", "data that is not aligned to its elements: right, or refused",
      shift=1)


def used(library, result):
    found = library.use(result)
    must(found == VALUES, f"the values are {found[:6]}")


@check("C31", "MUST", "both-used", "what was taken from an unaligned address can be computed with")
def _(library):
    """An import that succeeds and then ends the process at the first operation is no import."""
    used(library, took(library, Handmade(shift=4)))


check("C32", "MUST", "both-used", "what was taken from an aligned address can be computed with",
      lambda library: used(library, taken(library, Handmade())))


wrong("C34", "SHOULD", "code", "an unknown dtype code is refused, and the tensor freed once",
      dtype=(200, 32, 1))


@check("C35", "MUST", "lanes", "lanes of 4: right (an axis more), or refused; never ignored")
def _(library):
    result = took(library, Handmade(shape=(3,), dtype=(2, 32, 4)))
    try:
        count = len(library.values(result))
    except Exception as error:
        raise Noted(f"taken; its values cannot be read: {said(error)}") from None
    must(count == 12, f"12 numbers became {count}")


wrong("C36", "ROBUST", "lanes", "lanes of 0 are refused", dtype=(2, 32, 0))
wrong("C37", "ROBUST", "dtype", "a float of 17 bits is refused", dtype=(2, 17, 1))
wrong("C38", "ROBUST", "practice", "ndim of -1 is refused", ndim=-1)
wrong("C40", "ROBUST", "practice", "a negative extent is refused", shape=(-3, 4), strides=(4, 1))
wrong("C41", "ROBUST", "practice", "extents whose product overflows are refused",
      shape=(1 << 40, 1 << 40), strides=(1 << 40, 1))
wrong("C42", "ROBUST", "practice", "data NULL with elements is refused", data=None)
wrong("C43", "SHOULD", "device-refused",
      "an unknown device type is refused, and the tensor freed once", device=(99, 0))


@check("C44", "SHOULD", "device-refused", "a device that it does not serve (Hexagon): BufferError")
def _(library):
    failure = take(library.take, Handmade(device=(16, 0)))[1]
    if failure is None:
        raise Noted("taken")
    must(isinstance(failure, BufferError), said(failure))
