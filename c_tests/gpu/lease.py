#!/usr/bin/env python3
"""What a card that is lent for a while is used for: lease.py cuda|rocm SECONDS [rehearse]

Steps in the order of risk, each under a time limit, all before one deadline; a JSON line after
each, in target/VENDOR/lease.jsonl too, so that a kill loses one step. Needs a driver, Python, and
what `device.sh VENDOR build` left in target/VENDOR. `rehearse` runs on the stand-in. Exit status 0:
nothing failed, 1: something did, 3: there is no driver."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {"cuda": ["libcuda.so.1"],
         "rocm": [f"libamdhip64.so{end}" for end in (".7", ".6", ".5", "")]}
CALLS = {"cuda": ("cuInit", "cuDeviceGetCount", "cuDriverGetVersion"),
         "rocm": ("hipInit", "hipGetDeviceCount", "hipRuntimeGetVersion")}
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def probe(vendor, standin):
    """The driver that is there, or why there is none; in a process of its own, as it may crash."""
    code = f"""
import ctypes
for file in {FILES[vendor]}:
    try: driver = ctypes.CDLL(file)
    except OSError: continue
    break
else: raise SystemExit("not run: no driver here")
init, count, version = {CALLS[vendor]}
n, v = ctypes.c_int(), ctypes.c_int()
code = getattr(driver, init)(0) or getattr(driver, count)(ctypes.byref(n))
if code or not n.value: raise SystemExit(f"not run: {{file}} answers {{code}}, {{n.value}} devices")
if hasattr(driver, "standin_ctl") != {standin}: raise SystemExit(f"not run: {{file}} is another")
getattr(driver, version)(ctypes.byref(v))
print(f"{{file}}, version {{v.value}}: {{n.value}} device(s)")
print("1 passed, 0 failed")
"""
    return [sys.executable, "-c", code]


def steps(vendor, out, standin):
    """Name, most seconds, command; None where its program is missing."""
    rows = str(out / "catalogue_d")
    yield "driver", 30, probe(vendor, standin)
    yield "catalogue", 60, [rows, vendor, "--list"]
    yield "ready", 30, [str(out / "ready"), vendor]
    yield "threads", 30, [str(out / "threads"), vendor, "50"]
    yield "order and batches, streams held back", 30, [rows, vendor, "--list", "D27"]
    yield "random copies", 130, [rows, vendor, "--random", "10" if standin else "120"]
    if vendor == "cuda":
        trace = [out / "trace", "libcuda.so.1", ROOT / "crates/gpu/src/kernels.ptx",
                 ROOT / "c_tests/standin/trace_cuda.txt"]
        yield "trace", 30, [str(part) for part in trace]
    quick = ["--quick", "--no-peers"] if standin else []
    benchmark = [sys.executable, "-B", str(ROOT / "benches/gpu.py"), "--vendor", vendor]
    yield "benchmark", 300, benchmark + quick
    folders = "/usr/local/cuda/bin:" + os.environ.get("PATH", "")
    checker = shutil.which("compute-sanitizer", path=folders)
    for tool in ("memcheck", "racecheck") if vendor == "cuda" else ():
        options = ["--tool", tool, "--report-api-errors", "no", "--target-processes", "all",
                   "--error-exitcode", "9", rows, vendor, "--random", "30"]
        yield tool, 90, checker and [checker, *options]


def run(command, limit, environment, log):
    """Exit status (None: too late), and what it printed."""
    with open(log, "wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment,
                                   start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
    return status, Path(log).read_text(errors="replace")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in FILES or not sys.argv[2].isdigit():
        sys.exit(__doc__.splitlines()[0])
    vendor, standin = sys.argv[1], sys.argv[3:] == ["rehearse"]
    deadline = time.monotonic() + int(sys.argv[2])
    out = ROOT / "target" / vendor
    environment = dict(os.environ, GPU_ROW_SECONDS="200")
    if standin:
        face = "cuda" if vendor == "cuda" else "hip6"
        environment["LD_LIBRARY_PATH"] = str(out / "standin" / face)
    bad = 0
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lease.jsonl", "a") as record:
        for name, limit, command in steps(vendor, out, standin):
            began = time.monotonic()
            line = {"step": name}
            if command is None or not os.access(command[0], os.X_OK):
                line["not run"] = f"{command[0] if command else 'compute-sanitizer'} is missing"
            elif deadline - began < 3:
                line["not run"] = "no time is left"
            else:
                limit = min(limit, deadline - began)
                status, said = run(command, limit, environment, out / "lease.log")
                counts = CLOSING.findall(said)
                line |= {"status": "too late" if status is None else status,
                         "seconds": round(time.monotonic() - began, 1), "said": said.strip()[-400:]}
                if counts:
                    line |= {"passed": int(counts[-1][0]), "failed": int(counts[-1][1])}
                if name == "driver" and status != 0:
                    bad = 3
                elif status != 0:
                    bad = 1
            print(json.dumps(line), flush=True)
            record.write(json.dumps(line) + "\n")
            record.flush()
            if bad == 3:
                break
    sys.exit(bad)


main()
