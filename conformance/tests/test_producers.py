"""Faulty producers, each found by its checks alone, and correct ones."""

import ctypes
import enum
import os

import dlpack_conformance as conform
import pytest
from dlpack_conformance import Tensor
from dlpack_conformance import _abi as abi
from dlpack_conformance._libraries import Functions
from libraries import (DELETER, KEPT, Edited, Ours, Producer, VersionedOnly, flags, is_versioned,
                       managed, other_dtype, violated)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")


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
    Tensor.sweep(lent)
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


def test_what_is_lent_is_not_swept_by_another_thread():
    class Swept(Tensor):
        @classmethod
        def sweep(cls, *lent):
            super().sweep(*lent)
            super().sweep()  # as another thread may, at once

    capsule = Swept().__dlpack__(max_version=(1, 3))
    assert any(lent.capsule is capsule for lent in Tensor._lent)
