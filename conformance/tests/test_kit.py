"""The conformance kit finds faults: libraries with one planted fault each, and those without.

The faulty producer is the kit's Tensor, whose exports are edited; the faulty consumer is written
here, in Python, and correct except for its fault. Nothing is imported but the kit and pytest.
"""

import ast
import ctypes
import enum
import gc
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from math import prod
from pathlib import Path
from xml.etree import ElementTree

import dlpack_conformance as conform
import pytest
from dlpack_conformance import Tensor
from dlpack_conformance import _abi as abi
from dlpack_conformance._libraries import Functions
from dlpack_conformance._numbers import compact
from dlpack_conformance._texts import quoted

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def violated(library, ids=None, seconds=60):
    """Identifiers of the checks that find a violation, with their outcomes."""
    found = {}
    for check in conform.CHECKS.values():
        if ids is None or check.id in ids:
            verdict = conform.judge_forked(library, check, seconds)
            if verdict.counts:
                found[check.id] = verdict.outcome
    return found


# ---- producers


class Ours(conform.Library):
    """Keeps every rule."""

    name = "mini"

    def make(self, tensor):
        return tensor.copy()

    def make_read_only(self, tensor):
        return tensor.copy().read_only()

    def transposed(self, x):
        return x._view(x._start, x.shape[::-1], x.strides[::-1])

    def columns(self, x):
        return part(x, slice(None), slice(None, None, 2))

    def reversed(self, x):
        return part(x, slice(None, None, -1))

    def inner(self, x):
        return part(x, slice(1, None), slice(1, None))

    def rows(self, x):
        return part(x, slice(1, None))

    def broadcast(self, x):
        return x._view(x._start, (2, *x.shape), (0, *x.strides))


def part(x, *slices):
    start, shape, strides = x._start, [], []
    for axis, extent in enumerate(x.shape):
        taken = range(extent)[slices[axis] if axis < len(slices) else slice(None)]
        start += taken.start * x.strides[axis] * x.itemsize
        shape.append(len(taken))
        strides.append(taken.step * x.strides[axis])
    return x._view(start, shape, strides)


class Edited:
    """A Tensor, and an edit of each struct that it exports."""

    edit = staticmethod(lambda export, keywords: None)

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        capsule = self.tensor.__dlpack__(**keywords)  # with a struct of its own
        type(self).edit(managed(capsule), keywords)
        return capsule


def managed(capsule):
    return abi.managed(capsule)


def is_versioned(struct):
    return isinstance(struct, abi.DLManagedTensorVersioned)


def roomy(tensor):
    """A copy amid zeros: an edited export that leads beyond it reads the same each time."""
    if prod(tensor.shape) > 1000:
        return tensor.copy()
    values = tensor.tolist()
    room = Tensor([0] * 64 * len(values) + values + [0] * 64 * len(values),
                  (129, *tensor.shape), dtype=tensor.code)
    start = part(room, slice(64, 65))
    return start._view(start._start, tensor.shape, compact(tensor.shape))


class Producer(Ours):
    """A producer whose exports are edited by one function."""

    def __init__(self, edit):
        self.kind = type("Faulty", (Edited,), {"edit": staticmethod(edit)})

    def make(self, tensor):
        return self.kind(roomy(tensor))

    def make_read_only(self, tensor):
        return self.kind(roomy(tensor).read_only())

    take = take_copy = None


def flags(clear=0, add=0):
    def edit(struct, keywords):
        if is_versioned(struct):
            struct.flags = struct.flags & ~clear | add
    return edit


def member(**members):
    def edit(struct, keywords):
        for name, value in members.items():
            setattr(struct.dl_tensor, name, value)
    return edit


def version(major, minor):
    def edit(struct, keywords):
        if is_versioned(struct):
            struct.version = abi.DLPackVersion(major, minor)
    return edit


def bytes_as_strides(struct, keywords):
    tensor = struct.dl_tensor
    for axis in range(tensor.ndim):
        tensor.strides[axis] *= tensor.dtype.bits // 8


def other_device(struct, keywords):
    struct.dl_tensor.device = abi.DLDevice(1, 1)


def other_dtype(struct, keywords):
    if struct.dl_tensor.dtype.code == 6:
        struct.dl_tensor.dtype.code = 1


def late(struct, keywords):
    struct.dl_tensor.data = (struct.dl_tensor.data or 0) + 4


def no_deleter(struct, keywords):
    struct.deleter = None


def needs_the_lock(struct, keywords):
    """A function that ends the process without the lock; it takes no argument, and gets one."""
    struct.deleter = ctypes.cast(ctypes.pythonapi.PyThreadState_Get, ctypes.c_void_p)


def huge(struct, keywords):
    if struct.dl_tensor.ndim:
        struct.dl_tensor.shape[0] = 300_000_000


ONE_PLACE = (ctypes.c_int64 * 8)()


def in_one_place(struct, keywords):
    tensor = struct.dl_tensor
    for name, at in (("shape", 0), ("strides", 4)):
        for axis in range(tensor.ndim):
            ONE_PLACE[at + axis] = getattr(tensor, name)[axis]
        setattr(tensor, name, ctypes.cast(ctypes.byref(ONE_PLACE, 8 * at),
                                          ctypes.POINTER(ctypes.c_int64)))


