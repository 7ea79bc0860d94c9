"""Checks of consumers: which tensors, made by hand, a library's from_dlpack takes."""

import gc

from ._memory import (FORMATS, NAMES, READ_ONLY, Handmade, freed_once, refused, right_or_refused,
                     said, take, taken, telling)
from ._model import Failed, Noted, Skipped, Unfreed, check, must

VALUES = [float(i) for i in range(12)]
PERMUTED = [VALUES[j * 4 + i] for i in range(4) for j in range(3)]


def requested(library):
    """A compact tensor that the library imported, and its request."""
    producer = Handmade()
    result = taken(library, producer)
    return producer, result


def left_alone(library, producer, result):
    """Whether a consumer copied the elements, and did not take the capsule, which then frees."""
    return not producer.final_name.startswith(b"used") and library.address(result) != producer.start


@check("C01", "MUST", "from", "takes a compact float32 tensor: values right, freed once")
def _(library):
    producer = Handmade()
    found = library.values(taken(library, producer))
    must(found == VALUES, f"the values are {found[:6]}")
    freed_once(library, producer)


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


@check("C05", "SHOULD", "transition", "takes a legacy tensor, and frees it once")
def _(library):
    producer = Handmade(legacy=True)
    found = library.values(taken(library, producer))
    must(found == VALUES, f"the values are {found[:6]}")
    freed_once(library, producer)


@check("C06", "SHOULD", "max_version", "requests max_version of at least (1, 0)")
def _(library):
    producer, _ = requested(library)
    must(producer.gave_versioned, f"requested with {producer.asked}")


@check("C07", "SHOULD", "retry", "calls a producer from before 1.0 again, without keywords")
def _(library):
    producer = Handmade(legacy=True, keywords={"stream"})
    found = library.values(taken(library, producer))
    must(found == VALUES, f"the values are {found[:6]}")
    freed_once(library, producer)


@check("C08", "MUST", "stream-none", "passes no stream for host memory")
def _(library):
    producer, _ = requested(library)
    streams = [keywords.get("stream") for keywords in producer.asked]
    must(all(stream is None for stream in streams), f"passed {streams}")


@check("C09", "INFO", "device", "calls __dlpack_device__ before __dlpack__")
def _(library):
    must(requested(library)[0].asked_device > 0, "it does not")


@check("C10", "MUST", "major", "major version 2 is refused, and the deleter is called once")
def _(library):
    refused(library, Handmade(version=(2, 0)))


@check("C11", "SHOULD", "minor", "minor version 99 is taken: minor versions only add")
def _(library):
    right_or_refused(library, Handmade(version=(1, 99)), VALUES)


@check("C12", "INFO", "practice", "an unknown flag is refused: it may change the layout")
def _(library):
    refused(library, Handmade(flags=1 << 40))


@check("C13", "INFO", "practice", "READ_ONLY: the result cannot be written, or is a copy")
def _(library):
    producer = Handmade(flags=READ_ONLY)
    result, failure = take(library.take, producer)
    if failure is not None:
        raise Noted(f"refused: {said(failure)}")
    must(not library.writable(result) or library.address(result) != producer.start,
         "writable, and it shares the memory")


@check("C14", "MUST", "deleter-null", "deleter NULL, versioned: no crash")
def _(library):
    result, _ = take(library.take, Handmade(deleter=False, version=(1, 0)))
    del result
    gc.collect()


@check("C15", "MUST", "deleter-null", "deleter NULL, legacy: no crash")
def _(library):
    result, _ = take(library.take, Handmade(deleter=False, legacy=True))
    del result
    gc.collect()


@check("C16", "MUST", "context-null", "manager_ctx NULL: no crash")
def _(library):
    right_or_refused(library, Handmade(context=None), VALUES)


@check("C17", "MUST", "no-strides", "strides NULL in a legacy tensor: row-major")
def _(library):
    right_or_refused(library, Handmade(strides=None, legacy=True), VALUES)


@check("C18", "MUST", "no-strides", "strides NULL in version 1.0: row-major")
def _(library):
    right_or_refused(library, Handmade(strides=None, version=(1, 0)), VALUES)


@check("C19", "MUST", "byte_offset", "byte_offset of 64 is honoured, or refused")
def _(library):
    right_or_refused(library, Handmade(byte_offset=64), VALUES)


@check("C20", "MUST", "byte_offset", "byte_offset of one element is honoured, or refused")
def _(library):
    right_or_refused(library, Handmade(byte_offset=4), VALUES)


@check("C21", "MUST", "from", "a tensor without dimensions")
def _(library):
    right_or_refused(library, Handmade([5.0], ()), [5.0])


@check("C22", "MUST", "empty", "no elements and data NULL")
def _(library):
    right_or_refused(library, Handmade([], (0, 3), data=None), [])


@check("C23", "MUST", "from", "no elements, with data and strides of 0")
def _(library):
    right_or_refused(library, Handmade([], (0, 3), strides=(0, 0)), [])


