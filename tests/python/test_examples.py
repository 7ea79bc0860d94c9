"""The programs of examples/python and of this folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLES
from dlpack_rs import abi

HERE = Path(__file__).resolve().parent


def program(*command, **environment):
    return subprocess.run([sys.executable, "-B", "-X", "faulthandler", *map(str, command)],
                          capture_output=True, text=True, timeout=120, cwd=EXAMPLES,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path),
                               **environment})


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