PRODUCERS = {
    "one shape for all exports": (in_one_place, {"P35"}),
    "copies without IS_COPIED": (flags(clear=2), {"P15"}),
    "read-only data without READ_ONLY": (flags(clear=1), {"P19"}),
    "an unknown flag": (flags(add=1 << 9), {"P12"}),
    "shared data with IS_COPIED": (flags(add=2), {"P13"}),
    "a version that there is not": (version(0, 8), {"P10"}),
    "a major version that was not asked for": (version(2, 0), {"P07", "P10"}),
    "strides NULL": (member(strides=None), {"P11"}),
    "strides in bytes": (bytes_as_strides, {"P41", "P63"}),
    "another device": (other_device, {"P03"}),
    "bool as uint8": (other_dtype, {"P52"}),
    "the second element first": (late, {"P41", "P44"}),
    "a byte_offset that is counted twice": (member(byte_offset=4), {"P41"}),
    "a dimension too few": (member(ndim=1), {"P41", "P44"}),
    "data NULL": (member(data=None), {"P41"}),
    "ndim of -1": (member(ndim=-1), {"P41"}),
    "shape NULL": (member(shape=None), {"P41"}),
    "a huge shape": (huge, {"P41"}),
    "a byte_offset of -4": (member(byte_offset=(1 << 64) - 4), {"P41", "P44"}),
    "no deleter": (no_deleter, {"P32"}),
    "a deleter that needs the lock": (needs_the_lock, {"P36", "P37"}),
    "a legacy one that needs it": (
        lambda struct, keywords: is_versioned(struct) or needs_the_lock(struct, keywords), {"P36"}),
}


# Lifetimes, which none of these faults touches, and what needs a good export, as most checks do.
LIFETIMES = {"P30", "P33", "P34", "P35", "P36", "P37", "P39"}
WITNESSES = LIFETIMES | {"P02", "P03", "P16", "P21", "P42", "P58", "P65"}


@pytest.mark.parametrize("name", PRODUCERS)
def test_faulty_producers(name):
    edit, expected = PRODUCERS[name]
    found = violated(Producer(edit), expected | WITNESSES)
    assert set(found) == expected, found


class Borrower(Ours):
    """A producer whose memory is overwritten when the object goes, whoever has it."""

    def __init__(self, borrows):
        class Borrowed(Edited):
            def __del__(self):
                if borrows:
                    ctypes.memset(self.tensor._start, 0, 48)

        self.kind = Borrowed

    make = Producer.make
    take = take_copy = make_read_only = None


@pytest.mark.parametrize("borrows, expected", [(True, {"P34", "P35"}), (False, set())])
def test_producers_that_keep_no_memory(borrows, expected):
    assert set(violated(Borrower(borrows), {"P33", "P34", "P35"})) == expected


def test_a_correct_producer():
    assert violated(Producer(lambda struct, keywords: None)) == {}


class Keywords(Ours):
    """A producer whose `__dlpack__` handles its keywords in one wrong way."""

    def __init__(self, change):
        class Changed(Edited):
            def __dlpack__(self, **keywords):
                return change(self.tensor, keywords)

        self.kind = Changed

    make, make_read_only = Producer.make, Producer.make_read_only
    take = take_copy = None


def always_versioned(tensor, keywords):
    return tensor.__dlpack__(**{**keywords, "max_version": (1, 3)})


def always_legacy(tensor, keywords):
    keywords.pop("max_version", None)
    return tensor.__dlpack__(**keywords)


def no_keywords(tensor, keywords):
    if keywords:
        raise TypeError("__dlpack__() takes no keyword arguments")
    return tensor.__dlpack__()


def never_copies(tensor, keywords):
    return tensor.__dlpack__(**{**keywords, "copy": None})


def always_copies(tensor, keywords):
    return tensor.__dlpack__(**{**keywords, "copy": True})


def any_device(tensor, keywords):
    keywords.pop("dl_device", None)
    return tensor.__dlpack__(**keywords)


def any_stream(tensor, keywords):
    keywords.pop("stream", None)
    return tensor.__dlpack__(**keywords)


def any_keyword(tensor, keywords):
    keywords.pop("no_such_keyword", None)
    return tensor.__dlpack__(**keywords)


def no_stream(tensor, keywords):
    if "stream" in keywords:
        raise BufferError("no streams")
    return tensor.__dlpack__(**keywords)


def value_errors(tensor, keywords):
    try:
        return tensor.__dlpack__(**keywords)
    except BufferError as error:
        raise ZeroDivisionError(str(error)) from None


KEPT = []


def keeps(tensor, keywords):
    capsule = tensor.__dlpack__(**keywords)
    KEPT.append(capsule)
    return capsule


def no_none(tensor, keywords):
    if keywords.get("max_version", ()) is None:
        raise TypeError("max_version is None")
    return tensor.__dlpack__(**keywords)


def nothing(tensor, keywords):
    return None


def raises(tensor, keywords):
    raise RuntimeError("no export")


def refuses_read_only(tensor, keywords):
    if tensor.readonly:
        raise BufferError("read-only")
    return tensor.__dlpack__(**keywords)


NAMES = {name: ctypes.create_string_buffer(name) for name in (b"dltensor", b"dltensor_versioned")}


def renamed(name, **fixed):
    """Exports whose capsules have a given name, whatever struct they have."""
    def change(tensor, keywords):
        capsule = tensor.__dlpack__(**{**keywords, **fixed})
        if not fixed or is_versioned(managed(capsule)) or name == b"dltensor_versioned":
            KEPT.append(managed(capsule))
            ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), NAMES[name])
        return capsule
    return change


_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _frees_always(capsule):
    name = _name(capsule)
    kind = (abi.DLManagedTensorVersioned if b"versioned" in ctypes.string_at(name)
            else abi.DLManagedTensor)
    address = _address(capsule, name)
    DELETER(kind.from_address(address).deleter)(address)


