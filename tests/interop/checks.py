"""The checks of every system. Each check gets the system's module and returns its observation.

A check returns the words for the matrix, or raises: Refused where the system rejects a tensor,
Wrong where a promise is broken, Skip where the system lacks the feature.
"""

import ctypes
import gc
import itertools

import numpy as np

from ours import (Capsule, Counted, Facts, Made, capsules, dtype_of, facts,
                  of_array, take)  # first: it sets the path to dlpack_rs

from dlpack_rs import inspect, prepare
from dlpack_rs.consumers import BREAKS, CONSUMERS, COPIES, REFUSES, TAKES


class Wrong(Exception):
    """A promise of DLPack or of this library is broken."""


class Refused(Exception):
    """The system rejects this tensor with an error."""


class Skip(Exception):
    """The system lacks the feature."""


def must(condition, what):
    if not condition:
        raise Wrong(what)


def capsuled(system, x):
    """What has their tensor's __dlpack__."""
    return getattr(system, "exporter", lambda x: x)(x)


def address_of(system, x, unknown=None):
    return getattr(system, "address", lambda _: unknown)(x)


MATRIX = np.arange(24, dtype=np.float32).reshape(4, 6)
ROW_MAJOR = {"shape": (4, 6), "strides": (6, 1)}
# The elements that a check sends, and how they lie.
LAYOUTS = {
    "import transposed": (MATRIX.T, {"shape": (6, 4), "strides": (1, 6)}),
    "import reversed": (MATRIX[::-1], {"shape": (4, 6), "strides": (-6, 1), "first": 72}),
    "import gapped": (MATRIX[:, ::2], {"shape": (4, 3), "strides": (6, 2)}),
    "import broadcast": (np.broadcast_to(MATRIX[0], (3, 6)), {"shape": (3, 6), "strides": (0, 1)}),
    "import byte_offset": (MATRIX, {**ROW_MAJOR, "byte_offset": 256}),
    # One that is not folded into data, as other libraries export it.
    "import raw offset": (MATRIX, {**ROW_MAJOR, "byte_offset": 256, "raw": True}),
    "import unaligned": (MATRIX, {**ROW_MAJOR, "misaligned": 4}),
}


# --- theirs -> ours ---------------------------------------------------------------------------


def theirs(system, make, *arguments):
    """(their tensor, its capsule's facts) where the system has such a tensor."""
    function = getattr(system, make, None)
    if function is None:
        raise Skip
    return function(*arguments)


def exported(system, x, expected):
    """Imports their tensor, whose bytes must match. Returns (facts, our tensor)."""
    capsule = capsules.request(capsuled(system, x))
    seen = Facts(capsule)
    tensor = take(Capsule(capsule, seen.device))
    ours = facts(tensor)
    if expected.size:
        must(ours.address == seen.address, "a copy was made")
        must(seen.address == address_of(system, x, seen.address),
             "the capsule shows other memory than the framework")
    must(ours.shape == expected.shape, f"shape {ours.shape}")
    must(np.array_equal(as_numpy(tensor), expected, equal_nan=expected.dtype.kind in "fc"),
         "values differ")
    return seen, ours, tensor


