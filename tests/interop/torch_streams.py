"""Streams between PyTorch and us on a stand-in driver: torch_streams.py CHECK.

The stand-in executes work only when a call waits for it, and then in any order that streams and
events allow; each seed gives another one. A missing wait therefore shows as wrong values.
"""

import ctypes
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))

import torch  # noqa: E402

import dlpack_rs  # noqa: E402

DRIVER = ctypes.CDLL("libcuda.so.1")
DRIVER.standin_violation.restype = ctypes.c_char_p
SEED = 8  # of enum standin_what
SEEDS = 25
VALUES = torch.arange(24, dtype=torch.float32).reshape(4, 6)
PINNED = VALUES.clone().pin_memory()


class OnlyCapsules:
    """An object with __dlpack__ but no exchange API; records the streams that it is called with."""

    def __init__(self, x):
        self.x, self.streams = x, []

    def __dlpack__(self, *, stream=None, **keywords):
        self.streams.append(stream)
        return self.x.__dlpack__(stream=stream, **keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def pending(device="cuda:1"):
    """(their tensor, its stream): the values are enqueued, not yet written."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        x = torch.empty((4, 6), device=device)
        x.copy_(PINNED, non_blocking=True)
    return x, stream


def right(tensor):
    return tensor.to("cpu").tolist() == VALUES.tolist()


def devices():
    for number in (0, 1):
        x = torch.empty((4, 6), device=f"cuda:{number}")
        tensor = dlpack_rs.from_dlpack(x)
        assert tensor.device == f"cuda:{number}" and tensor.data_ptr == x.data_ptr()
        assert tensor.__dlpack_device__() == (2, number)
        back = torch.from_dlpack(tensor)
        assert back.data_ptr() == x.data_ptr() and back.device == x.device
    return "zero-copy, cuda:0 and cuda:1"


def theirs_by_exchange_api():
    x, stream = pending()
    with torch.cuda.stream(stream):
        tensor = dlpack_rs.from_dlpack(x)
    assert right(tensor)
    return "waits for their stream"


def theirs_by_capsule():
    x, stream = pending()
    with torch.cuda.stream(stream):
        asked = OnlyCapsules(x)
        tensor = dlpack_rs.from_dlpack(asked)
    assert right(tensor)
    assert not {0, 2} & set(asked.streams), asked.streams  # which PyTorch rejects
    return f"asks with stream={asked.streams[-1]}"


def ours_on_their_stream():
    host = dlpack_rs.from_dlpack(VALUES)
    tensor = host.to("cuda:1")
    stream = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(stream):
        x = torch.from_dlpack(tensor)
        out = torch.empty((4, 6)).pin_memory()
        out.copy_(x, non_blocking=True)
    stream.synchronize()
    assert torch.equal(out, VALUES)
    return "right on a stream of theirs"


def through_us_between_streams():
    x, first = pending()
    with torch.cuda.stream(first):
        tensor = dlpack_rs.from_dlpack(x)
    second = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(second):
        y = torch.from_dlpack(tensor)
        out = torch.empty((4, 6)).pin_memory()
        out.copy_(y, non_blocking=True)
    second.synchronize()
    assert torch.equal(out, VALUES), "the second stream did not wait for the first"
    return "the second stream waits for the first"


def numbers():
    tensor = dlpack_rs.from_dlpack(torch.empty(3, device="cuda:0"))
    handle = torch.cuda.Stream("cuda:0").cuda_stream
    for stream in (None, -1, 1, 2, handle):
        assert tensor.__dlpack__(stream=stream, max_version=(1, 3)) is not None
    refused = []
    for stream in (0, -2, "1", 1.5):
        try:
            tensor.__dlpack__(stream=stream, max_version=(1, 3))
        except (ValueError, TypeError, BufferError, RuntimeError) as error:
            refused.append(type(error).__name__)
    assert len(refused) == 4, refused
    return "None, -1, 1, 2 and handles taken; 0 and others refused"


def to_the_host():
    x, stream = pending()
    with torch.cuda.stream(stream):
        tensor = dlpack_rs.from_dlpack(x)
    import numpy as np

    array = np.from_dlpack(tensor, device="cpu")
    assert array.tolist() == VALUES.tolist()
    return "copied, after waiting"


def without_waiting():
    """stream=-1 means no wait. The stand-in then shows wrong values: a check of the checks."""
    x, _ = pending()
    with torch.cuda.device(1):  # PyTorch exports from the current device only
        y = torch.from_dlpack(x.__dlpack__(stream=-1))
    second = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(second):
        out = torch.zeros((4, 6)).pin_memory()
        out.copy_(y, non_blocking=True)
    second.synchronize()
    return torch.equal(out, VALUES)


CHECKS = {"devices": devices, "theirs, exchange API": theirs_by_exchange_api,
          "theirs, capsule": theirs_by_capsule, "ours on their stream": ours_on_their_stream,
          "between their streams": through_us_between_streams, "stream numbers": numbers,
          "to the host": to_the_host}


def main():
    check = sys.argv[1]
    torch.cuda.init()
    if check == "a missing wait shows":
        seen = set()
        for seed in range(1, SEEDS + 1):
            DRIVER.standin_ctl(SEED, ctypes.c_long(seed), ctypes.c_long(0), None)
            seen.add(without_waiting())
        assert False in seen, "no order of execution showed it"
        said = "as wrong values"
    else:
        for seed in range(1, SEEDS + 1):
            DRIVER.standin_ctl(SEED, ctypes.c_long(seed), ctypes.c_long(0), None)
            said = CHECKS[check]()
    assert not DRIVER.standin_violation(), DRIVER.standin_violation().decode()
    print("SAID", said)


if __name__ == "__main__":
    main()
