"""The copy functions: memcpy, builds of libdlpack_rs through their C ABI, NumPy, torch and
benches/peers.

Each is a function without arguments that copies once. ctypes calls C functions, with the GIL held,
as NumPy does for small copies. torch and the peers may be missing.
"""

import os
import re
import subprocess
from ctypes import (PyDLL, addressof, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint8,
                    c_void_p, sizeof)
from functools import cache, partial
from pathlib import Path

import numpy as np
from dlpack_rs import abi

try:
    import torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "target" / "bench"
LEVELS = ("portable", "neon", "avx2", "avx512", "vbmi")  # by their numbers, from 1


class Library:
    """One build of libdlpack_rs."""

    def __init__(self, file, level=None):
        library = PyDLL(os.fspath(file))
        self.copy = library.dlrs_copy
        self.copy.argtypes, self.copy.restype = (c_void_p,) * 4, c_int32
        if level and not library.dlrs_test_level(c_uint8(LEVELS.index(level) + 1), c_uint8(0)):
            raise SystemExit(f"this processor has no {level}")

    def copier(self, data, threads):
        src = managed(data, data.source.ctypes.data + data.offset // 8, data.strides)
        dst = managed(data, data.out.ctypes.data, compact(data.view.shape))
        options = abi.dlrs_copy_options(struct_size=sizeof(abi.dlrs_copy_options), threads=threads)
        error = abi.dlrs_error(struct_size=sizeof(abi.dlrs_error))
        if self.copy(byref(src), byref(dst), byref(options), byref(error)) != 0:
            raise RuntimeError(f"{data.row.name}: {error.message.decode()}")
        work = partial(self.copy, addressof(src), addressof(dst), addressof(options), None)
        return kept(work, src, dst, options)


def kept(work, *what):
    """The function, which keeps the objects of its addresses alive."""
    work.keep = what
    return work


def managed(data, address, strides):
    """A borrowed tensor of the view's shape."""
    element, shape = data.row.element, data.view.shape
    tensor = abi.DLTensor(
        data=address, device=abi.DLDevice(abi.kDLCPU, 0), ndim=len(shape),
        dtype=abi.DLDataType(element.code, element.bits, element.lanes),
        shape=(c_int64 * len(shape))(*shape), strides=(c_int64 * len(shape))(*strides))
    return abi.DLManagedTensorVersioned(version=abi.DLPackVersion(1, 3), dl_tensor=tensor)


def compact(shape):
    """The strides of a row-major array."""
    return [int(np.prod(shape[axis + 1:])) for axis in range(len(shape))]


@cache
def in_c(name, *options):
    """The file compiled from a C source of this folder."""
    BUILT.mkdir(parents=True, exist_ok=True)
    file = BUILT / (name + ("" if "-fPIC" not in options else ".so"))
    source = ROOT / "benches" / f"{name}.c"
    subprocess.run(["cc", "-O2", "-Wall", "-I", ROOT / "include", source, "-o", file, *options],
                   check=True)
    return file


def memcpy(data, threads=1):
    """A memcpy as large as the output, from other memory; by two threads like a copy."""
    source = np.ones(data.nbytes, np.uint8)
    if threads == 1:
        function = PyDLL(None).memcpy
    else:
        function = PyDLL(os.fspath(in_c("memcpy2", "-shared", "-fPIC", "-pthread"))).memcpy_by_two
    function.argtypes, function.restype = (c_void_p, c_void_p, c_size_t), None
    return kept(partial(function, data.out.ctypes.data, source.ctypes.data, data.nbytes), source)


def of_numpy(data):
    return None if data.packed else partial(np.copyto, data.array(), data.view)


def of_torch(data):
    """None for elements and views that torch does not support."""
    element = data.row.element
    if not (torch and element.torch and all(step >= 0 for step in data.strides)):
        return None
    dtype = getattr(torch, element.torch)
    source = torch.from_numpy(data.source).view(dtype)
    view = source.as_strided(data.view.shape, data.strides, data.offset // element.bits)
    out = torch.from_numpy(data.out).view(dtype).reshape(data.view.shape)
    return kept(partial(out.copy_, view), source)


class Peers:
    """The libraries of benches/peers that are built: `copiers` are by name."""

    def __init__(self, file=ROOT / "target/peers/release/libdlpack_rs_peers.so"):
        self.copiers, self.versions = {}, []
        if not file.exists():
            return
        library = PyDLL(os.fspath(file))
        self.copy, name = library.dlrs_peer_copy, library.dlrs_peer_name
        self.copy.argtypes, self.copy.restype = (c_size_t, c_void_p, c_void_p, c_size_t, c_void_p,
                                                 c_void_p, c_size_t), c_int32
        name.argtypes, name.restype = (c_size_t,), c_char_p
        lock = (ROOT / "benches/peers/Cargo.lock").read_text(encoding="utf-8")
        versions = dict(re.findall(r'name = "(.*)"\nversion = "(.*)"', lock))
        while title := name(len(self.copiers)):
            title = title.decode()
            self.versions.append(f"{title} {versions[title.lower()]}")
            self.copiers[title] = partial(self.copier, len(self.copiers))

    def copier(self, place, data):
        """None where that library does not support it."""
        if data.packed:
            return None
        rank = data.view.ndim
        shape, strides = (c_int64 * rank)(*data.view.shape), (c_int64 * rank)(*data.strides)
        work = partial(self.copy, place, data.out.ctypes.data, data.view.ctypes.data, rank,
                       addressof(shape), addressof(strides), data.view.itemsize)
        return kept(work, shape, strides) if work() == 0 else None