def as_numpy(tensor):
    """The values, read from memory by strides alone; devices of a CPU runtime are readable too."""
    seen = facts(tensor)
    code, bits, _ = seen.dtype
    dtype = np.dtype("?" if code == 6 else f"{ {0: 'i', 1: 'u', 2: 'f', 5: 'c'}[code] }{bits // 8}")
    if 0 in seen.shape:
        return np.empty(seen.shape, dtype)
    reach = [(extent - 1) * stride for extent, stride in zip(seen.shape, seen.strides)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    room = ctypes.string_at(seen.address + low * dtype.itemsize, (high - low + 1) * dtype.itemsize)
    return np.ndarray(seen.shape, dtype, room, -low * dtype.itemsize,
                      [stride * dtype.itemsize for stride in seen.strides])


def export(system):
    seen, ours, tensor = exported(system, system.make(MATRIX), MATRIX)
    return seen.protocol


def export_direct(system):
    """Passes the object to from_dlpack: the exchange API where the type has one."""
    x = system.make(MATRIX)
    if not hasattr(x, "__dlpack__"):
        raise Skip
    tensor = take(x)
    must(np.array_equal(as_numpy(tensor), MATRIX), "values differ")
    if hasattr(system, "address"):
        must(facts(tensor).address == system.address(x), "a copy was made")
    return "exchange API" if hasattr(type(x), "__dlpack_c_exchange_api__") else "__dlpack__"


def export_and_back(system):
    """Exports their tensor from ours back to them: the same memory, or the reason why not."""
    x = system.make(MATRIX)
    tensor = take(capsuled(system, x))
    try:
        back = system.take(tensor)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    must(np.array_equal(system.values(back), MATRIX), "values differ")
    same = hasattr(system, "address") and system.address(x) == system.address(back)
    return "zero-copy" if same else "copied by the peer"


def export_copy(system):
    """copy=True returns other memory, flagged as a copy; copy=False returns theirs."""
    x = system.make(MATRIX)
    x = capsuled(system, x)
    theirs = Facts(capsules.request(x)).address
    shared, copied = take(x, copy=False), take(x, copy=True)
    must(copied.flags == 2, f"a copy has flags {copied.flags}")  # until it is shared
    must(facts(copied).address != theirs == facts(shared).address, "copied or not the wrong way")
    must(np.array_equal(as_numpy(copied), MATRIX), "values differ")
    return "works"


def export_to_host(system):
    """device='cpu' of a tensor on their device: a copy, which may not be rejected."""
    x = system.make(MATRIX)
    for copy in (None, True):
        tensor = take(x, device="cpu", copy=copy)
        must(facts(tensor).device == (1, 0), f"it is on {tensor.device}")
        must(facts(tensor).address != system.address(x), "it is still their memory")
        must(np.array_equal(np.from_dlpack(tensor), MATRIX), "values differ")
    try:
        take(x, device="cpu", copy=False)
    except BufferError:
        return "works"
    raise Wrong("copied although copy=False")


def export_of(array):
    def check(system):
        exported(system, system.make(array), array)
        return "works"
    return check


def export_view(name, expected):
    """A view that their hook of that name makes: with its strides, or a copy without them."""
    def check(system):
        _, ours, _ = exported(system, theirs(system, name, system.make(MATRIX)), expected)
        dense = tuple(stride // 4 for stride in np.ascontiguousarray(expected).strides)
        return "works" if ours.strides != dense else "copied by the peer"
    return check


def export_read_only(system):
    x = theirs(system, "frozen", MATRIX)
    seen, ours, _ = exported(system, x, MATRIX)
    if not seen.flags & 1:
        return "not flagged by the peer" if seen.protocol != "legacy" else "legacy: read-only by us"
    must(ours.flags & 1, "READ_ONLY was lost")
    return "kept"


def export_deleter(system):
    """Their deleter runs once: after the last of 3 references, and for a capsule never consumed."""
    x = system.make(MATRIX)
    x = capsuled(system, x)
    counted = Counted(capsules.request(x))
    tensor = take(Capsule(counted.capsule))
    copies = [tensor.__dlpack__(max_version=(1, 3)) for _ in range(2)]
    del x, tensor
    gc.collect()
    must(counted.calls == 0, "freed while two capsules still have it")
    del copies
    counted.capsule = None
    gc.collect()
    must(counted.calls == 1, f"their deleter ran {counted.calls} times")
    return "once"


# --- ours -> theirs ---------------------------------------------------------------------------


def imported(system, made, expected, zero_copy=True):
    """Exports a tensor of ours to them. Returns (their tensor, whether it has our memory)."""
    x = offer(system, made)
    if hasattr(system, "values"):
        must(np.array_equal(system.values(x), expected), "they have other values")
    return x, expected.size and address_of(system, x) == made.address


verdict = None  # the verdict of dlpack_rs.consumers on the last tensor exported


def offer(system, made):
    """Their from_dlpack; a rejection must leave our tensor unchanged, and freed once in the end."""
    global verdict
    verdict = foretold(system.__name__.rpartition(".")[2], made.tensor)
    try:
        return system.take(made.tensor)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip() or 'no message'}"
    must(made.times_freed() == 0, f"they freed what we still hold, after {reason}")
    again = facts(made.tensor)
    must(again.address == made.address or 0 in again.shape, "the tensor changed")
    del again
    made.tensor = None
    must(made.times_freed() == 1, f"freed {made.times_freed()} times after {reason}")
    raise Refused(reason)


def foretold(name, tensor):
    """(verdict, reason) of the table of consumers; None for a system that it lacks."""
    known = [found for found in inspect(tensor).consumers if found[0].name == name]
    return known[0][1:] if known else None


def must_be_foretold(check, result, text):
    """Compares the table of consumers with the outcome."""
    if verdict is None or check in ("import empty", "import deleter"):
        return  # a copy of an empty tensor is not observable
    happened = {"refused": REFUSES, "fault": BREAKS}.get(result, TAKES)
    if result == "ok" and (text.startswith("copied") or text.startswith("comes back")):
        happened = COPIES
    must(happened == verdict[0], f"dlpack_rs.consumers foretells {verdict}, not {happened}: {text}")


def import_(system):
    made = of_array(MATRIX)
    x, same = imported(system, made, MATRIX)
    if not same:
        return "copied by the peer"
    if hasattr(system, "values"):
        made.write((MATRIX * 2).tobytes())
        must(np.array_equal(system.values(x), MATRIX * 2), "our write is not seen")
    return "zero-copy"


def layout(name):
    def check(system):
        expected, options = LAYOUTS[name]
        made = Made(MATRIX.tobytes(), dtype="float32", **options)
        _, same = imported(system, made, expected)
        return "zero-copy" if same else "copied by the peer"
    return check


def import_0d(system):
    value = np.array(2.5, np.float32)
    _, same = imported(system, of_array(value), value)
    return "zero-copy" if same else "copied by the peer"


def import_empty(system):
    made = of_array(np.zeros((0, 3), np.float32))
    imported(system, made, np.zeros((0, 3), np.float32))
    return "works"


def import_read_only(system):
    made = of_array(MATRIX, read_only=True)
    x, same = imported(system, made, MATRIX)
    if not same:
        return "copied by the peer"
    writable = getattr(system, "writable", None)
    if writable is None:
        return "zero-copy"
    return "ignored: writable" if writable(x) else "kept"


def import_deleter(system):
    """Our deleter runs once: after their release, and not while we still hold the tensor."""
    made = of_array(MATRIX)
    x = offer(system, made)
    same = address_of(system, x) == made.address
    made.tensor = None
    if same:
        must(made.times_freed() == 0, "freed under their tensor")
        if hasattr(system, "values"):
            must(np.array_equal(system.values(x), MATRIX), "the memory changed")
    del x
    if hasattr(system, "settle"):
        system.settle()
    must(made.times_freed() == 1, f"our deleter ran {made.times_freed()} times")
    return "once"


def prepared(system):
    """What dlpack_rs.prepare returns is taken, and the line that it says is true."""
    name, data = system.__name__.rpartition(".")[2], MATRIX.tobytes()
    if name not in [consumer.name for consumer in CONSUMERS]:
        raise Skip
    forms = [(MATRIX, {"shape": (4, 6)}), *(LAYOUTS[f"import {layout}"] for layout in (
        "unaligned", "byte_offset", "transposed", "reversed", "gapped"))]
    for (expected, form), read_only, drop in itertools.product(forms, (False, True), (False, True)):
        made = Made(data, dtype="float32", read_only=read_only, **form)
        try:
            tensor, how = prepare(made.tensor, name, drop_read_only=drop)
        except BufferError as error:
            raise Refused(f"BufferError: {error}") from None
        address = facts(tensor).address
        x = system.take(tensor)
        if hasattr(system, "values"):
            must(np.array_equal(system.values(x), expected), f"other values, {how}")
        must(how.startswith(f"{name}: shared") == (address == made.address), how)
        theirs = address_of(system, x)
        if theirs is not None:
            must((theirs == address) != (f"; {name} copies it" in how), how)
        if read_only and address == made.address:
            writes = getattr(system, "writable", lambda _: False)(x) and theirs == address
            must(drop == ("READ_ONLY dropped" in how) or tensor.readonly, how)
            must(drop or not writes, f"may write, {how}")
        del x, tensor
    return "as it says"


# --- dtypes -----------------------------------------------------------------------------------

kept = []


def keep_some(system):
    """Tensors in both directions that are alive when the interpreter ends."""
    try:
        made = of_array(MATRIX)
        kept.extend([made, system.take(made.tensor), made.tensor.__dlpack__()])
        x = system.make(MATRIX)
        kept.append(take(capsuled(system, x)))
    except Exception:
        pass  # rejections were checked before


NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SMALL = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
         "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
         "float4_e2m1fn"]
