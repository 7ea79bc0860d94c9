"""Ownership: everything is freed exactly once, whatever fails on the way."""

import ctypes
import gc
import os
import sys
import threading

import numpy as np
import pytest
import tvm_ffi

import capsules
import dlpack_ctypes
from dlpack_rs import abi

LEGACY_AND_VERSIONED = pytest.mark.parametrize("max_version", [None, (1, 3)],
                                               ids=["legacy", "versioned"])


class Answers:
    """Returns a capsule created earlier."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def counted(dlpack):
    """A tensor, and a list that grows when it is freed."""
    ran = []
    tensor = dlpack.empty((4,))
    tensor.attach(lambda: ran.append(1))
    return tensor, ran


def settle():
    """Until no more callbacks are due."""
    gc.collect()
    while capsules.sweep():
        gc.collect()


# X06: wrong arguments.


def test_none_is_a_null_argument(dlpack):
    with pytest.raises(ValueError) as caught:
        dlpack.copy(Pointer(None if dlpack is dlpack_ctypes else dlpack.ffi.NULL), dlpack.empty(()))
    assert caught.value.name == "DLRS_NULL_ARG" and "src" in str(caught.value)


class Pointer:
    """In place of a tensor."""

    def __init__(self, pointer):
        self.pointer = pointer


# A NULL buffer of capacity 0 queries the length; an empty batch is copied; no streams wait.
NOTHING_IS_FINE = ("dlrs_dtype_format", "dlrs_device_format", "dlrs_copy_batch",
                   "dlrs_release_drain")


def test_ctypes_rejects_pointers_of_other_types():
    lib, call, byref = dlpack_ctypes.lib, dlpack_ctypes.call, ctypes.byref
    out = dlpack_ctypes.Versioned()
    tensor = dlpack_ctypes.empty((1,))
    for wrong in (0x7F0012345678, byref(dlpack_ctypes.DLTensor()), b"bytes", "text", object()):
        with pytest.raises(ctypes.ArgumentError):
            call(lib.dlrs_retain, wrong, byref(out))
    for wrong in (0x7F0012345678, byref(dlpack_ctypes.Legacy())):
        with pytest.raises(ctypes.ArgumentError):
            call(lib.dlrs_retain, tensor.pointer, wrong)
    assert not out and tensor.ref_count == 1


def test_every_function_refuses_null_with_its_own_name():
    error = ctypes.POINTER(abi.dlrs_error)
    fallible = {name: types[1:-1] for name, types in abi.FUNCTIONS.items() if types[-1] is error}
    assert len(fallible) > 60
    for name, parameters in fallible.items():
        nothing = [None if hasattr(kind, "contents") or kind in (ctypes.c_void_p, ctypes.c_char_p)
                   else kind() for kind in parameters]
        if name in NOTHING_IS_FINE:
            continue
        with pytest.raises(Exception, match=f"^{name}: ") as caught:
            abi.call(getattr(abi.lib, name), *nothing)
        assert getattr(abi.lib, name)(*nothing, None) == caught.value.status


def test_classes_of_errors_are_python_exceptions(dlpack):
    with pytest.raises(ValueError, match="DLRS_SHAPE_NEG"):
        dlpack.empty((-1,))
    with pytest.raises(ValueError, match="DLRS_PARSE"):
        dlpack.empty((1,), "float33x")
    with pytest.raises(MemoryError, match="DLRS_NOMEM"):
        dlpack.empty((1 << 60,), "uint8")
    with pytest.raises(TypeError, match="DLRS_DTYPE_MISMATCH"):
        dlpack.copy(dlpack.empty((1,), "int8"), dlpack.empty((1,), "uint8"))


# X07: callbacks.

FREE_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Raw:
    """Callbacks as the C library receives them, in the order in which C calls them."""

    def __init__(self):
        self.ran, self.alive = [], FREE_FN(lambda key: self.ran.append(key))
        self.address = ctypes.cast(self.alive, ctypes.c_void_p)

    def attach(self, tensor, key, order=1):
        lib = dlpack_ctypes.lib
        dlpack_ctypes.call(lib.dlrs_attach, tensor.pointer, self.address, key, order)

    def detach(self, tensor, key):
        dlpack_ctypes.call(dlpack_ctypes.lib.dlrs_detach, tensor.pointer, self.address, key)


def test_callbacks_run_last_in_first_out_and_can_be_detached():
    raw, tensor = Raw(), dlpack_ctypes.empty((2,))
    for key, order in enumerate((1, 0, 1, 0, 1), start=1):
        raw.attach(tensor, key, order)
    raw.detach(tensor, 3)
    with pytest.raises(ValueError, match="is not attached"):
        raw.detach(tensor, 3)
    tensor.close()
    assert raw.ran == [4, 2, 5, 1]


def test_callbacks_survive_collection(dlpack):
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            gc.collect()

    raw, ran, tensors = Raw(), [], []
    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for number in range(1, 301):
            tensor = dlpack.empty((1,))
            for _ in range(3):
                tensor.attach(lambda number=number: ran.append(number))
            if dlpack is dlpack_ctypes:
                raw.attach(tensor, number)
            tensors.append(tensor)
            if len(tensors) > 20:
                del tensors[0]
        del tensor, tensors
    finally:
        stop.set()
        thread.join()
    settle()
    assert sorted(ran) == sorted(list(range(1, 301)) * 3)
    assert sorted(raw.ran) == (list(range(1, 301)) if dlpack is dlpack_ctypes else [])


def test_detached_callbacks_do_not_run(dlpack):
    ran = []
    tensor = dlpack.empty((2,))
    callbacks = [tensor.attach(lambda n=n: ran.append(n)) for n in range(4)]
    tensor.detach(callbacks[1])
    with pytest.raises(ValueError, match="is not attached"):
        tensor.detach(callbacks[1])
    tensor.close()
    assert sorted(ran) == [0, 2, 3]


def test_callbacks_may_use_the_library_and_may_fail(dlpack, capsys):
    ran = []
    tensor, inner = dlpack.empty((1,)), dlpack.empty((1,))
    tensor.attach(lambda: ran.append(dlpack.empty((2,)).clone().shape))
    tensor.attach(lambda: 1 / 0)
    tensor.attach(inner.close)
    tensor.close()
    assert ran == [(2,)] and not inner.pointer
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_last_of_many_threads_frees(dlpack):
    raw, (tensor, ran) = Raw(), counted(dlpack)
    if dlpack is dlpack_ctypes:
        raw.attach(tensor, 5)
    references = [tensor.share() for _ in range(8)]
    arrays = [np.from_dlpack(tensor) for _ in range(8)]
    tensor.close()
    threads = [threading.Thread(target=reference.close) for reference in references]
    threads += [threading.Thread(target=arrays.pop) for _ in range(8)]
    del references
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle()
    assert len(ran) == 1 and raw.ran in ([], [5])


# X08: capsule names.


def test_names_of_capsules_outlive_everything(dlpack):
    tensor = dlpack.empty((1,))
    capsule = tensor.__dlpack__(max_version=(1, 0))
    names = [bytes(range(32, 100)) * 3 for _ in range(1000)]
    gc.collect()
    assert '"dltensor_versioned"' in repr(capsule)
    np.from_dlpack(Answers(capsule))
    assert '"used_dltensor_versioned"' in repr(capsule)
    del names
    assert sys.getrefcount(capsules.VERSIONED) > 2  # one reference is never released


# X09: capsules.


@LEGACY_AND_VERSIONED
def test_an_unconsumed_capsule_frees_the_tensor(dlpack, max_version):
    tensor, ran = counted(dlpack)
    capsule = tensor.__dlpack__(max_version=max_version)
    tensor.close()
    gc.collect()
    settle()
    assert not ran
    del capsule
    settle()
    assert len(ran) == 1
    assert capsules.sweep() == 0


@LEGACY_AND_VERSIONED
@pytest.mark.parametrize("taker", ["ours", "numpy"])
def test_a_capsule_is_consumed_once(dlpack, max_version, taker):
    tensor, ran = counted(dlpack)
    capsule = tensor.__dlpack__(max_version=max_version)
    take = {"ours": dlpack.from_dlpack, "numpy": np.from_dlpack}
    first = take[taker](Answers(capsule))
    for again in take.values():
        with pytest.raises(ValueError):
            again(Answers(capsule))
    del capsule
    tensor.close()
    settle()
    assert not ran
    del first
    settle()
    assert len(ran) == 1


@LEGACY_AND_VERSIONED
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failing_between_taking_and_renaming(dlpack, max_version, error, monkeypatch):
    tensor, ran = counted(dlpack)
    capsule = tensor.__dlpack__(max_version=max_version)
    address = tensor.address
    tensor.close()

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(dlpack, "call", fail)
        with pytest.raises(error):
            dlpack.from_dlpack(Answers(capsule))
    assert "used" not in repr(capsule)  # it owns its tensor again: the next consumer may take it
    again = dlpack.from_dlpack(Answers(capsule))
    assert again.address == address and not ran
    del again, capsule
    settle()
    assert len(ran) == 1


@LEGACY_AND_VERSIONED
def test_a_failed_import_takes_no_ownership(dlpack, max_version):
    tensor, ran = counted(dlpack)
    odd = dlpack.from_dlpack(np.from_dlpack(tensor)[1:])
    capsule = odd.__dlpack__(max_version=max_version)
    tensor.close()
    odd.close()
    with pytest.raises(ValueError, match="DLRS_MISALIGNED"):
        dlpack.from_dlpack(Answers(capsule), align_bytes=64, copy=False)
    del capsule
    settle()
    assert len(ran) == 1


@LEGACY_AND_VERSIONED
def test_releasing_capsules_with_a_pending_exception(dlpack, max_version):
    """The case that crashes every capsule destructor written in Python."""
    tensor, ran = counted(dlpack)

    def consume(*_):
        raise AssertionError("never reached")

    for _ in range(1000):
        with pytest.raises(ZeroDivisionError):
            consume(tensor.__dlpack__(max_version=max_version), 1 / 0)
    capsules.sweep()
    assert tensor.ref_count == 1 and not ran
    tensor.close()
    settle()
    assert len(ran) == 1


def test_freeing_arrays_with_a_pending_exception(dlpack):
    def consume(*_):
        raise AssertionError("never reached")

    for take in (np.from_dlpack, tvm_ffi.from_dlpack, dlpack.from_dlpack):
        ran = []
        for _ in range(100):
            tensor = dlpack.empty((4,))
            tensor.attach(lambda: ran.append(1))
            tensors = [tensor]
            del tensor
            with pytest.raises(ZeroDivisionError):
                consume(take(tensors.pop()), 1 / 0)
        settle()
        assert len(ran) == 100, take


@pytest.mark.parametrize("array", [np.arange(3.0), np.zeros((0, 2)), np.array(1)], ids=str)
def test_numpys_own_capsules(dlpack, array):
    before = sys.getrefcount(array)
    dropped = array.__dlpack__(max_version=(1, 0))
    del dropped
    assert sys.getrefcount(array) == before
    capsule = array.__dlpack__(max_version=(1, 0))
    tensor = dlpack.from_dlpack(Answers(capsule))
    with pytest.raises(ValueError):
        dlpack.from_dlpack(Answers(capsule))
    del capsule
    assert sys.getrefcount(array) == before + 1
    shared, clone = tensor.share(), tensor.clone()
    tensor.close()
    assert sys.getrefcount(array) == before + 1
    shared.close()
    assert sys.getrefcount(array) == before
    clone.close()


def test_rejected_numpy_arrays_are_released(dlpack):
    array = np.arange(8.0)[::2]
    before = sys.getrefcount(array)
    for keywords in ({"order": "C"}, {"align_bytes": 1 << 20}):
        with pytest.raises((BufferError, ValueError)):
            dlpack.from_dlpack(array, copy=False, **keywords)
    gc.collect()
    assert sys.getrefcount(array) == before


def test_closing_twice_and_using_afterwards(dlpack):
    tensor, ran = counted(dlpack)
    tensor.close()
    tensor.close()
    assert len(ran) == 1
    with pytest.raises(ValueError):
        tensor.shape
    with pytest.raises(ValueError):
        tensor.clone()


def test_a_chain_of_imports_and_exports(dlpack):
    """NumPy -> library -> tvm-ffi -> library -> NumPy: one memory, every reference released."""
    array = np.arange(64, dtype=np.float32)
    before = sys.getrefcount(array)
    ran = []
    first = dlpack.from_dlpack(array)
    first.attach(lambda: ran.append("first"))
    theirs = tvm_ffi.from_dlpack(first)
    second = dlpack.from_dlpack(theirs)
    second.attach(lambda: ran.append("second"))
    last = np.from_dlpack(second)
    del first, theirs, second
    gc.collect()
    assert not ran and np.shares_memory(last, array)
    last[5] = -1
    assert array[5] == -1
    del last
    settle()
    assert ran in (["first", "second"], ["second", "first"])
    assert sys.getrefcount(array) == before


def test_wrapped_memory_lives_as_long_as_the_tensor():
    memory = bytearray(range(24))
    tensor = dlpack_ctypes.wrap(memory, (3, 2), "int32")
    array = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    with pytest.raises(BufferError):
        memory.append(0)  # still exported
    array[...] = 0
    del array
    settle()
    memory.append(1)
    assert memory == bytes(24) + b"\1"
    with pytest.raises(ValueError, match="28 bytes are needed"):
        dlpack_ctypes.wrap(memory, (7,), "int32")


# Leaks.


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_many_exchanges_leak_no_memory(dlpack):
    array = np.arange(1024.0)
    before = sys.getrefcount(array)

    def exchange(times):
        for number in range(times):
            tensor = dlpack.from_dlpack(array)
            if number % 4 == 0:
                back = np.from_dlpack(tensor)
                assert back[3] == 3
            elif number % 4 == 1:
                tensor.clone()
            elif number % 4 == 2:
                tensor.__dlpack__()  # never consumed
            else:
                tensor.attach(int)

    exchange(2000)
    gc.collect()
    start = resident()
    exchange(50_000)  # once per binding: 100,000 altogether
    gc.collect()
    grown = resident() - start
    assert grown < 2 << 20, f"{grown} bytes more after 50,000 exchanges"
    assert sys.getrefcount(array) == before