@check("C24", "SHOULD", "practice", "extents of 1 with any stride are compact")
def _(library):
    producer = Handmade([1.0, 2.0, 3.0], (1, 3, 1), strides=(999, 1, -7))
    found = library.values(taken(library, producer))
    must(found == [1.0, 2.0, 3.0], f"the values are {found}")


@check("C25", "MUST", "strides", "negative strides: right, or refused")
def _(library):
    producer = Handmade(strides=(-4, 1), origin=8 * 4)
    right_or_refused(library, producer, VALUES[8:] + VALUES[4:8] + VALUES[:4])


@check("C26", "MUST", "strides", "a stride of 0 (broadcast): right, or refused")
def _(library):
    right_or_refused(library, Handmade([1.0, 2.0, 3.0, 4.0], (3, 4), strides=(0, 1)),
                     [1.0, 2.0, 3.0, 4.0] * 3)


@check("C27", "MUST", "strides", "gaps between rows: right, or refused")
def _(library):
    right_or_refused(library, Handmade(range(24), (3, 4), strides=(8, 2)),
                     [float(8 * i + 2 * j) for i in range(3) for j in range(4)])


@check("C28", "MUST", "strides", "transposed: right, or refused")
def _(library):
    right_or_refused(library, Handmade(shape=(4, 3), strides=(1, 4)), PERMUTED)


@check("C29", "MUST", "unaligned", "data of one element past an aligned address: right, or refused")
def _(library):
    right_or_refused(library, Handmade(shift=4), VALUES)


@check("C30", "MUST", "unaligned", "data that is not aligned to its elements: right, or refused")
def _(library):
    right_or_refused(library, Handmade(shift=1), VALUES)


@check("C31", "MUST", "both-used", "what was taken from an unaligned address can be computed with")
def _(library):
    """An import that succeeds and then ends the process at the first operation is no import."""
    result, failure = take(library.take, Handmade(shift=4))
    if failure is not None:
        raise Noted(f"refused: {said(failure)}")
    found = library.use(result)
    must(found == VALUES, f"the values are {found[:6]}")


@check("C32", "MUST", "both-used", "what was taken from an aligned address can be computed with")
def _(library):
    found = library.use(taken(library, Handmade()))
    must(found == VALUES, f"the values are {found[:6]}")


@check("C33", "MUST", "dtype", "the 14 dtypes of the array API standard: right, or refused")
def _(library):
    missing = []
    for code, bits in FORMATS:
        numbers = telling(code, bits)
        try:
            right_or_refused(library, Handmade(numbers, (3,), dtype=(code, bits, 1)), numbers)
        except (Noted, Skipped):
            missing.append(NAMES[code, bits])
        except Unfreed:
            raise
        except Failed as failure:
            raise Failed(f"{NAMES[code, bits]}: {failure}") from None
    if missing:
        raise Noted("refuses " + " ".join(missing))


@check("C34", "SHOULD", "code", "an unknown dtype code is refused, and the tensor freed once")
def _(library):
    refused(library, Handmade(dtype=(200, 32, 1)))


@check("C35", "MUST", "lanes", "lanes of 4: right (an axis more), or refused; never ignored")
def _(library):
    producer = Handmade(shape=(3,), dtype=(2, 32, 4))
    result, failure = take(library.take, producer)
    if failure is not None:
        freed_once(library, producer)
        raise Noted(f"refused: {said(failure)}")
    try:
        count = len(library.values(result))
    except Exception as error:
        raise Noted(f"taken; its values cannot be read: {said(error)}") from None
    must(count == 12, f"12 numbers became {count}")


@check("C36", "ROBUST", "lanes", "lanes of 0 are refused")
def _(library):
    refused(library, Handmade(dtype=(2, 32, 0)))


@check("C37", "ROBUST", "dtype", "a float of 17 bits is refused")
def _(library):
    refused(library, Handmade(dtype=(2, 17, 1)))


@check("C38", "ROBUST", "practice", "ndim of -1 is refused")
def _(library):
    refused(library, Handmade(ndim=-1))


@check("C40", "ROBUST", "practice", "a negative extent is refused")
def _(library):
    refused(library, Handmade(shape=(-3, 4), strides=(4, 1)))


@check("C41", "ROBUST", "practice", "extents whose product overflows are refused")
def _(library):
    refused(library, Handmade(shape=(1 << 40, 1 << 40), strides=(1 << 40, 1)))


@check("C42", "ROBUST", "practice", "data NULL with elements is refused")
def _(library):
    refused(library, Handmade(data=None))


@check("C43", "SHOULD", "device-refused",
       "an unknown device type is refused, and the tensor freed once")
def _(library):
    refused(library, Handmade(device=(99, 0)))


@check("C44", "SHOULD", "device-refused", "a device that it does not serve (Hexagon): BufferError")
def _(library):
    result, failure = take(library.take, Handmade(device=(16, 0)))
    if failure is None:
        raise Noted("taken")
    must(isinstance(failure, BufferError), said(failure))
