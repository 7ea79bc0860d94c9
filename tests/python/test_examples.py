"""The bindings in examples/python, through ctypes and through cffi: what they do themselves,
exports, capsules and callbacks in Python; and the programs of this folder and that one."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

import capsules
import dlpack_ctypes
from conftest import EXAMPLES
from dlpack_rs import abi
from fakes import Answers
from views import random_view

HERE = Path(__file__).resolve().parent
VERSIONS = pytest.mark.parametrize("max_version", [None, (1, 3)], ids=["legacy", "versioned"])


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


# --- Exchange ---------------------------------------------------------------------------------


def test_any_array_comes_back_as_it_is(dlpack):
    rng = np.random.default_rng(1)
    for _ in range(300):
        array = random_view(rng)
        tensor = dlpack.from_dlpack(array)
        tensor.validate()
        assert (tensor.shape, tensor.dtype) == (array.shape, array.dtype.name)
        assert tensor.flags == (0 if array.flags.writeable else dlpack.READ_ONLY)
        for back in (np.from_dlpack(tensor), np.from_dlpack(tensor.clone())):
            assert back.dtype == array.dtype and back.tobytes() == array.tobytes()
        if array.size:
            assert tensor.address == array.ctypes.data == np.from_dlpack(tensor).ctypes.data
        target = np.zeros(array.shape[::-1], array.dtype).T
        dlpack.copy(tensor, dlpack.from_dlpack(target))
        assert target.tobytes() == array.tobytes()
        for order in "CFAK":
            dense = tensor.contiguous(order)
            assert dense.is_contiguous(order)
            assert np.from_dlpack(dense).tobytes() == array.tobytes()


def test_old_and_new_consumers_get_their_capsule(dlpack):
    array = np.arange(6.0)
    tensor = dlpack.from_dlpack(array)
    for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"),
                          ((2, 0), "dltensor_versioned")):
        assert f'"{name}"' in repr(tensor.__dlpack__(max_version=version))
    old = Answers(tensor.__dlpack__())
    assert dlpack.from_dlpack(old).flags == dlpack.READ_ONLY  # not in the legacy struct
    for copy, flags in ((None, 0), (False, 0), (True, dlpack.IS_COPIED)):
        taken = dlpack.from_dlpack(Answers(tensor.__dlpack__(max_version=(1, 0), copy=copy)))
        assert taken.flags == flags and (taken.address == tensor.address) == (copy is not True)
        there = np.from_dlpack(tensor, device="cpu", copy=copy)
        assert np.shares_memory(there, array) == (copy is not True)
    array.flags.writeable = False
    with pytest.raises(BufferError, match="DLRS_READ_ONLY"):
        dlpack.from_dlpack(array).__dlpack__()


# --- Callbacks --------------------------------------------------------------------------------


def test_detached_callbacks_do_not_run(dlpack):
    ran = []
    tensor = dlpack.empty((2,))
    callbacks = [tensor.attach(lambda n=n: ran.append(n)) for n in range(4)]
    tensor.detach(callbacks[1])
    with pytest.raises(ValueError, match="is not attached"):
        tensor.detach(callbacks[1])
    tensor.close()
    tensor.close()
    assert sorted(ran) == [0, 2, 3]
    for use in (lambda: tensor.shape, tensor.clone):
        with pytest.raises(ValueError):
            use()


def test_callbacks_may_use_the_library_and_may_fail(dlpack, capsys):
    ran = []
    tensor, inner = dlpack.empty((1,)), dlpack.empty((1,))
    tensor.attach(lambda: ran.append(dlpack.empty((2,)).clone().shape))
    tensor.attach(lambda: 1 / 0)
    tensor.attach(inner.close)
    tensor.close()
    assert ran == [(2,)] and not inner.pointer
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_wrapped_memory_lives_as_long_as_the_tensor():
    memory = bytearray(range(24))
    tensor = dlpack_ctypes.wrap(memory, (3, 2), "int32")
    array = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    with pytest.raises(BufferError):
        memory.append(0)  # still exported
    del array
    settle()
    memory.append(1)
    with pytest.raises(ValueError, match="28 bytes are needed"):
        dlpack_ctypes.wrap(memory, (7,), "int32")


# --- Capsules ---------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("taker", ["nobody", "ours", "numpy"])
def test_a_capsule_is_taken_once_and_freed_once(dlpack, max_version, taker):
    tensor, ran = counted(dlpack)
    capsule = tensor.__dlpack__(max_version=max_version)
    take = {"nobody": Answers, "ours": dlpack.from_dlpack, "numpy": np.from_dlpack}
    first = take[taker](Answers(capsule))
    for again in (dlpack.from_dlpack, np.from_dlpack) if taker != "nobody" else ():
        with pytest.raises(ValueError):
            again(Answers(capsule))
    assert taker == "nobody" or '"used_dltensor' in repr(capsule)
    del capsule
    tensor.close()
    settle()
    assert not ran
    del first
    settle()
    assert len(ran) == 1


@VERSIONS
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_between_taking_and_renaming_leaves_the_capsule(dlpack, max_version, error,
                                                                  monkeypatch):
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


@VERSIONS
def test_a_pending_exception_survives_the_release_of_a_capsule(dlpack, max_version):
    """The case that crashes every capsule destructor written in Python."""
    tensor, ran = counted(dlpack)

    def consume(*_):
        raise AssertionError("never reached")

    for take in (lambda x: x.__dlpack__(max_version=max_version), np.from_dlpack,
                 tvm_ffi.from_dlpack, dlpack.from_dlpack):
        for _ in range(50):
            with pytest.raises(ZeroDivisionError):
                consume(take(tensor), 1 / 0)
    settle()
    assert tensor.ref_count == 1 and not ran


# --- Processes --------------------------------------------------------------------------------

START = """
import atexit, ctypes, gc, os, sys, threading
import numpy as np
import {binding} as dlpack
array = np.arange(6.0)
tensor = dlpack.from_dlpack(array)
tensor.attach(lambda: None)
"""
ENDS = {
    "tensors, capsules and cycles outlive it": """
