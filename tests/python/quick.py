#!/usr/bin/env python3
"""Who owns what in Python, which elements a view has, and pointers that C may not be given, in a
second and with Python alone: a part of `make check`. test_*.py beside it say more. The last line is
`N passed, N failed`."""

import array
import copy
import ctypes
import itertools
import os
import pickle
import random
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("DLPACK_RS_LIBRARY", str(ROOT / "target/lib/libdlpack_rs.so"))
sys.path.insert(0, str(ROOT / "python"))
import dlpack_rs as dl  # noqa: E402
from dlpack_rs import abi  # noqa: E402
import pointers  # noqa: E402

is_named = ctypes.pythonapi.PyCapsule_IsValid
is_named.argtypes = [ctypes.py_object, ctypes.c_char_p]
VERSIONS = [(None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"),
            ((1, 3), b"dltensor_versioned")]


class Producer:
    """Passes a capsule on, and says with which keywords it was asked."""

    def __init__(self, capsule):
        self.capsule, self.asked = capsule, []

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def refused(kinds, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kinds as error:
        return str(error)
    raise AssertionError(f"{call} succeeds")


def floats():
    """A buffer, how many references it has, and a tensor over it."""
    buffer = array.array("f", range(6))
    before = sys.getrefcount(buffer)
    return buffer, before, dl.asarray(buffer)


def capsules_have_the_name_of_the_version_asked_for_and_another_one_once_taken():
    for (version, name), taken in itertools.product(VERSIONS, (False, True)):
        buffer, before, tensor = floats()
        capsule = tensor.__dlpack__(max_version=version)
        assert is_named(capsule, name), (version, name)
        if taken:
            again = dl.from_dlpack(Producer(capsule))
            assert is_named(capsule, b"used_" + name) and again.tolist() == tensor.tolist()
            assert again.readonly == (name == b"dltensor")  # the legacy struct cannot say
            refused((ValueError, BufferError), dl.from_dlpack, Producer(capsule))
            del again
        assert sys.getrefcount(buffer) > before
        del tensor, capsule
        assert sys.getrefcount(buffer) == before, (version, taken)


def a_buffer_is_held_exactly_as_long_as_a_tensor_needs_it():
    memory = bytearray(16)
    tensor = dl.asarray(memory)
    view = tensor[2:].reshape(2, 7)
    del tensor
    refused(BufferError, memory.append, 1)
    del view
    memory.append(1)


def what_must_not_be_written_is_read_only_everywhere():
    fixed = dl.asarray(b"abcdef")
    repeated = dl.asarray(bytearray(b"ab")).reshape(2, 1).broadcast_to(2, 3)
    for tensor in (fixed, fixed[1:], copy.copy(fixed), repeated, copy.deepcopy(fixed)):
        assert tensor.readonly and tensor.memoryview().readonly
        refused((ValueError, BufferError), tensor.fill, 1)
        refused(BufferError, tensor.__dlpack__)  # the legacy struct cannot say it
    assert not fixed.copy().readonly and fixed.copy().is_copied


def a_capsule_that_is_refused_keeps_its_name_or_its_tensor_is_freed_once():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for kind, name in ((abi.DLManagedTensor, b"dltensor"),
                       (abi.DLManagedTensorVersioned, b"dltensor_versioned")):
        tensor, freed = kind(), []
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _, freed=freed: freed.append(1))
        tensor.deleter = ctypes.cast(deleter, dict(kind._fields_)["deleter"])
        tensor.dl_tensor.ndim = -1
        if kind is abi.DLManagedTensorVersioned:
            tensor.version.major = 1
        capsule = new(ctypes.addressof(tensor), name, None)
        refused((ValueError, BufferError), dl.from_dlpack, Producer(capsule))
        assert (is_named(capsule, name), len(freed)) in ((1, 0), (0, 1)), (name, freed)


def copies_are_made_where_asked_for_and_refused_where_forbidden():
    _, _, tensor = floats()
    for copied in (None, True, False):
        taken = dl.from_dlpack(tensor, copy=copied)
        assert (taken.data_ptr == tensor.data_ptr) == (not copied)
        assert taken.is_copied == bool(copied)
        producer = Producer(tensor.__dlpack__(max_version=(1, 3), copy=copied))
        dl.from_dlpack(producer, copy=copied if copied is not True else None)
        assert producer.asked[0].get("copy", None) == (False if copied is False else None)
        assert producer.asked[0].get("stream") is None
    assert tensor.astype("float64").is_copied
    assert tensor.astype("float32", copy=False).data_ptr == tensor.data_ptr
    refused((BufferError, ValueError), dl.from_dlpack, Producer(tensor.__dlpack__(
        max_version=(1, 3), copy=True)), copy=False)
    assert "dl_device" in refused(TypeError, tensor.__dlpack__, dl_device=1)
    assert "max_version" in refused(TypeError, tensor.__dlpack__, max_version=1)


def exceptions_survive_what_is_freed_while_they_are_pending():
    _, _, tensor = floats()
    capsule = tensor.__dlpack__()
    del tensor
    try:
        raise KeyError("mine")
    except KeyError as error:
        del capsule
        assert error.args == ("mine",)


def views_have_the_elements_of_nested_lists():
    chosen = random.Random(1)
    for _ in range(300):
        shape = [chosen.randint(1, 4) for _ in range(chosen.randint(1, 3))]
        count = 1
        for extent in shape:
            count *= extent
        tensor = dl.asarray(array.array("i", range(count))).reshape(*shape)
        lists = tensor.tolist()
        while len(shape) > 1:  # rows of rows, in order
            lists = list(itertools.chain(*lists))
            shape.pop()
        assert lists == list(range(count))
        lists, start, stop = tensor.tolist(), *(chosen.randint(-6, 6) for _ in "ab")
        step = chosen.choice([-3, -2, -1, 1, 2, 3])
        assert tensor[start:stop:step].tolist() == lists[start:stop:step]
        assert tensor.flip(0).tolist() == lists[::-1] and tensor[...].tolist() == lists
        if tensor.ndim > 1:
            assert tensor.swapaxes(0, 1)[0].tolist() == [row[0] for row in lists]
            assert tensor[..., 0].tolist() == tensor.permute(
                tensor.ndim - 1, *range(tensor.ndim - 1))[0].tolist()
            assert "index[1]" in refused(IndexError, lambda: tensor[0, tensor.shape[1]])
        for same in (tensor.copy("F"), pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor),
                     tensor.astype("int64"), dl.asarray(tensor.memoryview())):
            assert same.tolist() == lists
        assert tensor.T.memoryview().tolist() == tensor.T.tolist()
        assert tensor.T.tobytes("A") in (tensor.tobytes(), tensor.T.tobytes("C"))
    refused(ValueError, tensor.permute, *[0] * max(tensor.ndim, 2))