def frees_used(tensor, keywords):
    """The capsule's destructor does not look at its name."""
    lent = Tensor.lend(tensor, **keywords)
    capsule = abi.new_capsule(lent.address, abi.capsule_name(lent.capsule))
    lent.capsule = None
    ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), _frees_always)
    return capsule


def dies(tensor, keywords):
    if keywords.get("max_version") == (2, 0):
        os.abort()
    return tensor.__dlpack__(**keywords)


KEYWORDS = {
    "always versioned": (always_versioned, {"P04", "P08"}),
    "always legacy": (always_legacy, {"P06"}),
    "no keywords": (no_keywords, {"P05", "P14", "P21", "P24"}),
    "copy is ignored": (never_copies, {"P15", "P16"}),
    "copy=False copies": (always_copies, {"P18"}),
    "dl_device is ignored": (any_device, {"P22", "P23"}),
    "stream is ignored": (any_stream, {"P25", "P26"}),
    "stream=None is refused": (no_stream, {"P24"}),
    "unknown keywords are taken": (any_keyword, {"P27"}),
    "another exception": (value_errors, {"P22"}),
    "exports are kept for ever": (keeps, {"P31"}),
    "max_version=None is refused": (no_none, {"P05"}),
    "read-only tensors are refused": (refuses_read_only, set()),
    "no capsule": (nothing, {"P41"}),
    "no export": (raises, {"P41"}),
    "a versioned struct named dltensor": (renamed(b"dltensor"), {"P65"}),
    "a legacy struct named dltensor_versioned": (
        renamed(b"dltensor_versioned", max_version=None), {"P65"}),
    "a destructor frees what was taken": (frees_used, {"P33"}),
    "the end of the process": (dies, {"P09"}),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_faulty_keywords(name):
    change, expected = KEYWORDS[name]
    found = violated(Keywords(change), (expected | WITNESSES | {"P19"}) - {"P39"})
    assert set(found) == expected, found


class CPU(enum.IntEnum):
    CPU = 1


DEVICES_SAID = {
    "a list": ([1, 0], {"P02"}),
    "one number": ((1,), {"P02"}),
    "None": (None, {"P02"}),
    "no number": ((1, None), {"P02"}),
    "words": (("cpu", 0), {"P02"}),
    "another device": ((1, 1), {"P03"}),
    "an enumeration": ((CPU.CPU, 0), set()),
}


@pytest.mark.parametrize("name", DEVICES_SAID)
def test_what_is_said_of_the_device(name):
    said, expected = DEVICES_SAID[name]

    class Says(Edited):
        def __dlpack_device__(self):
            return said

    class Devices(Producer):
        def __init__(self):
            self.kind = Says

    assert set(violated(Devices(), WITNESSES | {"P01", "P22"})) == expected


@pytest.mark.parametrize("made", [lambda tensor: None, lambda tensor: tensor.__dlpack__(),
                                  lambda tensor: 1 / 0])
def test_what_is_no_tensor(made):
    found = violated(Functions("none", made), WITNESSES | {"P01", "P41", "X01"})
    assert set(found) == {"P01"}, found


def test_the_end_of_a_process_is_a_crash():
    assert violated(Keywords(dies), {"P09"}) == {"P09": "crash"}


# ---- consumers


DEFERRED, COUNT = [], itertools.count()


class Taken:
    """A tensor that the consumer below imported: shared, and freed with the object."""

    def __init__(self, struct, faults):
        self.struct, self.faults = struct, faults
        tensor = struct.dl_tensor
        self.shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
        if tensor.strides and "ignores strides" not in faults:
            self.strides = tuple(tensor.strides[:tensor.ndim])
        else:
            self.strides, step = (), 1
            for extent in reversed(self.shape):
                self.strides, step = (step, *self.strides), step * extent
        offset = 0 if "ignores byte_offset" in faults else tensor.byte_offset
        if "ignores byte_offset without strides" in faults and not tensor.strides:
            offset = 0
        self.address = (tensor.data or 0) + offset
        self.code, self.bits = tensor.dtype.code, tensor.dtype.bits
        self.read_only = is_versioned(struct) and bool(struct.flags & 1)
        if "counts byte_offset twice" in faults:
            self.address += offset
        if "reads bool as uint8" in faults and self.code == 6:
            self.code = 1
        if "reads manager_ctx" in faults:
            ctypes.string_at(struct.manager_ctx, 1)

    def values(self):
        form = {(0, 8): ctypes.c_int8, (0, 16): ctypes.c_int16, (0, 32): ctypes.c_int32,
                (0, 64): ctypes.c_int64, (1, 8): ctypes.c_uint8, (1, 16): ctypes.c_uint16,
                (1, 32): ctypes.c_uint32, (1, 64): ctypes.c_uint64, (2, 32): ctypes.c_float,
                (2, 64): ctypes.c_double, (6, 8): ctypes.c_bool}[self.code, self.bits]
        found = []
        for number in range(prod(self.shape)):
            place, rest = 0, number
            for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
                place, rest = place + rest % extent * stride, rest // extent
            found.append(form.from_address(self.address + place * self.bits // 8).value)
        return found

    def free(self):
        if self.struct.deleter:
            DELETER(self.struct.deleter)(ctypes.addressof(self.struct))

    def __del__(self):
        if "frees twice" in self.faults:
            self.free()
        if "defers" in self.faults or "forgets to settle" in self.faults:
            DEFERRED.append(self.struct)
        elif "forgets each hundredth" in self.faults and next(COUNT) % 100 == 99:
            pass
        elif "frees early" not in self.faults and "never frees" not in self.faults:
            self.free()


KNOWN = {(0, 8), (0, 16), (0, 32), (0, 64), (1, 8), (1, 16), (1, 32), (1, 64), (2, 32), (2, 64),
         (6, 8)}


class Consumer(conform.Library):
    """A from_dlpack in Python: host memory, shared or rejected."""

    name = "python"
    known = KNOWN

    def __init__(self, *faults):
        self.faults = set(faults)

    def take(self, producer):
        faults = self.faults
        try:
            keywords = {"max_version": (1, 3)}
            if "passes a stream" in faults:
                keywords["stream"] = 1
            if "asks for a version that there is not" in faults:
                keywords["max_version"] = (7, 0)
            if "asks for nothing" in faults:
                keywords = {}
            if "passes stream 0" in faults:
                keywords["stream"] = 0
            if "requests a copy" in faults:
                keywords["copy"] = True
            if "passes an unknown keyword" in faults:
                keywords["dtype"] = None
            if "requests another device" in faults:
                keywords["dl_device"] = (2, 0)
            capsule = producer.__dlpack__(**keywords)
        except TypeError:
            if "asks only once" in faults:
                raise
            capsule = producer.__dlpack__()
        except Exception as error:
            if "hides exceptions" in faults:
                raise BufferError("no tensor") from error
            raise
        if type(capsule).__name__ != "PyCapsule" or abi.managed(capsule) is None:
            raise BufferError("no DLPack capsule")
        struct = abi.managed(capsule)
        try:
            self.check(struct)
        except BufferError:
            if "frees what it refuses" in faults and struct.deleter:
                DELETER(struct.deleter)(ctypes.addressof(struct))
            if "loses what it refuses" in faults:
                ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule),
                                                   USED[is_versioned(struct)])
            raise
        if "returns None" in faults:
            return None
        if "does not rename" not in faults:
            name = USED[is_versioned(struct)]
            ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), name)
        taken = Taken(struct, faults)
        if "frees early" in faults:
            taken.free()
        if "writes the struct" in faults and struct.dl_tensor.ndim:
            struct.dl_tensor.shape[0] += 0
            struct.dl_tensor.byte_offset += 1
            struct.dl_tensor.byte_offset -= 1
            struct.manager_ctx = 7
        return taken

    def check(self, struct):
        """Raises BufferError for unsupported tensors; the capsule then frees them."""
        tensor, faults = struct.dl_tensor, self.faults
        refuse = {
            "takes any version": is_versioned(struct) and struct.version.major != 1,
            "ignores lanes": tensor.dtype.lanes != 1,
            "takes any device": tensor.device.device_type not in (1, 3),
            "takes any dtype": (tensor.dtype.code, tensor.dtype.bits) not in self.known,
            "takes any ndim": not 0 <= tensor.ndim <= 64,
            "takes shape NULL": bool(tensor.ndim > 0 and not tensor.shape),
        }
        for fault, wrong in refuse.items():
            if wrong and fault not in faults:
                raise BufferError(f"refused, or it {fault}")
        shape = tensor.shape[:tensor.ndim] if tensor.ndim > 0 and tensor.shape else []
        if any(extent < 0 for extent in shape):
            if "dies of negative extents" in faults:
                os.abort()
            raise BufferError("a negative extent")
        if prod(shape) > 1 << 40 or (prod(shape) and not tensor.data):
            raise BufferError("too large, or no data")
        strides = tensor.strides[:tensor.ndim] if tensor.strides and tensor.ndim > 0 else []
        if any(abs(stride) > 1 << 40 for stride in strides):
            raise BufferError("a stride that is too large")
        while "hangs on 3 dimensions" in faults and tensor.ndim == 3:
            pass

    def settle(self):
        while DEFERRED and "forgets to settle" not in self.faults:
            struct = DEFERRED.pop()
            DELETER(struct.deleter)(ctypes.addressof(struct))

    def values(self, result):
        return result.values()

    def address(self, result):
        return result.address

    def writable(self, result):
        return "forgets READ_ONLY" in self.faults or not result.read_only

    def rows(self, x):
        raise NotImplementedError