back = np.from_dlpack(tensor.clone())
kept = [tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0))]
sys.kept, np.kept, atexit.kept = tensor, tensor.share(), np.from_dlpack(tensor)
class A: pass
a = A(); a.a = a; a.t = tensor; a.n = np.from_dlpack(tensor); del a
for thing in tensor, np.from_dlpack(tensor.clone()):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
atexit.register(lambda: dlpack.from_dlpack(array).close())
tensor.attach(lambda: dlpack.empty((3,)).clone().validate())
""",
    "the bindings themselves go first": "sys.kept = tensor; del sys.modules['capsules']\n"
                                        "del sys.modules[dlpack.__name__], dlpack; gc.collect()",
    "an exit in a callback counts": "tensor.attach(lambda: sys.exit(3)); tensor.close()",
}


def program(*command, **environment):
    return subprocess.run([sys.executable, "-B", "-X", "faulthandler", *map(str, command)],
                          capture_output=True, text=True, timeout=120, cwd=EXAMPLES,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path),
                               **environment})


@pytest.mark.parametrize("binding", ["dlpack_ctypes", "dlpack_cffi"])
@pytest.mark.parametrize("how", ENDS)
def test_the_interpreter_ends_cleanly(binding, how):
    done = program("-c", START.format(binding=binding) + ENDS[how])
    expected = 3 if "sys.exit(3)" in ENDS[how] else 0
    assert (done.returncode, done.stdout, done.stderr) == (expected, "", "")


@pytest.mark.parametrize("script", ["hello_ctypes.py", "hello_cffi.py", "demo.py"])
def test_examples_run(script):
    done = program(EXAMPLES / script)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("words, said", [
    (["test_cast.py", abi.library_path()], " 0 failed"),
    (["random_casts.py", abi.library_path(), "600", "7"], "600 passed, 0 failed (seed 7)\n"),
    (["../../examples/python/processes.py"],
     "0 [[7.0, 3.0], [8.0, 4.0], [9.0, 5.0]] [[8.0], [4.0]]\n"
     "True [[7.0, 8.0, 9.0], [3.0, 4.0, 5.0]] 7.0\n")], ids=lambda value: str(value[0]))
def test_programs_of_their_own_succeed(words, said):
    done = program(HERE / words[0], *words[1:], DLPACK_RS_LIBRARY=abi.library_path())
    assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
