"""Copies on a real GPU next to the driver's own, torch, CuPy and, where nvcc is, CCCL.

Run by c_tests/gpu/device.py (make bench-cuda, make bench-rocm), which first checks for a driver. Copies on the device are
timed by its own events, behind work that keeps it busy until all of them are enqueued, so that what
a call costs the host does not count; everything else by the clock: enough calls, one wait, divided.
Medians of repeats, after a warm-up; what is copied on the device is checked before. torch and CuPy
are optional. With --quick nothing is written, sizes are small.

  gpu.py [--vendor cuda|rocm] [--quick] [--no-peers] [--only PART...] [--driver FILE] [--library FILE]
"""

import argparse
import ctypes
import re
import statistics
import struct
import sys
import time
from ctypes import POINTER, byref, c_char, c_int, c_int32, c_int64, c_uint32, c_uint64, c_uint8, c_uint16, c_void_p
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parent.parent
CPU = 1
BUSY_NBYTES = 2 << 30  # a copy of this size takes longer than enqueuing the measured work


class DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
        ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("threads", c_uint32), ("reserved", c_uint32),
        ("parallel_for", c_void_p), ("parallel_context", c_void_p), ("src_stream", c_void_p), ("dst_stream", c_void_p),
    ]


ASYNC = 1 << 2
ITEM = {"f32": (2, 32), "f16": (2, 16), "u8": (1, 8), "f64": (2, 64)}


class Library:
    def __init__(self, file):
        self.lib = ctypes.CDLL(str(file))
        self.lib.dlrs_copy_desc.argtypes = [c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p]
        self.lib.dlrs_copy_batch.argtypes = [c_uint64, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]
        self.lib.dlrs_status_name.restype = ctypes.c_char_p

    def copy(self, src, dst, options=None):
        status = self.lib.dlrs_copy_desc(byref(src), 0, byref(dst), 0, byref(options) if options else None, None)
        if status != 0:
            raise RuntimeError(f"dlrs_copy_desc: {self.lib.dlrs_status_name(status)}")

    def batch(self, src, dst):
        """A function that copies these tensors by one call."""
        sides = [[Managed(1, 0, None, None, 0, one) for one in side] for side in (src, dst)]
        places = [(c_void_p * len(side))(*map(ctypes.addressof, side)) for side in sides]

        def copy(options):
            status = self.lib.dlrs_copy_batch(len(src), *places, byref(options), None, None)
            if status != 0:
                raise RuntimeError(f"dlrs_copy_batch: {self.lib.dlrs_status_name(status)}")

        copy.kept = sides
        return copy


# A driver's file names, and its names of the functions used here. HIP numbers a copy's direction.
VENDORS = {
    "cuda": {
        "files": ["libcuda.so.1"], "device": 2, "pinned": 3, "title": "CUDA", "plain": "cuMemcpyAsync",
        "init": "cuInit", "count": "cuDeviceGetCount", "name": "cuDeviceGetName", "version": "cuDriverGetVersion",
        "alloc": "cuMemAlloc_v2", "free": "cuMemFree_v2", "alloc_host": "cuMemHostAlloc", "free_host": "cuMemFreeHost",
        "copy": "cuMemcpyAsync", "stream": "cuStreamCreate", "wait": "cuStreamSynchronize", "event": "cuEventCreate",
        "record": "cuEventRecord", "event_wait": "cuEventSynchronize", "elapsed": "cuEventElapsedTime",
    },
    "rocm": {
        "files": ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"], "device": 10, "pinned": 11,
        "title": "HIP", "plain": "hipMemcpyAsync",
        "init": "hipInit", "count": "hipGetDeviceCount", "name": "hipDeviceGetName", "version": "hipRuntimeGetVersion",
        "alloc": "hipMalloc", "free": "hipFree", "alloc_host": "hipHostMalloc", "free_host": "hipHostFree",
        "copy": "hipMemcpyAsync", "stream": "hipStreamCreateWithFlags", "wait": "hipStreamSynchronize",
        "event": "hipEventCreateWithFlags", "record": "hipEventRecord", "event_wait": "hipEventSynchronize",
        "elapsed": "hipEventElapsedTime",
    },
}
HIP_BY_ADDRESS = 4  # hipMemcpyDefault


def first_of(files):
    """The first of these libraries that can be loaded."""
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError as error:
            why = error
    raise RuntimeError(f"no driver: {why}")


