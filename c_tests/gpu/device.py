#!/usr/bin/env python3
"""The device layer on a real GPU: device.py cuda|rocm ACTION

  test       the catalogue's rows, the threads and events recorded for tensors, the same programs as on
             the stand-ins; torch, CuPy and JAX; CUDA: the trace of driver calls that the stand-in repeats
  sanitize   CUDA: the catalogue's rows under compute-sanitizer, those of kernels with all its tools
  bench ...  benches/gpu.py, which writes benches/results/gpu
  build      only builds, into target/cuda or target/rocm
  rehearse   test and a short bench on the stand-in, to try this without a GPU
  lease SECONDS [rehearse]   what a card is used for that is lent: steps in the order of risk, all before one
             deadline; after an earlier `build`, with a driver and this Python only

Without cargo and gcc an earlier `build` is used. After each step a line of JSON goes to the output and to
target/VENDOR/lease.jsonl, so that a kill loses one step. Exit status 0: nothing failed, 1: something
did, 3: there is no driver. The last line is "N passed, N failed"."""
import importlib.util
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
HERE = ROOT / "c_tests/gpu"
FILES = {"cuda": ["libcuda.so.1"],
         "rocm": [f"libamdhip64.so{end}" for end in (".7", ".6", ".5", "")]}
CALLS = {"cuda": ("cuInit", "cuDeviceGetCount", "cuDriverGetVersion"),
         "rocm": ("hipInit", "hipGetDeviceCount", "hipRuntimeGetVersion")}
ACTIONS = {"cuda": "test sanitize bench build rehearse lease", "rocm": "test bench build rehearse lease"}
PROGRAMS = {"catalogue_d": "catalogue_*.c", "threads": "threads.c", "ready": "ready.c"}
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed", re.M)
NO_DRIVER = 3


def build(vendor, out):
    """Whatever can be built here; the rest must have been carried here."""
    (out / "lib").mkdir(parents=True, exist_ok=True)
    library = out / "lib/libdlpack_rs.so"
    if shutil.which("cargo"):
        subprocess.run(["make", "-s", "build"], cwd=ROOT, check=True)
        # Copies instead of links, so that they can be moved to another machine.
        shutil.copy(ROOT / "target/lib/libdlpack_rs.so", library)
        name = subprocess.run([ROOT / "crates/cdylib/soname.sh"], capture_output=True, text=True, check=True)
        (out / "lib" / name.stdout.strip()).unlink(missing_ok=True)
        (out / "lib" / name.stdout.strip()).symlink_to(library.name)
    if shutil.which("gcc"):
        gcc = ["gcc", "-std=gnu11", "-g", "-O1", f"-I{ROOT}/include", f"-I{ROOT}/c_tests"]
        shared = [HERE / "gpu.c", ROOT / "c_tests/harness.c", ROOT / "c_tests/inject.c"]
        linked = [f"-L{out}/lib", "-Wl,-rpath,$ORIGIN/lib", "-ldlpack_rs", "-lpthread", "-ldl"]
        for name, files in PROGRAMS.items():
            subprocess.run([*gcc, *HERE.glob(files), *shared, "-o", out / name, *linked], check=True)
        trace = ROOT / "c_tests/standin/trace.c"
        subprocess.run([*gcc, trace, "-o", out / "trace", "-lpthread", "-ldl"], check=True)
        if shutil.which("g++"):
            subprocess.run([ROOT / "c_tests/standin/build.sh", out / "standin"], check=True)
    if vendor == "cuda" and shutil.which("nvcc"):  # the compared program that only nvcc compiles
        flags = os.environ.get("NVCC_FLAGS", "-arch=native").split()
        nvcc = ["nvcc", "-O3", "-std=c++17", *flags, "-shared", "-Xcompiler", "-fPIC",
                ROOT / "benches/cccl.cu", "-o", out / "libcccl.so"]
        if subprocess.run(nvcc, check=False).returncode:
            print("not run: CCCL, nvcc does not compile benches/cccl.cu (NVCC_FLAGS=-arch=sm_90 elsewhere)")
    if missing := [name for name in ("lib/libdlpack_rs.so", "trace", *PROGRAMS) if not (out / name).exists()]:
        sys.exit(f"{out}/{missing[0]} is missing: install cargo and gcc, or carry a `build` from elsewhere")


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


def python_with_frameworks(vendor):
    """This Python if it has torch and CuPy; else a virtual environment with the system's packages, into which
    pip installs them where it can. PyPI has none for ROCm: AMD's packages are used if present."""
    if all(importlib.util.find_spec(name) for name in ("numpy", "torch", "cupy")):
        return sys.executable
    python = ROOT / f"target/venv-{vendor}/bin/python"
    venv = [sys.executable, "-m", "venv", "--system-site-packages", python.parents[1]]
    if subprocess.run(venv, check=False).returncode:
        return sys.executable
    needs = {"numpy": "numpy"}
    if vendor == "cuda":
        version = "import ctypes; v = ctypes.c_int(); ctypes.CDLL('libcuda.so.1').cuDriverGetVersion(ctypes.byref(v)); " \
                  "print(v.value // 1000)"
        major = subprocess.run([python, "-c", version], capture_output=True, text=True, check=False).stdout.strip()
        needs |= {"torch": "torch", "cupy": f"cupy-cuda{major}x"}
    for module, package in needs.items():
        pip = f"import {module}' 2>/dev/null || {python} -m pip install -q --disable-pip-version-check {package}"
        if subprocess.run(f"{python} -c '{pip} >/dev/null 2>&1", shell=True, check=False).returncode:
            print(f"not run: {module} is not installed, and pip cannot install {package}")
    return str(python)


