"""The end of the interpreter, forks, threads and programs, each in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dlpack_ctypes
from conftest import EXAMPLES

START = """
import atexit, gc, os, sys, threading
import numpy as np
import {binding} as dlpack
array = np.arange(6.0)
tensor = dlpack.from_dlpack(array)
tensor.attach(lambda: None)
"""
BINDINGS = pytest.mark.parametrize("binding", ["dlpack_ctypes", "dlpack_cffi"])


def run(binding, script, **keywords):
    return subprocess.run([sys.executable, "-B", "-X", "faulthandler", "-c",
                           START.format(binding=binding) + script],
                          cwd=EXAMPLES, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(EXAMPLES)}, **keywords)


@BINDINGS
@pytest.mark.parametrize("script", {
    "tensors in the main module": "",
    "arrays of NumPy that outlive the tensors": "back = np.from_dlpack(tensor.clone()); del tensor",
    "unused capsules": "kept = [tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0))]",
    "in another module that goes first or last": "sys.kept = tensor; np.kept = tensor.share(); "
                                                 "atexit.kept = np.from_dlpack(tensor)",
    "a cycle": "class A: pass\na = A(); a.a = a; a.t = tensor; a.n = np.from_dlpack(tensor); del a",
    "the bindings themselves go first": "sys.kept = tensor; del sys.modules['capsules']; "
                                        "del sys.modules[dlpack.__name__], dlpack; gc.collect()",
    "releasing at exit": "atexit.register(tensor.close)",
    "a callback with much to do": "tensor.attach(lambda: dlpack.empty((3,)).clone().validate())",
    "for ever": "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor)); "
                "ctypes.pythonapi.Py_IncRef(ctypes.py_object(np.from_dlpack(tensor.clone())))",
    "daemon threads": "def churn():\n    while True:\n"
                      "        np.from_dlpack(dlpack.from_dlpack(array).clone())\n"
                      "for _ in range(3): threading.Thread(target=churn, daemon=True).start()\n"
                      "import time; time.sleep(0.2)",
    "a thread that ends last": "def late():\n    import time; time.sleep(0.2); tensor.close()\n"
                               "threading.Thread(target=late).start()",
}.items(), ids=lambda item: item[0].replace(" ", "-"))
def test_the_interpreter_ends_with_live_tensors(binding, script):
    done = run(binding, script[1])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@BINDINGS
def test_exit_codes_stay_as_they_are(binding):
    assert run(binding, "sys.exit(7)").returncode == 7
    assert run(binding, "os._exit(9)").returncode == 9
    done = run(binding, "raise KeyError('mine')")
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr
    assert run(binding, "tensor.attach(lambda: sys.exit(3)); tensor.close()").returncode == 3


def test_sys_exit_in_a_callback_of_ctypes_does_not_exit():
    done = run("dlpack_ctypes", """
import ctypes
leave = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: sys.exit(3))
dlpack.call(dlpack.lib.dlrs_attach, tensor.pointer, ctypes.cast(leave, ctypes.c_void_p), None, 0)
tensor.close()
print("alive")
""")
    assert (done.returncode, done.stdout) == (0, "alive\n") and "SystemExit" in done.stderr


WORK = """
def work():
    # Everything about memory works in a child: also with what the parent made.
    clone = tensor.clone()
    assert (np.from_dlpack(clone) == array).all()
    dlpack.copy(dlpack.from_dlpack(array * 2), clone)
    assert np.from_dlpack(clone)[5] == 10
    big = dlpack.from_dlpack(np.zeros((2000, 2000)).T).clone()  # by several threads
    assert not np.from_dlpack(big).any()
    tensor.close()
    return True
"""


@BINDINGS
def test_fork(binding):
    done = run(binding, WORK + """
dlpack.from_dlpack(np.zeros((2000, 2000)).T).clone()
for _ in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    assert os.waitpid(child, 0)[1] == 0
assert work()
print("done")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@BINDINGS
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(binding, method, tmp_path):
    script = tmp_path / "main.py"
    script.write_text(START.format(binding=binding) + WORK + f"""
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print(pool.apply(work), work())
""")
    done = subprocess.run([sys.executable, "-B", str(script)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": str(EXAMPLES)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")


@pytest.mark.parametrize("script", ["hello_ctypes.py", "hello_cffi.py", "demo.py"])
def test_examples_run(script):
    done = subprocess.run([sys.executable, "-B", str(EXAMPLES / script)], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_casts():
    done = subprocess.run([sys.executable, "-B", str(Path(__file__).with_name("test_cast.py")),
                           dlpack_ctypes.lib._name], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


def test_casts_of_random_layouts():
    done = subprocess.run([sys.executable, "-B", str(Path(__file__).with_name("random_casts.py")),
                           dlpack_ctypes.lib._name, "600", "7"],
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "600 passed, 0 failed (seed 7)\n"), \
        done.stdout + done.stderr


def test_copies_of_random_views():
    done = subprocess.run([sys.executable, "-B", str(Path(__file__).with_name("long.py")), "2000",
                           "7"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "DLPACK_RS_LIBRARY": dlpack_ctypes.lib._name})
    assert (done.returncode, done.stdout) == (0, "long: 2000 copies equal NumPy's, seed 7\n"), \
        done.stdout + done.stderr


def test_between_processes():
    done = subprocess.run([sys.executable, "-B", EXAMPLES / "processes.py"], capture_output=True,
                          text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("0 [[7.0, 3.0], [8.0, 4.0], [9.0, 5.0]] [[8.0], [4.0]]\n"
                           "True [[7.0, 8.0, 9.0], [3.0, 4.0, 5.0]] 7.0\n")