USED = {False: ctypes.c_char_p(b"used_dltensor"), True: ctypes.c_char_p(b"used_dltensor_versioned")}

CONSUMERS = {
    "frees twice": {"C01", "C04"},
    "never frees": {"C01", "C04"},
    "forgets each hundredth": {"C54", "C62"},
    "defers": set(),
    "forgets to settle": {"C01", "C04"},
    "frees what it refuses": {"C10"},
    "loses what it refuses": {"C10"},
    "returns None": {"C01"},
    "reads manager_ctx": {"C01"},
    "requests another device": {"C01"},
    "requests a copy": {"C02"},
    "passes stream 0": {"C08"},
    "passes an unknown keyword": {"C06"},
    "counts byte_offset twice": {"C19", "C20"},
    "reads bool as uint8": {"C33"},
    "frees early": {"C04"},
    "does not rename": {"C03"},
    "ignores strides": {"C25", "C26", "C27", "C28"},
    "ignores byte_offset": {"C19", "C20"},
    "ignores byte_offset without strides": {"C80"},
    "ignores lanes": {"C35"},
    "takes any version": {"C10"},
    "takes any device": {"C43"},
    "takes any dtype": {"C34"},
    "asks only once": {"C07"},
    "asks for nothing": {"C06"},
    "asks for a version that there is not": {"C67"},
    "passes a stream": {"C08"},
    "hides exceptions": {"C48"},
    "forgets READ_ONLY": set(),  # "A consumer [...] should ignore this flag"
    "writes the struct": {"C49"},
    "dies of negative extents": {"C40"},
    "hangs on 3 dimensions": {"C24"},
}


