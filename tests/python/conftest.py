"""Paths of the tests, and the stand-in drivers."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
sys.path.append(str(ROOT / "python"))  # an installed wheel takes precedence
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / "target" / "hypothesis"))

collect_ignore = ["test_cast.py"]  # a separate program, run by test_examples.py


def pytest_collection_finish():
    """What was imported and collected is not searched by each gc.collect() of a test."""
    gc.collect()
    gc.freeze()


if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.exit("NumPy before 2.1 knows nothing of DLPack 1.0; use Python 3.10 or newer", 1)


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """The folder of the stand-in drivers of c_tests."""
    if not (shutil.which("gcc") and shutil.which("g++")):
        pytest.skip("no gcc or g++")
    folder = tmp_path_factory.mktemp("standin")
    build = ROOT / "c_tests" / "standin" / "build.sh"
    done = subprocess.run([build, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder
