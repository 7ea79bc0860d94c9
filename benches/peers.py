"""The libraries of benches/peers (Rust and C++, from crates.io), where they were built."""

import os
import re
from ctypes import CDLL, c_char_p, c_int32, c_size_t, c_void_p
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("ndarray", "strided-perm", "HPTT", "transpose")  # on the calling thread, all of them


def load():
    """The function that copies and {name: place}; nobody without the library."""
    file = os.environ.get("DLPACK_RS_PEERS",
                          ROOT / "target/peers/release/libdlpack_rs_peers.so")
    try:
        library = CDLL(os.fspath(file))
    except OSError:
        return None, {}
    copy, name = library.dlrs_peer_copy, library.dlrs_peer_name
    copy.restype, copy.argtypes = c_int32, (c_size_t, c_void_p, c_void_p, c_size_t, c_void_p,
                                            c_void_p, c_size_t)
    name.restype, name.argtypes = c_char_p, (c_size_t,)
    return copy, {name(place).decode(): place for place in range(len(NAMES)) if name(place)}


COPY, PLACES = load()


def versions():
    """One text for each."""
    lock = (ROOT / "benches/peers/Cargo.lock").read_text(encoding="utf-8")
    found = dict(re.findall(r'name = "(.*)"\nversion = "(.*)"', lock))
    return [f"{name} {found[name.lower()]}" if name in PLACES else f"{name} not built"
            for name in NAMES]


def copier(name, src, dst):
    """What copies one DLTensor to a compact one; None where that library cannot."""
    if name not in PLACES:
        return None
    arguments = (PLACES[name], dst.data, src.data, src.ndim, src.shape, src.strides,
                 src.dtype.lanes)

    def work():
        return COPY(*arguments)
    work.keep = (src, dst)
    return work if work() == 0 else None