class Driver:
    """A driver through ctypes, with device 0, in CUDA its primary context, current."""

    def __init__(self, vendor, file=None):
        self.words = VENDORS[vendor]
        self.extra = [HIP_BY_ADDRESS] if vendor == "rocm" else []
        self.lib = first_of([file] if file else self.words["files"])
        kinds = [c_int] if self.extra else []
        for what, types in {
            "alloc": [c_void_p, ctypes.c_size_t], "free": [c_uint64],
            "alloc_host": [c_void_p, ctypes.c_size_t, ctypes.c_uint], "free_host": [c_void_p],
            "copy": [c_uint64, c_uint64, ctypes.c_size_t, *kinds, c_void_p],
            "stream": [c_void_p, ctypes.c_uint], "wait": [c_void_p], "event": [c_void_p, ctypes.c_uint],
            "record": [c_void_p, c_void_p], "event_wait": [c_void_p],
            "elapsed": [POINTER(ctypes.c_float), c_void_p, c_void_p],
        }.items():
            if hasattr(self.lib, self.words[what]):
                getattr(self.lib, self.words[what]).argtypes = types
        self.has_clock = hasattr(self.lib, self.words["elapsed"])  # a stand-in has none
        self.is_standin = hasattr(self.lib, "standin_ctl")
        self.call("init", 0)
        count = c_int()
        self.call("count", byref(count))
        if count.value == 0:
            raise RuntimeError("there is no device")
        name = (c_char * 100)(*b"stand-in")
        if not self.is_standin:
            self.call("name", name, 100, 0)
        version = c_int()
        self.call("version", byref(version))
        major, minor = divmod(version.value, 1000 if vendor == "cuda" else 10_000_000)
        minor //= 10 if vendor == "cuda" else 100_000
        self.name = f"{name.value.decode()}, driver for {self.words['title']} {major}.{minor}"
        if vendor == "cuda":
            context = c_void_p()
            self.lib.cuCtxPushCurrent_v2.argtypes = [c_void_p]
            self.checked("cuDevicePrimaryCtxRetain", byref(context), 0)
            self.checked("cuCtxPushCurrent_v2", context)
        stream = c_void_p()
        self.call("stream", byref(stream), 1)
        self.stream = stream
        self.events = [c_void_p(), c_void_p()]
        for event in self.events:
            self.call("event", byref(event), 0)
        self.busy = self.device(2 * BUSY_NBYTES) if self.has_clock else 0

    def call(self, what, *arguments):
        """A function by its purpose; the vendors' names differ."""
        self.checked(self.words[what], *arguments)

    def checked(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def device(self, nbytes):
        out = c_uint64()
        self.call("alloc", byref(out), nbytes)
        return out.value

    def pinned(self, nbytes):
        out = c_void_p()
        self.call("alloc_host", byref(out), nbytes, 0)
        return out.value

    def copy(self, dst, src, nbytes):
        self.call("copy", dst, src, nbytes, *self.extra, self.stream)

    def wait(self):
        self.call("wait", self.stream)

    def seconds(self, call, stream, calls, repeats):
        """Seconds of the device for one call, the median: `calls` of them enqueued on `stream`."""
        if not self.has_clock:
            return seconds(call, self.wait, calls, repeats)
        times, milliseconds = [], ctypes.c_float()
        for repeat in range(repeats + 1):
            self.call("copy", self.busy, self.busy + BUSY_NBYTES, BUSY_NBYTES, *self.extra, stream)
            self.call("record", self.events[0], stream)
            for _ in range(calls):
                call()
            self.call("record", self.events[1], stream)
            self.call("event_wait", self.events[1])
            self.call("elapsed", byref(milliseconds), *self.events)
            if repeat > 0:  # the first is the warm-up
                times.append(milliseconds.value / 1e3 / calls)
        return statistics.median(times)


def tensor(data, device, dtype, shape, strides=None):
    code, bits = ITEM[dtype]
    if strides is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
    n = len(shape)
    made = DLTensor(data, DLDevice(device, 0), n, code, bits, 1, (c_int64 * n)(*shape), (c_int64 * n)(*strides), 0)
    made.kept = (shape, strides)
    return made


def seconds(call, wait, calls, repeats):
    """Seconds for one call, the median: `calls` of them, then one wait."""
    call()
    wait()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


class Bench:
    def __init__(self, arguments):
        self.quick = arguments.quick
        self.library = Library(arguments.library)
        self.vendor = arguments.vendor
        self.driver = Driver(arguments.vendor, arguments.driver)
        self.there, self.pinned = self.driver.words["device"], self.driver.words["pinned"]
        self.repeats = 3 if self.quick else 15
        self.rows = []
        rivals = {"torch": import_torch, "CuPy": import_cupy}
        if self.vendor == "cuda":
            rivals["CCCL"] = lambda: import_cccl(arguments.library.parent.parent / "libcccl.so")
        self.rivals = list(rivals)
        self.peers = {} if arguments.no_peers else {name: peer for name, find in rivals.items() if (peer := find())}
        options = Options()
        options.struct_size = ctypes.sizeof(Options)
        self.blocking = options
        self.enqueue = Options(ctypes.sizeof(Options), ASYNC, 0, 0, None, None, self.driver.stream, self.driver.stream)

    def row(self, case, nbytes, ours, limit, target, peers=None):
        peers = peers or {}
        self.rows.append((case, nbytes, ours, limit, target, peers))
        rate = f"{nbytes / ours / 1e9:9.2f} GB/s" if nbytes else f"{ours * 1e6:9.2f} us  "
        others = "".join(f"  {name} {time / ours:5.2f}x slower" for name, time in peers.items())
        print(f"{case:44} {rate}  {limit / ours:6.2f} of the limit (target {target}){others}", flush=True)

    # ---- Between host and device ---------------------------------------------------------------

    def transfers(self):
        driver, copy = self.driver, self.library.copy
        for mib in (1, 4) if self.quick else (1, 8, 16, 64, 256):
            nbytes = mib << 20
            there = tensor(driver.device(nbytes), self.there, "u8", [nbytes])
            pageable = (c_char * nbytes)()
            ctypes.memset(pageable, 1, nbytes)
            pinned = driver.pinned(nbytes)
            ctypes.memset(pinned, 1, nbytes)
            for kind, address, device, target in (
                ("pinned", pinned, self.pinned, "0.98"), ("pageable", ctypes.addressof(pageable), CPU, "1.2"),
            ):
                here = tensor(address, device, "u8", [nbytes])
                for way, src, dst in (("H2D", here, there), ("D2H", there, here)):
                    calls = 1 if mib > 16 else 8
                    ours = seconds(lambda: copy(src, dst), lambda: None, calls, self.repeats)

                    def plain():
                        driver.copy(dst.data, src.data, nbytes)
                        driver.wait()

                    limit = seconds(plain, lambda: None, calls, self.repeats)
                    self.row(f"{way} {kind} {mib} MiB", nbytes, ours, limit, target)
            driver.call("free", there.data)
            driver.call("free_host", pinned)

    def strided_transfers(self):
        driver, copy = self.driver, self.library.copy
        rows, columns = (64, 128) if self.quick else (4096, 8192)
        there = driver.device(rows * columns * 4)
        pinned = driver.pinned(rows * columns * 4)
        pageable = (c_char * (rows * columns * 4))()
        for name, shape, strides in (
            ("inner step 2", [rows, columns // 2], [columns, 2]), ("row step 2", [rows // 2, columns], [2 * columns, 1]),
            ("transpose", [columns, rows], [1, columns]),
        ):
            nbytes = shape[0] * shape[1] * 4
            limit = seconds(lambda: (driver.copy(there, pinned, nbytes), driver.wait()), lambda: None, 1, self.repeats)
            back = seconds(lambda: (driver.copy(pinned, there, nbytes), driver.wait()), lambda: None, 1, self.repeats)
            for kind, address, device in (("pinned", pinned, self.pinned), ("pageable", ctypes.addressof(pageable), CPU)):
                src = tensor(address, device, "f32", shape, strides)
                dst = tensor(there, self.there, "f32", shape)
                self.check(f"H2D {kind}, {name}", src, dst, rows * columns * 4, nbytes, "f32")
                ours = seconds(lambda: copy(src, dst), lambda: None, 1, self.repeats)
                self.row(f"H2D {kind}, {name}", nbytes, ours, limit, "0.80")
                src = tensor(there, self.there, "f32", shape, strides)
                dst = tensor(address, device, "f32", shape)
                self.check(f"D2H {kind}, {name}", src, dst, rows * columns * 4, nbytes, "f32")
                ours = seconds(lambda: copy(src, dst), lambda: None, 1, self.repeats)
                self.row(f"D2H {kind}, {name}", nbytes, ours, back, "0.80")
        driver.call("free", there)
        driver.call("free_host", pinned)

    # ---- On the device -------------------------------------------------------------------------

    def on_device(self, case, dtype, shape, order, target, step=1):
        """dst = src.permute(order); with step 2 every second element of the last axis of src."""
        driver = self.driver
        item = ITEM[dtype][1] // 8
        if self.quick:
            shape = [max(2, n // 16) for n in shape]
        strides, size = [], step
        for n in reversed(shape):
            strides.insert(0, size)
            size *= n
        nbytes = size * item // step
        permuted = [shape[i] for i in order]
        a, b, c = driver.device(size * item), driver.device(nbytes), driver.device(nbytes)
        src = tensor(a, self.there, dtype, permuted, [strides[i] for i in order])
        dst = tensor(b, self.there, dtype, permuted)
        self.check(case, src, dst, size * item, nbytes, dtype)
        calls = 2 if self.quick else 20
        ours = driver.seconds(lambda: self.library.copy(src, dst, self.enqueue), driver.stream, calls, self.repeats)
        limit = driver.seconds(lambda: driver.copy(c, b, nbytes), driver.stream, calls, self.repeats)
        peers = {name: peer(driver, dtype, shape, order, step, calls, self.repeats) for name, peer in self.peers.items()}
        self.row(case, 2 * nbytes, ours, limit, target, peers)
        for address in (a, b, c):
            driver.call("free", address)

    def check(self, case, src, dst, src_nbytes, nbytes, dtype):
        """Random bytes to the device, our copy, back; compared with NumPy. Driver copies take any
        address."""
        try:
            import numpy
        except ImportError:
            print("not checked: NumPy is not installed")
            return
        kind = {"f32": "u4", "f16": "u2", "u8": "u1", "f64": "u8"}[dtype]
        seed = numpy.random.default_rng(1).integers(0, 255, src_nbytes, dtype="u1").view(kind)
        out = numpy.zeros(nbytes // seed.itemsize, kind)
        driver = self.driver
        driver.copy(src.data, seed.ctypes.data, src_nbytes)
        driver.copy(dst.data, out.ctypes.data, nbytes)
        driver.wait()
        self.library.copy(src, dst)
        driver.copy(out.ctypes.data, dst.data, nbytes)
        driver.wait()
        shape, strides = src.kept
        strides = [seed.itemsize * stride for stride in strides]
        expected = numpy.lib.stride_tricks.as_strided(seed, shape, strides)
        if not (out.reshape(shape) == expected).all():
            raise RuntimeError(f"{case}: the copy is wrong")

    def permutations(self):
        cases = [
            ("transpose f32 4096^2", "f32", [4096, 4096], (1, 0)), ("transpose f32 1024^2", "f32", [1024, 1024], (1, 0)),
            ("transpose f32 4095x4097", "f32", [4095, 4097], (1, 0)), ("transpose f16 8192x4096", "f16", [8192, 4096], (1, 0)),
            ("transpose f16 8191x4097", "f16", [8191, 4097], (1, 0)), ("transpose u8 8192^2", "u8", [8192, 8192], (1, 0)),
            ("transpose u8 8191x8193", "u8", [8191, 8193], (1, 0)), ("transpose f64 4096^2", "f64", [4096, 4096], (1, 0)),
            ("transpose f64 4095x4097", "f64", [4095, 4097], (1, 0)),
            ("NCHW to NHWC f32 32x3x224x224", "f32", [32, 3, 224, 224], (0, 2, 3, 1)),
            ("NHWC to NCHW f32 32x224x224x3", "f32", [32, 224, 224, 3], (0, 3, 1, 2)),
            ("NCHW to NHWC u8 128x3x224x224", "u8", [128, 3, 224, 224], (0, 2, 3, 1)),
            ("NHWC to NCHW u8 128x224x224x3", "u8", [128, 224, 224, 3], (0, 3, 1, 2)),
            ("NHWC to NCHW f16 64x224x224x3", "f16", [64, 224, 224, 3], (0, 3, 1, 2)),
            ("NHWC to NCHW u8 128x224x224x4", "u8", [128, 224, 224, 4], (0, 3, 1, 2)),
            ("NCHW to NHWC f16 64x64x56x56", "f16", [64, 64, 56, 56], (0, 2, 3, 1)),
            ("reversal of 5 axes f32", "f32", [32, 24, 16, 24, 32], (4, 3, 2, 1, 0)),
            ("(0,2,1,3) f32 8x16x512x64", "f32", [8, 16, 512, 64], (0, 2, 1, 3)),
            ("(0,2,1,3) u8 8x16x512x64", "u8", [8, 16, 512, 64], (0, 2, 1, 3)),
        ]
        for case, dtype, shape, order in cases:
            self.on_device(f"D2D {case}", dtype, shape, order, "0.85")
        self.on_device("D2D inner step 2 f32 4096x8192", "f32", [4096, 4096], (0, 1), "-", step=2)

    def dense(self):
        for mib in (1, 4) if self.quick else (1, 64, 1024):
            self.on_device(f"D2D contiguous {mib} MiB", "u8", [mib << 20], (0,), "0.95")

    def small(self):
        driver = self.driver
        a, b = driver.device(4096), driver.device(4096)
        src, dst = tensor(a, self.there, "u8", [4096]), tensor(b, self.there, "u8", [4096])
        calls = 50 if self.quick else 2000
        ours = seconds(lambda: self.library.copy(src, dst, self.enqueue), driver.wait, calls, self.repeats)
        limit = seconds(lambda: driver.copy(b, a, 4096), driver.wait, calls, self.repeats)
        self.row("D2D 4 KiB async, per call (Python's ctypes in both)", 0, ours, limit, "0.5")
        driver.call("free", a)
        driver.call("free", b)

    def batches(self):
        """64 small tensors, by the clock: one call, a call for each, and the driver's call for each."""
        driver, library, n, nbytes = self.driver, self.library, 64, 4096
        for kind, room, device, free in (
            ("D2D", driver.device, self.there, "free"), ("H2D pinned", driver.pinned, self.pinned, "free_host"),
        ):
            a, b = room(n * nbytes), driver.device(n * nbytes)
            src = [tensor(a + i * nbytes, device, "u8", [nbytes]) for i in range(n)]
            # In another order, so that neighbours do not become one copy.
            dst = [tensor(b + (i * 5 % n) * nbytes, self.there, "u8", [nbytes]) for i in range(n)]
            together = library.batch(src, dst)
            self.check_batch(kind, src, dst, together)
            calls = 3 if self.quick else 200

            def each(copy):
                for one, other in zip(src, dst):
                    copy(one, other)

            limit = seconds(lambda: each(lambda x, y: driver.copy(y.data, x.data, nbytes)), driver.wait, calls, self.repeats)
            apart = seconds(lambda: each(lambda x, y: library.copy(x, y, self.enqueue)), driver.wait, calls, self.repeats)
            ours = seconds(lambda: together(self.enqueue), driver.wait, calls, self.repeats)
            torch = getattr(self.peers.get("torch"), "foreach", None) if kind == "D2D" else None
            peers = {"torch": torch(n, nbytes, calls, self.repeats)} if torch else {}
            self.row(f"{kind} 64 x 4 KiB async, one batch (Python's ctypes)", 0, ours, limit, "-", peers)
            self.row(f"{kind} 64 x 4 KiB async, pair by pair (Python's ctypes)", 0, apart, limit, "-")
            driver.call(free, a)
            driver.call("free", b)

    def check_batch(self, kind, src, dst, together):
        try:
            import numpy
        except ImportError:
            print("not checked: NumPy is not installed")
            return
        driver, seed = self.driver, numpy.random.default_rng(2)
        for one, other in zip(src, dst):
            nbytes = one.kept[0][0]
            bytes_of, out = seed.integers(0, 255, nbytes, dtype="u1"), numpy.zeros(nbytes, "u1")
            one.expected = bytes_of
            driver.copy(one.data, bytes_of.ctypes.data, nbytes)
            driver.copy(other.data, out.ctypes.data, nbytes)
            driver.wait()
        together(self.blocking)
        for one, other in zip(src, dst):
            out = numpy.zeros_like(one.expected)
            driver.copy(out.ctypes.data, other.data, out.size)
            driver.wait()
            if not (out == one.expected).all():
                raise RuntimeError(f"{kind}: the batch is wrong")

    def write(self):
        """The data file of this card."""
        card, driver = self.driver.name.split(", driver for ")
        rows = []
        for case, nbytes, ours, limit, target, peers in self.rows:
            rate = round(nbytes / ours / 1e9, 1) if nbytes else round(ours * 1e6, 2)
            rows.append({
                "case": case, "ours": rate, "unit": "GB/s" if nbytes else "us", "limit": round(limit / ours, 2),
                "target": None if target == "-" else float(target),
                **{name: round(peers[name] / ours, 2) if name in peers else None for name in self.rivals},
            })
        machine = {"card": card, "driver": driver, "date": time.strftime("%Y-%m-%d", time.gmtime())}
        name = "-".join(re.findall("[a-z0-9]+", card.lower()))
        file = ROOT / "benches/results/gpu" / f"{name}.json"
        file.write_text(page.as_json({"machine": machine, "rows": rows}))
        print(f"written: {file.relative_to(ROOT)}")


def import_torch():
    try:
        import torch

        torch.zeros(1, device="cuda")
    except Exception as error:  # noqa: BLE001
        print(f"not run: torch ({type(error).__name__}: {error})")
        return None
    dtypes = {"f32": torch.float32, "f16": torch.float16, "u8": torch.uint8, "f64": torch.float64}

    def measure(driver, dtype, shape, order, step, calls, repeats):
        full = [*shape[:-1], shape[-1] * step]
        src = torch.randint(0, 100, full, device="cuda", dtype=torch.int8).to(dtypes[dtype])[..., ::step]
        src = src.permute(order)
        dst = torch.empty(src.shape, dtype=dtypes[dtype], device="cuda")
        torch.cuda.synchronize()
        return driver.seconds(lambda: dst.copy_(src), torch.cuda.current_stream().cuda_stream, calls, repeats)

    def foreach(n, nbytes, calls, repeats):
        src = [torch.zeros(nbytes, dtype=torch.uint8, device="cuda") for _ in range(n)]
        dst = [torch.empty_like(one) for one in src]
        return seconds(lambda: torch._foreach_copy_(dst, src), torch.cuda.synchronize, calls, repeats)

    measure.foreach = foreach
    return measure


def import_cupy():
    try:
        import cupy

        cupy.zeros(1)
    except Exception as error:  # noqa: BLE001
        print(f"not run: CuPy ({type(error).__name__}: {error})")
        return None

    def measure(driver, dtype, shape, order, step, calls, repeats):
        kind = {"f32": "f4", "f16": "f2", "u8": "u1", "f64": "f8"}[dtype]
        full = [*shape[:-1], shape[-1] * step]
        src = cupy.random.randint(0, 100, full, "i4").astype(kind)[..., ::step].transpose(order)
        dst = cupy.empty(src.shape, kind)
        stream = cupy.cuda.get_current_stream()
        stream.synchronize()
        return driver.seconds(lambda: cupy.copyto(dst, src), stream.ptr, calls, repeats)

    return measure


def import_cccl(file):
    """cub::DeviceCopy over mdspans, if benches/cccl.cu is compiled; unsupported cases have no
    figure."""
    try:
        lib = ctypes.CDLL(str(file))
    except OSError as error:
        print(f"not run: CCCL ({error})")
        return None
    lib.cccl_copy.argtypes = [c_int, c_int, c_void_p, POINTER(c_int64), POINTER(c_int64), c_void_p, c_void_p]

    def measure(driver, dtype, shape, order, step, calls, repeats):
        item, strides, size = ITEM[dtype][1] // 8, [], step
        for n in reversed(shape):
            strides.insert(0, size)
            size *= n
        n = len(shape)
        shape = (c_int64 * n)(*(shape[i] for i in order))
        strides = (c_int64 * n)(*(strides[i] for i in order))
        src, dst = driver.device(size * item), driver.device(size * item // step)

        def copy():
            if code := lib.cccl_copy(item, n, src, shape, strides, dst, driver.stream):
                raise RuntimeError(f"cccl_copy: {code}")

        time_of = driver.seconds(copy, driver.stream, calls, repeats)
        driver.call("free", src)
        driver.call("free", dst)
        return time_of

    return measure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--vendor", default="cuda", choices=VENDORS)
    parser.add_argument("--driver", help="in place of the vendor's own")
    parser.add_argument("--only", nargs="+", help="parts, such as permutations; nothing is written")
    parser.add_argument("--library", type=Path)
    arguments = parser.parse_args()
    arguments.library = arguments.library or ROOT / f"target/{arguments.vendor}/lib/libdlpack_rs.so"
    bench = Bench(arguments)
    print(bench.driver.name)
    parts = (bench.transfers, bench.dense, bench.permutations, bench.strided_transfers, bench.small, bench.batches)
    for part in parts:
        if not arguments.only or part.__name__ in arguments.only:
            part()
    if bench.driver.is_standin:
        print("not written: these are figures of a stand-in, and mean nothing")
    elif not arguments.quick and not arguments.only:
        bench.write()
    return 0


if __name__ == "__main__":
    assert struct.calcsize("P") == 8
    sys.exit(main())
