"""Checks of tensors on CUDA devices: streams, and copies between devices. They are skipped if
the library has no such tensors, or the machine no driver."""

from . import _abi as abi
from ._libraries import sample
from ._memory import IS_COPIED, Export, compact, newest, said
from ._model import Failed, Noted, Skipped, check, must

VALUES = [float(i) for i in range(12)]
NEWEST = abi.MAX_VERSION


def made(library, number=0):
    return library.make_on(sample(), number)


def export(x, **keywords):
    return Export(x.__dlpack__(max_version=NEWEST, **keywords))


def served(x, **keywords):
    """The export of a request that may be rejected by BufferError."""
    try:
        return export(x, **keywords)
    except BufferError as error:
        raise Noted(f"refused: {said(error)}") from None


@check("D01", "MUST", "device", "a CUDA tensor says its device, in the struct too")
def _(library):
    x = made(library)
    said_device, found = tuple(map(int, x.__dlpack_device__())), newest(x)
    must(said_device == found.device == (2, 0), f"{said_device}, and in the struct {found.device}")


@check("D02", "MUST", "stream-values", "streams None, 1, 2 and -1 are taken for CUDA")
def _(library):
    x = made(library)
    for stream in (None, 1, 2, -1):
        must(export(x, stream=stream).device == (2, 0), f"another device with stream={stream}")


@check("D03", "MUST", "stream-0", "stream 0 is refused for CUDA: it is ambiguous")
def _(library):
    x = made(library)
    try:
        export(x, stream=0)
    except Exception:
        return
    raise Failed("accepted")


@check("D04", "SHOULD", "stream-range", "streams below -1, and what is no number, are refused")
def _(library):
    x = made(library)
    for stream in (-2, "x"):
        try:
            export(x, stream=stream)
        except Exception:
            continue
        raise Failed(f"accepted stream={stream!r}")


@check("D05", "MUST", "dl_device-refused",
       "dl_device=(1, 0) of a CUDA tensor: right, in host memory")
def _(library):
    found = served(made(library), dl_device=(1, 0))
    must(found.device == (1, 0), f"it is on {found.device}")
    must(found.values() == VALUES, f"the values are {found.values()[:4]}")


@check("D06", "MUST", "copied-flag", "a copy to another device has IS_COPIED")
def _(library):
    found = served(made(library), dl_device=(1, 0))
    must(found.versioned and found.flags & IS_COPIED, f"flags is {found.flags}")


@check("D07", "MUST", "copy-false", "copy=False with another device raises BufferError")
def _(library):
    x = made(library)
    try:
        export(x, dl_device=(1, 0), copy=False)
    except BufferError:
        return
    except Exception as error:
        raise Failed(said(error)) from None
    raise Failed("accepted")


@check("D08", "MUST", "copy-true", "copy=True of a CUDA tensor: other memory there, IS_COPIED")
def _(library):
    x = made(library)
    kept, found = newest(x), served(x, copy=True)
    must(found.device == (2, 0), f"it is on {found.device}")
    must(found.address != kept.address, "the same address")
    must(found.versioned and found.flags & IS_COPIED, f"flags is {found.flags}")


@check("D09", "MUST", "dl_device-refused",
       "dl_device of the other CUDA device: there, or BufferError")
def _(library):
    made(library, 1)  # skips where there is one device only
    found = served(made(library), dl_device=(2, 1))
    must(found.device == (2, 1), f"it is on {found.device}")


@check("D10", "MUST", "exports", "an export of device memory describes it as on the host")
def _(library):
    found = newest(made(library))
    must(found.shape == (3, 4) and found.dtype == (2, 32, 1), f"{found.shape} of {found.dtype}")
    must(found.strides == compact((3, 4)) and found.address, f"strides are {found.strides}")


class _Asked:
    """A CUDA tensor of the library; records the arguments of its requests."""

    def __init__(self, x):
        self.x, self.streams = x, []

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.streams.append(keywords.get("stream"))
        return self.x.__dlpack__(**keywords)


@check("D11", "MUST", "stream-0", "a consumer passes a stream of its own, never 0, for CUDA")
def _(library):
    """None and 1 are the default stream; -1 requests no synchronization."""
    if library.take is None:
        raise Skipped("the library is no consumer here")
    asked = _Asked(made(library))
    try:
        result = library.take(asked)
    except Exception as error:
        raise Noted(f"refused: {said(error)}") from None
    streams = asked.streams
    must(all(stream is None or (isinstance(stream, int) and (stream > 0 or stream == -1))
             for stream in streams), f"passed {streams}")
    must(newest(result).device == (2, 0), f"it is on {newest(result).device}")


@check("D12", "SHOULD", "zero-copy", "a CUDA tensor that is taken shares its memory")
def _(library):
    if library.take is None:
        raise Skipped("the library is no consumer here")
    x = made(library)
    must(newest(library.take(_Asked(x))).address == newest(x).address, "it was copied")
