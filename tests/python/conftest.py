"""Every test that takes `dlpack` runs twice: through ctypes and through cffi."""

import gc
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))
sys.path.append(str(ROOT / "python"))  # an installed wheel takes precedence
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / "target" / "hypothesis"))

collect_ignore = ["test_cast.py"]  # a separate program, run by test_examples.py


def pytest_collection_finish():
    """What was imported and collected is not searched by each gc.collect() of a test."""
    gc.collect()
    gc.freeze()


if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.exit("NumPy before 2.1 knows nothing of DLPack 1.0; use Python 3.10 or newer", 1)


@pytest.fixture(params=["dlpack_ctypes", "dlpack_cffi"], ids=["ctypes", "cffi"])
def dlpack(request):
    """The binding. Afterwards no callback and no capsule may be left over."""
    import capsules

    binding = importlib.import_module(request.param)
    yield binding
    gc.collect()
    capsules.sweep()
    assert not capsules.watched, "a callback never ran, or a capsule is still out"




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
