"""Who copies, on the same memory: memcpy, libdlpack_rs through its C ABI, NumPy, torch and others."""

import importlib
import subprocess
import sys
import time
from ctypes import (CDLL, addressof, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p,
                    sizeof)
from pathlib import Path

import numpy as np

import peers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from dlpack_rs import abi as dlpack  # noqa: E402  loads the library of DLPACK_RS_LIBRARY

CPU = dlpack.DLDevice(dlpack.kDLCPU, 0)
COPY = dlpack.lib.dlrs_copy_desc
COPY.restype = c_int32
COPY.argtypes = (c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p)
CAST = dlpack.lib.dlrs_cast
CAST.restype, CAST.argtypes = c_int32, (c_void_p,) * 4
MEMCPY = CDLL(None).memcpy
MEMCPY.restype, MEMCPY.argtypes = None, (c_void_p, c_void_p, c_size_t)
OPTIONS = {threads: dlpack.dlrs_copy_options(struct_size=sizeof(dlpack.dlrs_copy_options),
                                             threads=threads) for threads in (0, 1, 2)}


# Smaller outputs may lie in a large cache: memory is not the limit there, and streaming stores
# would take them out of it, for whoever comes next.
IN_CACHES = 48 << 20


def built_limit():
    """The functions of limit.c, or None: without a compiler, or on another processor."""
    folder = Path(__file__).resolve().parent
    library = folder.parent / "target" / "bench" / "limit.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-pthread",
                        folder / "limit.c", "-o", library], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    functions = CDLL(library)
    both = (c_void_p, c_void_p, c_size_t)
    functions.limit.restype, functions.limit.argtypes = None, (*both, c_double)
    functions.memcpy_by_two.restype, functions.memcpy_by_two.argtypes = None, both
    return functions


LIMIT = built_limit()


def optional(name):
    """A module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch, jax = optional("torch"), optional("jax")
if jax:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")


class Memory:
    """Random bytes to read and touched bytes to write, for all cases.

    As float32 or float64 they are ordinary numbers: HPTT multiplies them by 1.
    """

    def __init__(self, nbytes, align=0, seed=1):
        block = np.random.default_rng(seed).integers(0, 1 << 64, 1 << 20, np.uint64)
        fixed = 0x6000000060000000  # the two highest bits of each exponent, which are 01
        block = block & ~np.uint64(fixed) | np.uint64(fixed // 3)
        self.source = aligned(nbytes, align)
        words = self.source.view(np.uint64)
        for at in range(0, len(words), len(block)):  # each block differs from the others
            part = words[at:at + len(block)]
            change = at * 0x9E3779B97F4A7C15 % (1 << 64) & ~fixed
            np.bitwise_xor(block[:len(part)], np.uint64(change), part)
        self.target = aligned(nbytes, align)
        self.target.fill(1)

    def input(self, dtype, shape):
        return carve(self.source, dtype, shape)

    def output(self, dtype, shape):
        return carve(self.target, dtype, shape)


def aligned(nbytes, align):
    """Memory of NumPy's, where it happens to be or from the next multiple of `align` on."""
    memory = np.empty(nbytes + align, np.uint8)
    skip = -memory.ctypes.data % align if align else 0
    return memory[skip:skip + nbytes]


def alignment(memory):
    """What the address of an array is a multiple of."""
    return memory.ctypes.data & -memory.ctypes.data


def carve(memory, dtype, shape):
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return memory[:nbytes].view(dtype).reshape(shape)