# What most faults do not touch.
CONSUMES = {"C01", "C04", "C10", "C21", "C33", "C34", "C43", "C47", "C51", "C54"}


@pytest.mark.parametrize("fault", CONSUMERS)
def test_faulty_consumers(fault):
    expected = CONSUMERS[fault]
    others = CONSUMES if len(expected) < 3 and "hangs" not in fault else set()
    found = violated(Consumer(fault), expected | others, 1 if "hangs" in fault else 60)
    assert set(found) == expected, found


def test_results_that_cannot_be_read():
    """Those of a consumer that exports nothing, without values() and address(): no violation."""
    library = Functions("python", None, Consumer().take)
    assert violated(library, CONSUMES | {"C02", "C31", "C50"}) == {}


def test_a_correct_consumer():
    assert violated(Consumer(), {i for i in conform.CHECKS if i.startswith("C")}) == {}


def test_checks_that_crash_and_checks_that_hang():
    assert violated(Consumer("dies of negative extents"), {"C40"}) == {"C40": "crash"}
    assert violated(Consumer("hangs on 3 dimensions"), {"C24"}, 1) == {"C24": "hang"}


# ---- re-exports


class Both(Ours, Consumer):
    """Takes tensors, shares them, and exports them again."""

    def take(self, producer):
        return self.shared(super().take(producer))

    def shared(self, taken):
        found = Tensor([], (0,))
        found.__dict__.update(_memory=taken, _start=taken.address, shape=taken.shape,
                              strides=taken.strides, code=(taken.code, taken.bits, 1),
                              readonly=taken.read_only)
        return found

    def values(self, result):
        return result.tolist()

    def address(self, result):
        return result._start

    def writable(self, result):
        return not result.readonly

    def settle(self):
        Tensor.sweep()


def test_a_correct_library_on_both_sides():
    assert violated(Both()) == {}


class Again(Both):
    """Re-exports its import, edited."""

    def __init__(self, edit):
        super().__init__()
        self.kind = type("Faulty", (Edited,), {"edit": staticmethod(edit)})

    known = KNOWN | {(17, 4)}
    values, writable = conform.Library.values, conform.Library.writable

    def take(self, producer):
        return self.kind(super().take(producer))

    def address(self, result):
        return result.tensor._start


@pytest.mark.parametrize("edit, check", [(flags(clear=1), "R01"), (flags(clear=4), "R13"),
                                         (other_dtype, "R81")])
def test_what_a_re_export_does_not_say_is_detected(edit, check):
    assert violated(Again(edit), {"R01", "R02", "R04", check}) == {check: "fail"}

# ---- the exchange table


def exchanging(**broken):
    """A library whose tensors have an exchange table; `broken` members of what it lends."""
    out_type = ctypes.POINTER(ctypes.c_void_p)

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, out_type)
    def export(x, out):
        lent = x.lend(max_version=(1, 3))
        abi.rename(lent.capsule, b"used_dltensor_versioned")
        KEPT.append(lent)
        out[0] = lent.address
        return 0

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(abi.DLTensor))
    def borrow(x, out):
        KEPT.append(x.lend(max_version=(1, 3)))
        out[0] = KEPT[-1].struct.dl_tensor
        for name, value in broken.items():
            setattr(out[0], name, value)
        return 0

    table = abi.DLPackExchangeAPI(abi.DLPackExchangeAPIHeader(abi.DLPackVersion(1, 3)))
    table.managed_tensor_from_py_object_no_sync = ctypes.cast(export, ctypes.c_void_p)
    table.dltensor_from_py_object_no_sync = ctypes.cast(borrow, ctypes.c_void_p)
    KEPT.extend((table, export, borrow))
    kind = type("Exchanged", (Tensor,), {"__dlpack_c_exchange_api__": abi.new_capsule(
        ctypes.addressof(table), b"dlpack_exchange_api")})

    class Library(Ours):
        def make(self, tensor):
            x = tensor.copy()
            x.__class__ = kind
            return x

    return Library()


@pytest.mark.parametrize("broken, expected", [
    ({}, set()), ({"strides": None}, {"X06"}), ({"byte_offset": 4}, {"X06"}),
    ({"dtype": abi.DLDataType(0, 32, 1)}, {"X06"}), ({"device": abi.DLDevice(1, 1)}, {"X06"})])
def test_what_an_exchange_table_lends(broken, expected):
    assert set(violated(exchanging(**broken), {"X01", "X03", "X06", "X09"})) == expected


# ---- the command line


def command(*arguments, **options):
    """`python -m dlpack_conformance`, with this process's package."""
    options.setdefault("env", environment())
    return subprocess.run([sys.executable, "-B", "-m", "dlpack_conformance", *arguments],
                          capture_output=True, text=True, timeout=300, **options)


def environment(*folders):
    package = os.path.dirname(os.path.dirname(conform.__file__))
    here = os.path.dirname(os.path.abspath(__file__))
    return {**os.environ, "NO_COLOR": "1",
            "PYTHONPATH": os.pathsep.join([*map(str, folders), package, here])}


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = conform.main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


def test_the_command_line():
    status, out, _ = run("--explain", "P15")
    assert status == 0 and "copy=True sets IS_COPIED" in out and "flag must be set" in out
    status, out, _ = run("--list")
    assert status == 0 and len(out.splitlines()) == len(conform.CHECKS)
    status, out, _ = run("--list", "--select", "P0*,ROBUST")
    ids = {line.split()[0] for line in out.splitlines()}
    assert "P01" in ids and "C38" in ids and "C01" not in ids
    for arguments in ((), ("--explain", "P99"), ("--list", "--select", "Q*"), ("no_such",),
                      ("numpy", "--known", "/no/such/file"), ("numpy", "--select", ""),
                      ("--list", "--select", ","), ("sys:maxsize",), ("--no-such",),
                      ("numpy", "--json", "--junit"), ("numpy", "--seconds", "nan"),
                      ("numpy", "--seconds", "-1")):
        status, out, err = run(*arguments)
        assert status == 2 and err and not out and "Traceback" not in err, arguments


