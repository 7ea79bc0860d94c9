"""Faulty consumers, re-exports and exchange tables, each found by its checks alone."""

import ctypes
import os

import dlpack_conformance as conform
import pytest
from dlpack_conformance import Tensor
from dlpack_conformance import _abi as abi
from dlpack_conformance._libraries import Functions
from libraries import KEPT, KNOWN, Both, Consumer, Edited, Ours, flags, other_dtype, violated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="checks run in forks")

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


def test_a_correct_library_on_both_sides():
    assert violated(Both()) == {}


class Again(Both):
    """Re-exports its import, edited."""

    def __init__(self, edit):
        super().__init__()
        self.kind = type("Faulty", (Edited,), {"edit": staticmethod(edit)})

    known = KNOWN | {(17, 4)}
    values = conform.Library.values

    def take(self, producer):
        return self.kind(super().take(producer))

    def address(self, result):
        return result.tensor._start


@pytest.mark.parametrize("edit, check", [(flags(clear=1), "R01"), (flags(clear=4), "R13"),
                                         (other_dtype, "R81")])
def test_what_a_re_export_does_not_say_is_detected(edit, check):
    assert violated(Again(edit), {"R01", "R02", "R04", check}) == {check: "fail"}


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
