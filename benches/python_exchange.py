"""What one exchange costs in Python: nanoseconds a call, next to NumPy, torch and tvm-ffi.

    bench.sh python                 prints a table
    bench.sh python --write         writes docs/bench_python.md as well

All in one run, interleaved: every round times each call once, in another order, and a ratio is the
median of the ratios of single rounds. The results are checked before they are timed. Nothing here
is a test.
"""

import argparse
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from timeit import Timer

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
sys.path.insert(1, str(ROOT / "benches"))
import py_module  # noqa: E402
from report import processor, table  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
try:
    import tvm_ffi
except ImportError:
    tvm_ffi = None

m = py_module.load()
SHAPE = (3, 4)

# What, whose (the first is ours), target of ours as a share of the fastest other one.
CASES = {
    "from_dlpack(NumPy array)": ({"ours": "ours(array)", "NumPy": "numpy(array)",
                                  "torch": "torch(array)", "tvm-ffi": "tvm(array)"}, 0.8),
    "from_dlpack(torch tensor)": ({"ours": "ours(x)", "NumPy": "numpy(x)", "torch": "torch(x)",
                                   "tvm-ffi": "tvm(x)"}, 1.0),
    "from_dlpack(our Tensor)": ({"ours": "ours(t)", "NumPy": "numpy(t)", "torch": "torch(t)",
                                 "tvm-ffi": "tvm(t)"}, None),
    "__dlpack__(max_version=(1, 3))": ({"ours": "t.__dlpack__(max_version=version)",
                                        "NumPy": "array.__dlpack__(max_version=version)",
                                        "torch": "x.__dlpack__(max_version=version)",
                                        "tvm-ffi": "v.__dlpack__(max_version=version)"}, 1.0),
    "copy()": ({"ours": "t.copy()", "NumPy": "array.copy()", "torch": "x.clone()"}, 1.0),
    "[1]": ({"ours": "t[1]", "NumPy": "array[1]", "torch": "x[1]"}, None),
    "[:, ::2]": ({"ours": "t[key]", "NumPy": "array[key]", "torch": "x[key]"}, None),
    ".T": ({"ours": "t.T", "NumPy": "array.T", "torch": "x.T"}, None),
    "reshape(4, 3)": ({"ours": "t.reshape(4, 3)", "NumPy": "array.reshape(4, 3)",
                       "torch": "x.reshape(4, 3)"}, None),
    ".shape": ({"ours": "t.shape", "NumPy": "array.shape", "torch": "x.shape"}, None),
}


def names():
    """What the calls see."""
    array = np.arange(12, dtype=np.float32).reshape(SHAPE)
    found = {"array": array, "numpy": np.from_dlpack, "ours": m.from_dlpack,
             "t": m.from_dlpack(array), "version": (1, 3),
             "key": (slice(None), slice(None, None, 2))}
    if torch:
        torch.set_num_threads(1)
        found |= {"torch": torch.from_dlpack, "x": torch.arange(12.0).reshape(SHAPE)}
    if tvm_ffi:
        found |= {"tvm": tvm_ffi.from_dlpack, "v": tvm_ffi.from_dlpack(array)}
    return found


def check(found):
    """They do what they say."""
    array = found["array"]
    assert m.from_dlpack(array).data_ptr == array.ctypes.data
    assert m.from_dlpack(array).copy().tolist() == array.tolist()
    assert np.from_dlpack(found["t"]).ctypes.data == array.ctypes.data
    if torch:
        assert m.from_dlpack(found["x"]).data_ptr == found["x"].data_ptr()


def measure(calls, found, rounds, count):
    """Nanoseconds a call: one dictionary per round."""
    timers = {who: Timer(call, globals=found) for who, call in calls.items()}
    for timer in timers.values():
        timer.timeit(count)
    turns, order = [], list(timers)
    for _ in range(rounds):
        random.shuffle(order)
        turns.append({who: timers[who].timeit(count) / count * 1e9 for who in order})
    return turns


def rows(rounds, count):
    """One row per case."""
    found = names()
    check(found)
    for what, (calls, target) in CASES.items():
        known = {}
        for who, call in calls.items():
            try:
                eval(call, found)
            except (NameError, BufferError, TypeError, RuntimeError):
                continue  # not installed, or refuses
            known[who] = call
        turns = measure(known, found, rounds, count)
        times = {who: median(turn[who] for turn in turns) for who in known}
        others = {who: time for who, time in times.items() if who != "ours"}
        best = min(others, key=others.get)
        ratio = median(turn["ours"] / turn[best] for turn in turns)
        verdict = "" if target is None else "yes" if ratio <= target else "no"
        yield [what, *(f"{times[who]:.0f}" if who in times else "–"
                       for who in ("ours", "NumPy", "torch", "tvm-ffi")),
               f"{ratio:.2f}", best, "–" if target is None else f"{target:.1f}", verdict]


def start_ms(script, count=15):
    """Milliseconds of a whole process, at best."""
    def once():
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-B", "-c", script], check=True,
                       cwd=ROOT / "tests" / "python", env={**os.environ})
        return time.perf_counter() - begin
    return 1e3 * min(once() for _ in range(count))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    rounds, count = (5, 2000) if asked.quick else (41, 10_000)
    head = ["call", "ours", "NumPy", "torch", "tvm-ffi", "ours / fastest other", "which", "target",
            "met"]
    text = table(head, list(rows(rounds, count)))
    bare, ctypes_only = start_ms("pass"), start_ms("import ctypes")
    loaded = start_ms(f"""import ctypes
make, module = ctypes.PyDLL({py_module.LIBRARY!r}).dlrs_py_module, ctypes.py_object()
assert make(ctypes.byref(module), None) == 0""")
    peers = [f"NumPy {np.__version__}"]
    peers += [f"torch {torch.__version__}"] if torch else []
    peers += [f"tvm-ffi {tvm_ffi.__version__}"] if tvm_ffi else []
    load = " ".join(f"{part:.1f}" for part in os.getloadavg())
    text = f"""# Exchange in Python

Written by `make bench-python`. Nanoseconds a call, float32 of 3 × 4 on the CPU; the call from
Python, the result and its release included. Every round times each call once, {rounds} rounds of
{count} calls; the ratio is the median over rounds.

{processor()}; Python {platform.python_version()}, {", ".join(peers)}; load average {load}.

{text}
A process that does nothing takes {bare:.1f} ms, one that imports ctypes {ctypes_only:.1f} ms, one
that has our module {loaded:.1f} ms.
"""
    print(text)
    if asked.write:
        (ROOT / "docs" / "bench_python.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