FAULTY = """
import ctypes
from test_kit import Both as Ours
class Two(Ours):
    def take(self, producer):
        result = super().take(producer)
        lent = producer.lent[-1]
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lent.struct.deleter)(lent.address)
        return result
"""


def test_known_violations(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    where = environment(tmp_path)
    arguments = "faulty:Two", "--select", "C01,C03,P01"
    done = command(*arguments, env=where)
    assert done.returncode == 1 and "C01 MUST" in done.stdout, done
    known = tmp_path / "known.txt"
    known.write_text("C01 it counts twice  # a comment\n\n")
    done = command(*arguments, "--known", str(known), env=where)
    assert done.returncode == 0 and "known C01" in done.stdout, done
    known.write_text("\ufeffC01 as Windows\' editors write it\nP01 passes\n", encoding="utf-8")
    done = command(*arguments, "--known", str(known), "--junit", env=where)
    assert done.returncode == 1 and "P01 is known, and passes" in done.stderr, done
    assert counts_of_junit(done.stdout) == {"tests": 3, "failures": 1, "skipped": 1, "errors": 0}
    done = command(*arguments, "--junit", env=where)
    assert counts_of_junit(done.stdout) == {"tests": 3, "failures": 1, "skipped": 0, "errors": 0}
    page = command(*arguments, "--markdown", env=where).stdout
    assert re.search(r"\| C01 \| MUST \| .* \| fail: ", page), page


def counts_of_junit(text):
    """What the suite says of its cases, which has to be what they are."""
    suite = ElementTree.fromstring(text)
    said = {name: int(suite.get(name)) for name in ("tests", "failures", "skipped", "errors")}
    kinds = [case[0].tag if len(case) else "" for case in suite.iter("testcase")]
    assert said == {"tests": len(kinds), "failures": kinds.count("failure"),
                    "skipped": kinds.count("skipped"), "errors": kinds.count("error")}
    return said


def test_markdown_shows_what_was_said():
    odd = r"a|b \| <class 'x'> __dlpack__ *args `code` [link](x) &lt; a_b_c #1 ~~no~~"
    shown = conform._report.literal(odd + "\nnext")
    assert re.sub(r"\\(.)", r"\1", shown) == odd + " next"
    assert not re.search(r"(?<!\\)(\\\\)*[|<>`*_\[\]&~#]", shown)


SPAWNED = """
import os
from test_kit import Both as Ours
class Spawned(Ours):
    fork = False
    def take(self, producer):
        if producer.tensor.ndim == 3:
            os.abort()
        return super().take(producer)
"""


def test_a_library_that_must_not_be_forked(tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = command("spawned:Spawned", "--select", "C01,C24,C52,P38", "--json",
                   env=environment(tmp_path))
    found = {check["id"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    assert found == {"C01": "pass", "C24": "crash", "C52": "pass", "P38": "pass"}
    assert done.returncode == 1


def of_pytest(folder, select):
    """Runs pytest in the folder: the outcome of each test and what is said of it. What pytest
    prints depends on the environment, its report doesn't."""
    report = folder / "report.xml"
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           f"--junitxml={report}", "-k", select, str(folder)],
                          capture_output=True, text=True, timeout=120, env=environment())
    assert report.is_file(), done
    return [(case[0].get("type", case[0].tag) if len(case) else "passed", "".join(case.itertext()))
            for case in ElementTree.parse(report).iter("testcase")]


def test_the_pytest_plug_in(tmp_path):
    (tmp_path / "test_it.py").write_text(FAULTY + """
import dlpack_conformance as conform
test_all = conform.checks(Two, known={"C01": "it counts twice"})
""")
    outcomes = [outcome for outcome, _ in of_pytest(tmp_path, "C01 or P01 or C03 or C02")]
    assert outcomes.count("pytest.xfail") == 1 and (
        outcomes.count("passed") == len(outcomes) - 1 >= 3)


ENDS = ["SystemExit(0)", "SystemExit('why')", "KeyboardInterrupt", "GeneratorExit", "BaseException",
        "__import__('pytest').skip.Exception('why')", "__import__('pytest').fail.Exception('why')"]
RAISES = """
class Raises(Two):
    def make(self, tensor):
        raise {}
"""


def test_identifiers_that_there_are_not_are_not_known():
    for known in ("P15", ["P99"], {"p15": "why"}, iter(["P1"])):
        with pytest.raises(ValueError, match="there is no check"):
            conform.checks(Ours, known)


def test_processes_that_a_library_leaves_are_not_waited_for(tmp_path):
    """They have the other end of the pipe, too."""
    class Leaves(Ours):
        def make(self, tensor):
            if os.fork() == 0:
                os.read(readable, 1)  # until the end of the test
                os._exit(0)
            return tensor.copy()

    readable, writable = os.pipe()
    os.set_inheritable(writable, False)
    try:
        verdict = conform.judge_forked(Leaves(), conform.CHECKS["P01"], 20)
    finally:
        os.write(writable, b"x")
        os.close(writable)
        os.close(readable)
    assert verdict.outcome == "pass", verdict


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no -P")
def test_workers_have_the_options_of_python(tmp_path):
    (tmp_path / "dlpack_conformance.py").write_text("raise SystemExit('another package')\n")
    done = subprocess.run([sys.executable, "-BP", "-m", "dlpack_conformance", "test_kit:Both",
                           "--select", "P01"], capture_output=True, text=True, timeout=120,
                          env=environment(), cwd=tmp_path)
    assert done.returncode == 0, done


def test_a_library_that_raises_what_ends_a_program(tmp_path):
    """The child process ends there: otherwise it would run the rest of the parent's tests."""
    for number, end in enumerate(ENDS):
        (tmp_path / f"test_{number}.py").write_text(FAULTY + RAISES.format(end) + """
import dlpack_conformance as conform
test_it = conform.checks(Raises)
""")
    found = of_pytest(tmp_path, "P01 or P02")
    assert [outcome for outcome, _ in found] == ["failure", "pytest.skip"] * len(ENDS)
    assert all(re.search("(crash|P01 judges it): exit status 1: ", text) for _, text in found)


def test_seconds_are_those_of_the_command_line(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY + "import time" + RAISES.format("time.sleep(600)"))
    done = command("faulty:Raises", "--select", "P01", "--seconds", "0.5",
                   env=environment(tmp_path))
    assert done.returncode == 1 and "no end within 0.5 s" in done.stdout, done


@pytest.mark.parametrize("form", ["--json", "--junit", "--markdown", None])
def test_messages_of_any_characters(tmp_path, form):
    odd = "".join(map(chr, [*range(0x20), *range(0x7f, 0xa1), 0x2028, 0xd800, 0xfffe, 0x1f600]))
    (tmp_path / "faulty.py").write_text(FAULTY + RAISES.format(f"ValueError({odd!a} + '<&>|')"))
    done = command("faulty:Raises", "--select", "P01", *[form] * bool(form),
                   env=environment(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done
    assert all(c.isprintable() or c == "\n" for c in done.stdout)
    if form == "--junit":
        tree = ElementTree.fromstring(done.stdout)
        assert r"ValueError: \x00\x01" in tree.find("testcase/failure").get("message")


def test_identifiers_are_never_used_again():
    for letter in "PCRXD":
        ids = sorted(i for i in conform.CHECKS if i[0] == letter)
        fixed = [i for i in ids if i < f"{letter}80"]
        gone = {"C09", "C13", "C39", "C57", "C63", "C65", "P17", "P28", "P29", "P50", "P60", "P61", "R05", "R12"}
        every = sorted({*fixed, *(i for i in gone if i[0] == letter)})
        assert every == [f"{letter}{n:02}" for n in range(1, len(every) + 1)]
        assert not gone & set(ids)


def test_the_kit_imports_neither_a_framework_nor_dlpack_rs(tmp_path):
    """With Python's standard library alone."""
    done = subprocess.run(
        [sys.executable, "-B", "-S", "-c", "import dlpack_conformance, sys; "
         "print(*{name.partition('.')[0] for name in sys.modules})"],
        capture_output=True, text=True, env=environment())
    assert not {"numpy", "pytest", "dlpack_rs"} & set(done.stdout.split()), done
    assert "dlpack_conformance" in done.stdout.split(), done


def test_each_must_of_the_results_can_be_filed():
    """A report quotes the sentence, and its program needs the library and NumPy alone."""
    folder = Path(conform.__file__).parents[1]
    reports = {path: path.read_text() for path in (folder / "reports").glob("*-*.md")}
    assert reports
    for result in (folder / "results").glob("*.json"):
        data = json.loads(result.read_text())
        for name, verdict in data["verdicts"].items():
            check = conform.CHECKS[name]
            if check.severity == "MUST" and verdict.split(":")[0] in ("fail", "crash", "hang"):
                found = [text for path, text in reports.items() if re.search(rf"\b{name}\b", text)
                         and path.name.startswith(f"{data['library']}-")]
                assert found, f"{data['library']}: {name} has no report"
                assert all(quoted(check.text)[2] in text for text in found), (result, name)
    for path, text in reports.items():
        program = text.partition("```python\n")[2].partition("```")[0]
        modules = {node.names[0].name.partition(".")[0] for node in ast.walk(ast.parse(program))
                   if isinstance(node, ast.Import)}
        library = path.name.partition("-")[0]
        assert library in modules <= {library, "numpy", "ctypes", "gc"}, path
        assert len(program.splitlines()) <= 30, path


def test_rules_rest_on_sentences():
    for check in conform.CHECKS.values():
        assert check.severity != "MUST" or "\u201c" in check.explain(), check.id


def test_years_of_the_standard_ask_what_they_have():
    ids = {year: {line.split()[0] for line in run("--list", "--standard", year)[1].splitlines()}
           for year in ("2021.12", "2022.12", "2023.12", "2025.12")}
    assert ids["2021.12"] < ids["2022.12"] < ids["2023.12"] < ids["2025.12"] == set(conform.CHECKS)
    assert not {"P05", "P14", "C48", "X01"} & ids["2022.12"] and "P01" in ids["2022.12"]
    assert run("--list", "--standard", "2020.12")[0] == 2


class VersionedOnly:
    """As the standard allows from March 2025 on."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is None or max_version[0] < 1:
            raise BufferError("ask with max_version=(1, 0)")
        return self.tensor.__dlpack__(stream=stream, max_version=max_version,
                                      dl_device=dl_device, copy=copy)


def test_a_producer_of_versioned_tensors_only():
    class Library(Ours):
        def make(self, tensor):
            return VersionedOnly(super().make(tensor))

        def make_read_only(self, tensor):
            return VersionedOnly(super().make_read_only(tensor))

    assert violated(Library()) == {}


def test_adapters_that_share():
    class Library(Ours):
        def make(self, tensor):
            return tensor

        def make_read_only(self, tensor):
            return tensor.read_only()

    assert violated(Library()) == {}


@pytest.mark.parametrize("where, outcome", [("transposed", "skip"), ("make", "crash")])
def test_a_crash_in_a_view_of_its_own_is_no_violation(where, outcome):
    class Library(Ours):
        def make(self, tensor):
            return os.abort() if where == "make" else super().make(tensor)

        def transposed(self, x):
            os.abort()

    verdict = conform.judge_forked(Library(), conform.CHECKS["P45" if where != "make" else "P01"])
    assert verdict.outcome == outcome, verdict


def test_what_refuses_everything_passes_nothing():
    class Library(conform.Library):
        def make(self, tensor):
            raise RuntimeError("none")

        def take(self, producer):
            raise RuntimeError("none")

    library = Library()
    passed = [check.id for check in conform.CHECKS.values()
              if conform.judge_forked(library, check).outcome in ("pass", "note")]
    assert passed == []


def test_an_empty_tensor_whose_data_is_1_is_not_misnamed():
    def sentinel(struct, keywords):
        if not is_versioned(struct) and struct.dl_tensor.shape[0] == 0:
            struct.dl_tensor.data = 1

    class Legacy(Producer):
        def make(self, tensor):
            x = super().make(tensor)
            kind = type("Legacy", (type(x),), {
                "__dlpack__": lambda self, stream=None: super(kind, self).__dlpack__()})
            x.__class__ = kind
            return x

    verdict = conform.judge_forked(Legacy(sentinel), conform.CHECKS["P43"])
    assert verdict.outcome == "fail" and "struct of" not in verdict.text, verdict


# ---- crossed


CROSSED = {  # a fault of one combination, and the check that finds it
    "int8 is uint8": ({"C33", "C80"}, lambda tensor: (tensor.dtype.code, tensor.dtype.bits) == (
        0, 8) and setattr(tensor.dtype, "code", 1)),
    "float16 is bfloat16": ({"C80"}, lambda tensor: (tensor.dtype.code, tensor.dtype.bits) == (
        0, 16) and setattr(tensor.dtype, "code", 1)),
    "reversed begins late": ({"C25", "C80"}, lambda tensor: tensor.ndim == 2 and tensor.strides
                             and tensor.strides[0] < 0 and setattr(tensor, "byte_offset", 4)),
    "an offset with int64": ({"C80"}, lambda tensor: tensor.byte_offset and tensor.dtype.bits == 64
                             and setattr(tensor, "byte_offset", 56)),
}


@pytest.mark.parametrize("name", CROSSED)
def test_faults_of_one_combination(name):
    expected, edit = CROSSED[name]

    class Faulty(Consumer):
        def check(self, struct):
            super().check(struct)
            edit(struct.dl_tensor)

    found = violated(Faulty(), {"C01", "C19", "C25", "C33", "C80", "C81", "C82", "C83"})
    assert expected <= set(found) <= expected | {"C33"}, found


def test_copies_where_none_was_asked_for():
    class Copies(Ours):
        def make(self, tensor):
            class Export(Tensor):
                def __dlpack__(self, **keywords):
                    if self.code == (5, 64, 1) and keywords.get("copy") is False:
                        found = self.copy()
                        found.__class__ = Tensor
                        return found.__dlpack__(**{**keywords, "copy": None})
                    return super().__dlpack__(**keywords)

            x = tensor.copy()
            x.__class__ = Export
            return x

    assert set(violated(Copies(), {"P80", "P81", "P82", "P83", "P84"})) == {"P83"}


def test_a_flag_that_depends_on_the_request():
    class Forgets(Ours):
        def make_read_only(self, tensor):
            class Export(Tensor):
                def __dlpack__(self, **keywords):
                    capsule = super().__dlpack__(**keywords)
                    if keywords.get("copy") is False and is_versioned(managed(capsule)):
                        managed(capsule).flags = 0
                    return capsule

            x = tensor.copy().read_only()
            x.__class__ = Export
            return x

    assert set(violated(Forgets(), {"P19", "P80", "P81", "P82", "P83", "P84"})) == {"P82"}


def test_the_seed_draws_others():
    from dlpack_conformance import _cross

    def drawn(seed):
        _cross.SEED[0] = seed
        try:
            return list(_cross.draws((("dtype", _cross.DTYPES), ("layout", _cross.LAYOUTS)),
                                     _cross.CONSUMERS))
        finally:
            _cross.SEED[0] = 0

    assert drawn(1) == drawn(1) != drawn(2)


def test_pytest_without_a_file(tmp_path):
    (tmp_path / "mine.py").write_text("from test_kit import Both\n")
    (tmp_path / "skips.txt").write_text("P27 why\nP01 as a test\n")
    (tmp_path / "xfails.txt").write_text("P06 passes, and is reported\n")
    report = tmp_path / "report.xml"
    subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                    f"--junitxml={report}", "--pyargs", "dlpack_conformance", "-k",
                    "P01 or P02 or P06 or P27"], capture_output=True, timeout=120, cwd=tmp_path,
                   env={**environment(tmp_path), "DLPACK_CONFORMANCE": "mine:Both"})
    cases = {case.get("name")[-4:-1]: case[0].tag if len(case) else "passed"
             for case in ElementTree.parse(report).iter("testcase")}
    assert cases == {"P01": "skipped", "P02": "passed", "P06": "failure", "P27": "skipped"}
