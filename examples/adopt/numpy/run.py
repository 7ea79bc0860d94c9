#!/usr/bin/env python3
"""NumPy with its DLPack support replaced by dlpack.c of this folder: build, test, compare, measure.

    run.py [INCLUDE LIBDIR]      of a built library; default: target/include target/lib

NumPy's source archive comes from the package index. Its extension module is built optimised and
linked twice, with NumPy's dlpack.c and with ours; each is put into a copy of the same version's
wheel. Then NumPy's tests of DLPack run on ours, differential.py compares the results of both,
and measure.py their time. The outcome is written to results.json. The build stays in
target/adopt/numpy, so that a second run builds dlpack.c alone. JOBS=1 limits the processors.
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from adopt import Port, lines_of_code  # noqa: E402

NUMPY = Port("numpy", "5cddc243c75114ba845f01b1f87aca1572dbf7b6c2d88636ed3e1d2bccd7f1bf", "mesonpy")
WORK, SOURCE, BUILD = NUMPY.work, NUMPY.source, NUMPY.work / "build"
HERE, PYTHON, run, ask = NUMPY.here, NUMPY.python, NUMPY.run, NUMPY.ask
MODULE = f"_multiarray_umath{sysconfig.get_config_var('EXT_SUFFIX')}"
MOST_LINES, MOST_RATIO = 230, 1.1


def build():
    """NumPy's extension module, optimised like a release."""
    if not (BUILD / "build.ninja").exists():
        run(PYTHON, SOURCE / "vendored-meson/meson/meson.py", "setup", BUILD, SOURCE,
            "--buildtype=release", "-Db_ndebug=if-release", "-Dcpu-dispatch=none", "-Dblas=none",
            "-Dlapack=none", "-Dallow-noblas=true", stdout=subprocess.DEVNULL)
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    run("ninja", "--quiet", "-C", BUILD, "-j", jobs, f"numpy/_core/{MODULE}")


def link(include, lib):
    """The same objects with our dlpack.c, linked to the built library."""
    ours = WORK / "dlpack.o"
    compiled = json.loads(ask("ninja", "-C", BUILD, "-t", "compdb"))
    entry = next(e for e in compiled if e["file"].endswith("multiarray/dlpack.c") and
                 "_multiarray_umath" in e["output"])
    words = shlex.split(entry["command"])
    words[words.index(entry["file"])] = HERE / "dlpack.c"
    words[words.index("-o") + 1] = ours
    written = words.index("-MD")  # -MD -MQ output -MF file: the dependencies of NumPy's object
    del words[written:written + 5]
    words[1:1] = ["-I", include, "-Wall", "-Wextra", "-Werror=implicit-function-declaration"]
    run(*words, cwd=BUILD)
    last = ask("ninja", "-C", BUILD, "-t", "commands", f"numpy/_core/{MODULE}").splitlines()[-1]
    words = shlex.split(last)
    words[words.index("-o") + 1] = WORK / MODULE
    words[words.index(entry["output"])] = ours
    end = next(i for i, word in enumerate(words) if word == "&&") if "&&" in words else len(words)
    run(*words[:end], f"-L{lib}", "-ldlpack_rs", f"-Wl,-rpath,{lib}", cwd=BUILD)


def install():
    """Two copies of the wheel, which share the unchanged files; returns their paths."""
    wheel = Path(ask(PYTHON, "-c", "import numpy; print(numpy.__path__[0])").strip()).parent
    for name, module in (("base", BUILD / "numpy/_core" / MODULE), ("ours", WORK / MODULE)):
        shutil.rmtree(WORK / name, ignore_errors=True)
        for package in ("numpy", "numpy.libs"):
            if (wheel / package).exists():
                shutil.copytree(wheel / package, WORK / name / package, copy_function=os.link,
                                ignore=shutil.ignore_patterns("__pycache__"))
        (WORK / name / "numpy/_core" / MODULE).unlink()
        shutil.copy(module, WORK / name / "numpy/_core" / MODULE)
    return {name: {**NUMPY.environment, "PYTHONPATH": str(WORK / name),
                   "PYTHONDONTWRITEBYTECODE": "1"} for name in ("base", "ours")}


def measure(environments):
    least = {}
    for _ in range(7):  # alternating: other load affects both alike
        for name, environment in environments.items():
            for call, ns in json.loads(ask(PYTHON, HERE / "measure.py", env=environment)).items():
                row = least.setdefault(call, {})
                row[name] = min(ns, row.get(name, ns))
    return {call: {"numpy_ns": round(row["base"], 1), "ours_ns": round(row["ours"], 1),
                   "ratio": round(row["ours"] / row["base"], 3)} for call, row in least.items()}


def main():
    if sys.version_info < (3, 12):
        sys.exit(f"NumPy {NUMPY.version} needs Python 3.12 or newer: make adopt-numpy PYTHON=...")
    NUMPY.prepare()
    build()
    link(NUMPY.include, NUMPY.lib)
    environments = install()
    theirs, ours = SOURCE / "numpy/_core/src/multiarray/dlpack.c", HERE / "dlpack.c"
    results = {
        **NUMPY.versions(),
        "lines": {"numpy": lines_of_code(theirs.read_text()),
                  "ours": lines_of_code(ours.read_text()), "most": MOST_LINES},
        "numpy_tests": NUMPY.own_tests(environments["ours"], "--pyargs",
                                       "numpy._core.tests.test_dlpack"),
        "differential": NUMPY.differential(environments),
        "exchange": measure(environments),
    }
    for call, row in results["exchange"].items():
        if row["ratio"] > MOST_RATIO:  # a finding, not a failed test: it is a measurement
            print(f"finding: {call} takes {row['ratio']} x NumPy's own time, aim {MOST_RATIO}")
    tests = results["numpy_tests"]
    NUMPY.finish(results, [results["lines"]["ours"] <= MOST_LINES,
                           tests["passed"] > 0 and not tests["failed"],
                           not results["differential"]["faults"]])


if __name__ == "__main__":
    main()