DTYPES = ["bool", *NUMBERS, "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
          *SMALL, "float4_e2m1fnx2", "int4", "uint4"]


def dtype(system, name):
    """A round trip: the same type, the same bytes, the same memory where they do not copy."""
    _, bits, lanes = dtype_of(name)
    count = 8 * bits * lanes // 8
    pattern = bytes(n % 2 if name == "bool" else n * 37 % 120 for n in range(count))
    made = Made(pattern, (8,), name)
    x = offer(system, made)
    must(made.bytes() == pattern, "the bytes changed")
    back_from = capsuled(system, x)
    if not hasattr(back_from, "__dlpack__"):
        return "taken"
    seen = Facts(capsules.request(back_from))
    if seen.dtype != dtype_of(name):
        return f"comes back as {seen.dtype}"
    back = take(back_from)
    must(facts(back).dtype == dtype_of(name), "our import changes the type")
    clone = back.copy()
    must(ctypes.string_at(clone.data_ptr, count) == pattern, "the bytes differ")
    return "zero-copy" if seen.address == made.address else "copied by the peer"


CHECKS = {
    "export": export, "export direct": export_direct, "export and back": export_and_back,
    "export copy": export_copy,
    "export 0-d": export_of(np.array(2.5, np.float32)),
    "export empty": export_of(np.zeros((0, 3), np.float32)),
    "export transposed": export_view("transposed", MATRIX.T),
    "export reversed": export_view("reversed", MATRIX[::-1]), "export read-only": export_read_only,
    "export deleter": export_deleter,
    "import": import_, "import 0-d": import_0d, "import empty": import_empty,
    **{name: layout(name) for name in LAYOUTS},
    "import read-only": import_read_only, "import deleter": import_deleter,
    "prepared": prepared,
}
CHECKS |= {f"dtype {name}": (lambda system, name=name: dtype(system, name)) for name in DTYPES}