def steps(vendor, action, out, standin):
    """Name, most seconds, command; None where its program is missing."""
    rows, lent = str(out / "catalogue_d"), action == "lease"
    checker = shutil.which("compute-sanitizer", path=f"/usr/local/cuda/bin:{os.environ.get('PATH', '')}")
    # Rejected driver calls are deliberate, and the rows check them.
    options = ["--report-api-errors", "no", "--target-processes", "all", "--error-exitcode", "9", rows, vendor]

    def checked(tool, *arguments):
        return checker and [checker, "--tool", tool, *options, *arguments]

    yield "driver", 30, probe(vendor, standin)
    if action == "sanitize":
        for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
            yield f"{tool} of D11", 7200, checked(tool, "--list", "D11")
        yield "memcheck", 7200, checked("memcheck", "--list")
        return
    yield "catalogue", 60 if lent else 1800, [rows, vendor, "--list"]
    yield "ready", 30 if lent else 600, [str(out / "ready"), vendor]
    yield "threads", 30 if lent else 600, [str(out / "threads"), vendor, "50" if lent else "200"]
    if lent:
        yield "order and batches, streams held back", 30, [rows, vendor, "--list", "D27"]
        yield "random copies", 130, [rows, vendor, "--random", "10" if standin else "120"]
    if vendor == "cuda":
        trace = [out / "trace", "libcuda.so.1", ROOT / "crates/gpu/src/kernels.ptx",
                 ROOT / "c_tests/standin/trace_cuda.txt"]
        yield "trace", 30, [str(part) for part in trace]
    if lent or standin:
        quick = ["--quick", "--no-peers"] if standin else []
        yield "benchmark", 300, [sys.executable, "-B", str(ROOT / "benches/gpu.py"), "--vendor", vendor, *quick]
    if lent and vendor == "cuda":
        for tool in ("memcheck", "racecheck"):
            yield tool, 90, checked(tool, "--random", "30")
    if not lent and not standin:
        subprocess.run([sys.executable, "-B", "python/generate_abi.py"], cwd=ROOT, check=True)
        yield "torch, CuPy and JAX", 1800, [python_with_frameworks(vendor), "-B", str(ROOT / "tests/gpu/frameworks.py"), vendor]


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
    vendor, action, *rest = [*sys.argv[1:], "", ""][: max(2, len(sys.argv) - 1)]
    if action not in ACTIONS.get(vendor, "").split() or (action == "lease" and not (rest and rest[0].isdigit())):
        sys.exit(__doc__)
    out, standin = ROOT / "target" / vendor, action == "rehearse" or rest[1:] == ["rehearse"]
    if action != "lease":
        build(vendor, out)
    if action == "build":
        return 0
    if action == "bench":
        bench = [python_with_frameworks(vendor), "-B", str(ROOT / "benches/gpu.py"), "--vendor", vendor, *rest]
        return subprocess.run(bench, check=False).returncode
    deadline = time.monotonic() + (int(rest[0]) if action == "lease" else 1 << 20)
    environment = dict(os.environ, GPU_ROW_SECONDS="1200" if action == "sanitize" else "200",
                       PYTHONPATH=str(ROOT / "python"), DLPACK_RS_LIBRARY=str(out / "lib/libdlpack_rs.so"))
    if standin:
        environment["LD_LIBRARY_PATH"] = str(out / "standin" / ("cuda" if vendor == "cuda" else "hip6"))
    passed = failed = 0
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lease.jsonl", "a") as record:
        for name, limit, command in steps(vendor, action, out, standin):
            began = time.monotonic()
            line = {"step": name}
            if command is None or not os.access(command[0], os.X_OK):
                line["not run"] = f"{command[0] if command else 'compute-sanitizer'} is missing"
            elif deadline - began < 3:
                line["not run"] = "no time is left"
            else:
                status, said = run(command, min(limit, deadline - began), environment, out / "lease.log")
                counts = CLOSING.findall(said)
                good, bad = map(int, counts[-1]) if counts else (0, 0)
                bad = max(bad, int(status != 0))
                line |= {"status": "too late" if status is None else status, "passed": good, "failed": bad,
                         "seconds": round(time.monotonic() - began, 1), "said": said.strip()[-400:]}
                if bad:
                    line["said"] = said.strip()[-4000:]
                passed, failed = passed + good, failed + bad
            print(json.dumps(line), flush=True)
            print(json.dumps(line), file=record, flush=True)
            if name == "driver" and failed:
                return NO_DRIVER
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