def values_become_what_the_type_can_hold():
    whole = dl.asarray(array.array("q", [2**24 + 1, -(2**53) - 1, 2**62 + 1]))
    assert whole.astype("float32").tolist() == [2.0**24, -(2.0**53), 2.0**62]
    halves = dl.asarray(array.array("d", [2049, 2051, -0.0, 1e9])).astype("float16")
    assert halves.tolist() == [2048, 2052, 0, float("inf")]
    refused((ValueError, OverflowError), dl.full, (1,), 256, "uint8")
    assert dl.full((3,), 255, "uint8").tobytes() == b"\xff" * 3
    nan = dl.full((1,), float("nan"), "float64")
    assert not nan.equal(nan) and nan.equal(nan, equal_nan=True)
    assert str(dl.zeros((1,))).startswith("Tensor(shape=(1,),")


def null_and_misaligned_pointers_are_refused_before_all_else():
    functions = list(pointers.functions())
    assert len(functions) > 90
    for function in functions:
        pointers.check(*function)


def main():
    cases = [case for name, case in globals().items() if name.count("_") > 2 and callable(case)]
    failed = 0
    for case in cases:
        word = "pass"
        try:
            case()
        except Exception:
            word, failed = "FAIL", failed + 1
            traceback.print_exc(file=sys.stdout)
        print(f"{word}  {case.__name__.replace('_', ' ')}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main() > 0)
