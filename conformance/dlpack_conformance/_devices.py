"""Checks of tensors on CUDA devices: streams, and copies between devices. They are skipped if
the library has no such tensors, or the machine no driver."""

from ._abi import IS_COPIED
from ._exports import export, newest
from ._model import Skipped, check, must
from ._numbers import compact
from ._producers import VALUES, or_refused, raises, says
from ._taking import Hidden
from ._tensors import Tensor


def made(library, number=0):
    return library.make_on(Tensor(), number)


def copied(library, number=0, **keywords):
    """The export of a request that may be rejected by BufferError, and the tensor's own."""
    x = made(library, number)
    return or_refused(lambda: export(x, **keywords)), newest(x)


def on(found, *device):
    must(found.device == device, f"it is on {found.device}")


@check("D01", "MUST", "device", "a CUDA tensor says its device, in the struct too")
def _(library):
    x = made(library)
    said, found = tuple(map(int, x.__dlpack_device__())), newest(x)
    must(said == found.device == (2, 0), f"{said}, and in the struct {found.device}")


@check("D02", "MUST", "stream-values", "streams None, 1, 2 and -1 are taken for CUDA")
def _(library):
    x = made(library)
    for stream in (None, 1, 2, -1):
        must(export(x, stream=stream).device == (2, 0), f"another device with stream={stream}")


def streams_refused(library, *streams):
    x = made(library)
    for stream in streams:
        raises(Exception, lambda: export(x, stream=stream), f"accepted stream={stream!r}")


check("D03", "MUST", "stream-0", "stream 0 is refused for CUDA: it is ambiguous",
      lambda library: streams_refused(library, 0))
check("D04", "SHOULD", "stream-range", "streams below -1, and what is no number, are refused",
      lambda library: streams_refused(library, -2, "x"))


@check("D05", "MUST", "dl_device-refused",
       "dl_device=(1, 0) of a CUDA tensor: right, in host memory")
def _(library):
    found, _ = copied(library, dl_device=(1, 0))
    on(found, 1, 0)
    must(found.values() == VALUES, f"the values are {found.values()[:4]}")


says("D06", "MUST", "copied-flag", "a copy to another device has IS_COPIED",
     lambda library: copied(library, dl_device=(1, 0))[0],
     lambda e: e.versioned and e.flags & IS_COPIED, "flags is {.flags}")


@check("D07", "MUST", "copy-false", "copy=False with another device raises BufferError")
def _(library):
    x = made(library)
    raises(BufferError, lambda: export(x, dl_device=(1, 0), copy=False))


@check("D08", "MUST", "copy-true", "copy=True of a CUDA tensor: other memory there, IS_COPIED")
def _(library):
    found, kept = copied(library, copy=True)
    on(found, 2, 0)
    must(found.address != kept.address, "the same address")
    must(found.versioned and found.flags & IS_COPIED, f"flags is {found.flags}")


@check("D09", "MUST", "dl_device-refused",
       "dl_device of the other CUDA device: there, or BufferError")
def _(library):
    made(library, 1)  # skips where there is one device only
    on(copied(library, dl_device=(2, 1))[0], 2, 1)


@check("D10", "MUST", "exports", "an export of device memory describes it as on the host")
def _(library):
    found = newest(made(library))
    must(found.shape == (3, 4) and found.dtype == (2, 32, 1), f"{found.shape} of {found.dtype}")
    must(found.strides == compact((3, 4)) and found.address, f"strides are {found.strides}")


def asked(library):
    if library.take is None:
        raise Skipped("the library is no consumer here")
    return Hidden(made(library))


@check("D11", "MUST", "stream-0", "a consumer passes a stream of its own, never 0, for CUDA")
def _(library):
    """None and 1 are the default stream; -1 requests no synchronization."""
    x = asked(library)
    result = or_refused(lambda: library.take(x))
    streams = [keywords.get("stream") for keywords in x.asked]
    must(all(stream is None or (isinstance(stream, int) and (stream > 0 or stream == -1))
             for stream in streams), f"passed {streams}")
    on(newest(result), 2, 0)


@check("D12", "SHOULD", "zero-copy", "a CUDA tensor that is taken shares its memory")
def _(library):
    x = asked(library)
    must(newest(library.take(x)).address == newest(x).address, "it was copied")
