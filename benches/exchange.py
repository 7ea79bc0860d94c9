"""The cost of one exchange in Python: nanoseconds per call, next to NumPy, torch and tvm-ffi.

float32 of 3 x 4 on the CPU; includes the call from Python, its result and the result's release.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
import py_module  # noqa: E402  loads the library of DLPACK_RS_LIBRARY

try:
    import torch
except ImportError:
    torch = None
try:
    import tvm_ffi
except ImportError:
    tvm_ffi = None

# Operation; our target as a share of the fastest other one; and the calls.
ROWS = (
    ("from_dlpack(NumPy array)", 1.0, {"ours": "ours(array)", "NumPy": "numpy(array)",
                                       "torch": "torch(array)", "tvm-ffi": "tvm(array)"}),
    ("from_dlpack(torch tensor)", 1.0, {"ours": "ours(x)", "NumPy": "numpy(x)",
                                        "torch": "torch(x)", "tvm-ffi": "tvm(x)"}),
    ("from_dlpack(our Tensor)", None, {"ours": "ours(t)", "NumPy": "numpy(t)",
                                       "torch": "torch(t)", "tvm-ffi": "tvm(t)"}),
    ("__dlpack__(max_version=(1, 3))", 1.0, {"ours": "t.__dlpack__(max_version=version)",
                                             "NumPy": "array.__dlpack__(max_version=version)",
                                             "torch": "x.__dlpack__(max_version=version)",
                                             "tvm-ffi": "v.__dlpack__(max_version=version)"}),
    ("copy()", None, {"ours": "t.copy()", "NumPy": "array.copy()", "torch": "x.clone()"}),
    ("[:, ::2]", None, {"ours": "t[key]", "NumPy": "array[key]", "torch": "x[key]"}),
    (".T", None, {"ours": "t.T", "NumPy": "array.T", "torch": "x.T"}),
    ("reshape(4, 3)", None, {"ours": "t.reshape(4, 3)", "NumPy": "array.reshape(4, 3)",
                             "torch": "x.reshape(4, 3)"}),
)


def names():
    """The names in the calls; each exchange has been checked."""
    module, array = py_module.load(), np.arange(12, dtype=np.float32).reshape(3, 4)
    found = {"array": array, "numpy": np.from_dlpack, "ours": module.from_dlpack,
             "t": module.from_dlpack(array), "version": (1, 3),
             "key": (slice(None), slice(None, None, 2))}
    assert found["t"].data_ptr == array.ctypes.data
    assert np.from_dlpack(found["t"]).ctypes.data == array.ctypes.data
    assert found["t"].copy().tolist() == array.tolist()
    if torch:
        found |= {"torch": torch.from_dlpack, "x": torch.arange(12.0).reshape(3, 4)}
        assert module.from_dlpack(found["x"]).data_ptr == found["x"].data_ptr()
    if tvm_ffi:
        found |= {"tvm": tvm_ffi.from_dlpack, "v": tvm_ffi.from_dlpack(array)}
    return found


def works(calls, found):
    """The calls that succeed, as functions; the others are not installed, or not possible."""
    known = {}
    for who, call in calls.items():
        work = eval(f"lambda: {call}", found)
        try:
            work()
        except (NameError, BufferError, TypeError, RuntimeError):
            continue
        known[who] = work
    return known


def processes():
    """Operations as long as a process: of a bare interpreter, and with the package."""
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    start = partial(subprocess.run, check=True, env={**os.environ, "PYTHONPATH": path})
    return {"bare": lambda: start([sys.executable, "-c", "pass"]),
            "ours": lambda: start([sys.executable, "-c", "import dlpack_rs"])}