def tensor_of(array):
    """The DLTensor of a NumPy array, whose elements are only bytes to us."""
    size, rank = array.itemsize, array.ndim
    dtype = dlpack.DLDataType(1, 8, size)
    shape = (c_int64 * rank)(*array.shape)
    strides = (c_int64 * rank)(*(step // size for step in array.strides))
    return dlpack.DLTensor(array.ctypes.data, CPU, rank, dtype, shape, strides)


def managed(tensor, padded):
    """A borrowed managed tensor around it."""
    return dlpack.DLManagedTensorVersioned(
        version=dlpack.DLPackVersion(1, 3), dl_tensor=tensor,
        flags=dlpack.IS_SUBBYTE_TYPE_PADDED if padded else 0)


class Engine:
    """One competitor at one case: `work()` copies once; `before` and `after` are not timed."""

    def __init__(self, name, work, before=None, after=None):
        self.name, self.work, self.before, self.after = name, work, before, after

    def run(self, calls=1):
        """Seconds per call: those that passed, and those that this thread worked."""
        if self.before:
            self.before()
        work, start, busy = self.work, time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(calls):
            work()
        busy, passed = time.thread_time_ns() - busy, time.perf_counter_ns() - start
        if self.after:
            self.after()
        return passed * 1e-9 / calls, busy * 1e-9 / calls


def memcpy(target, source, nbytes):
    to, start = target.ctypes.data, source.ctypes.data
    return Engine("memcpy", lambda: MEMCPY(to, start, nbytes))


def limit(target, source, nbytes, read):
    """As many bytes read and written as in the case, in order; None where memory is no limit."""
    if LIMIT is None or nbytes <= IN_CACHES:
        return None
    to, start = target.ctypes.data, source.ctypes.data
    return Engine("limit", lambda: LIMIT.limit(to, start, nbytes, read))


def memcpy_by_two(target, source, nbytes):
    """memcpy by two threads, halves of pages; None where limit.c is not built."""
    to, start = target.ctypes.data, source.ctypes.data
    return LIMIT and Engine("memcpy 2", lambda: LIMIT.memcpy_by_two(to, start, nbytes))


def ours(src, dst, threads, function=None):
    """dlrs_copy_desc of two DLTensors, or dlrs_cast of two managed tensors."""
    first, second, options = addressof(src), addressof(dst), addressof(OPTIONS[threads])
    if function is CAST:
        def work():
            return CAST(first, second, options, None)
    else:
        def work():
            return COPY(first, 0, second, 0, options, None)
    if (status := work()) != 0:
        raise RuntimeError(f"the copy was refused: {dlpack.lib.dlrs_status_name(status).decode()}")
    work.keep = (src, dst)  # the tensors live as long as their addresses are used
    return Engine(f"ours {threads}", work)


def of_numpy(view, out):
    return Engine("NumPy", lambda: np.copyto(out, view))


def of_torch(case, base, out, threads):
    view = case.view(torch, torch.from_numpy(base))
    to = torch.from_numpy(out)
    # OpenMP's workers go on spinning for a moment: they shall not disturb who comes next.
    calm = (lambda: time.sleep(0.004)) if threads > 1 else None
    return Engine(f"torch {threads}", lambda: to.copy_(view),
                  lambda: torch.set_num_threads(threads), calm)


def of_jax(case, base):
    """Has no output of ours to write to: allocates its own, and uses all processors."""
    compiled = jax.jit(lambda array: jax.numpy.array(case.view(jax.numpy, array), copy=True))
    array = jax.device_put(base)
    return Engine("jax", lambda: compiled(array).block_until_ready())


def of_peer(name, src, dst):
    """One of benches/peers, or None."""
    work = peers.copier(name, src, dst)
    return work and Engine(name, work)


def engines_of(case, memory, names):
    """Those of `names` that can do the case, checked against NumPy; and how many bytes it has."""
    base = memory.input(case.dtype, case.shape)
    view = case.view(np, base)
    out = memory.output(case.dtype, view.shape)
    src, dst = tensor_of(view), tensor_of(out)
    makers = {
        "memcpy": lambda: memcpy(out, memory.source, out.nbytes),
        "memcpy 2": lambda: memcpy_by_two(out, memory.source, out.nbytes),
        "limit": lambda: limit(out, memory.source, out.nbytes, case.read),
        "ours 1": lambda: ours(src, dst, 1),
        "ours 2": lambda: ours(src, dst, 2),
        "NumPy": lambda: of_numpy(view, out),
        "torch 1": lambda: of_torch(case, base, out, 1),
        "torch 2": lambda: of_torch(case, base, out, 2),
        "jax": lambda: of_jax(case, base),
    }
    for name in peers.NAMES:
        makers[name] = lambda name=name: of_peer(name, src, dst)
    missing = {name for name, module in (("torch", torch), ("jax", jax))
               if module is None or name not in case.peers}
    made = (makers[name]() for name in names if name.split()[0] not in missing)
    engines = [engine for engine in made if engine]
    check(engines, view, out)
    return engines, out.nbytes


def check(engines, view, out):
    """Everyone's result must be NumPy's, byte for byte."""
    expected = np.ascontiguousarray(view).view(np.uint8).reshape(-1)
    written = out.view(np.uint8).reshape(-1)
    for engine in engines:
        if engine.name in ("memcpy", "memcpy 2", "limit", "NumPy"):
            continue
        written.fill(0)
        if engine.before:
            engine.before()
        result = engine.work()
        if engine.name == "jax":
            written[:] = np.asarray(result).view(np.uint8).reshape(-1)
        if not np.array_equal(written, expected):
            raise AssertionError(f"{engine.name} differs from NumPy")


# --- Packed sub-byte elements, which have no peer ----------------------------------------------


def unpack(packed, bits, count):
    """Values of packed elements, one per byte: the first in the lowest bits."""
    if bits == 4:
        return np.stack((packed & 15, packed >> 4), axis=-1).reshape(-1)[:count]
    b = packed[:-(-count // 4) * 3].reshape(-1, 3)
    values = (b[:, 0] & 63, b[:, 0] >> 6 | (b[:, 1] & 15) << 2, b[:, 1] >> 4 | (b[:, 2] & 3) << 4,
              b[:, 2] >> 2)
    return np.stack(values, axis=-1).reshape(-1)[:count]


def sub_byte(array, bits, shape, strides):
    """A DLTensor of fp4 or fp6 over the begin of an array."""
    rank = len(shape)
    dtype = dlpack.DLDataType(17 if bits == 4 else 15, bits, 1)
    return dlpack.DLTensor(array.ctypes.data, CPU, rank, dtype, (c_int64 * rank)(*shape),
                           (c_int64 * rank)(*strides))


def room(count, bits, padded):
    """Bytes of so many elements."""
    return count if padded else -(-count * bits // 8)


def bit_engines(case, memory, names):
    """memcpy and ours at a BitCase, checked."""
    unpads, pads = case.action == "pack", case.action == "pad"
    total, count = case.rows * case.pitch, case.rows * case.columns
    shape, strides = (case.rows, case.columns), (case.pitch, 1)
    if case.action == "transpose":
        shape, strides = shape[::-1], strides[::-1]
    source = memory.source[:room(total + 8, case.bits, unpads)]
    if unpads:  # the unused bits of padded elements are 0
        source = source & np.uint8((1 << case.bits) - 1)
    target = memory.target[:room(count, case.bits, pads)]
    src = sub_byte(source, case.bits, shape, strides)
    dst = sub_byte(target, case.bits, shape, (shape[1], 1))
    function = CAST if pads or unpads else None
    if function:
        src, dst = managed(src, unpads), managed(dst, pads)
    target.fill(0)
    engines = [ours(src, dst, threads, function) for threads in (1, 2)]
    values = source[:total] if unpads else unpack(source, case.bits, total)
    values = values.reshape(case.rows, case.pitch)[:, :case.columns]
    values = values.T if case.action == "transpose" else values
    got = target if pads else unpack(np.append(target, np.zeros(3, np.uint8)), case.bits, count)
    if not np.array_equal(got, values.reshape(-1)):
        raise AssertionError(f"{case.name}: differs from NumPy")
    engines[0].keep = source
    engines += [memcpy(target, memory.source, target.nbytes),
                limit(target, memory.source, target.nbytes, case.read)]
    return [engine for engine in engines if engine and engine.name in names], target.nbytes
