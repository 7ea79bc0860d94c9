#!/usr/bin/env python3
"""NumPy with its DLPack support replaced by dlpack.c of this folder: build, test, compare, measure.

    run.py [INCLUDE LIBDIR]      of a built library; default: target/include target/lib

NumPy's source archive comes from the package index. Its extension module is built optimised and
linked twice, with NumPy's dlpack.c and with ours; each goes into a copy of the same version's
wheel. Then NumPy's own tests of DLPack run on ours, differential.py compares the answers of both,
and measure.py their time. What came out is written to results.json. What was built stays in
target/adopt/numpy, so that a second run builds dlpack.c alone. JOBS=1 limits the processors.
"""
import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WORK = ROOT / "target/adopt/numpy"
REQUIREMENTS = HERE / "requirements.txt"
VERSION = re.search(r"^numpy==(.*)$", REQUIREMENTS.read_text(), re.M)[1]
SHA256 = "f3a3570c4a2a16746ac2c31a7c7c7b0c186b95ce902e33db6f28094ed7387dda"
ENVIRONMENT = {**os.environ, "PATH": f"{WORK}/venv/bin:{os.environ['PATH']}"}
PYTHON = WORK / "venv/bin/python"
SOURCE, BUILD = WORK / f"numpy-{VERSION}", WORK / "build"
MODULE = f"_multiarray_umath{sysconfig.get_config_var('EXT_SUFFIX')}"
MOST_LINES, MOST_RATIO = 115, 1.1


def run(*command, **options):
    options = {"env": ENVIRONMENT, "check": True, **options}
    return subprocess.run([str(word) for word in command], **options)


def ask(*command, **options):
    return run(*command, stdout=subprocess.PIPE, text=True, **options).stdout


def prepare():
    """The virtual environment and NumPy's sources."""
    stamp = WORK / "venv/asked.txt"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        venv.create(WORK / "venv", with_pip=True, clear=True)
        run(PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS)
        stamp.write_text(REQUIREMENTS.read_text())
    archive = WORK / f"numpy-{VERSION}.tar.gz"
    if not archive.exists():
        # pip wants to know an archive's metadata before it keeps it, which configures NumPy; the
        # module mesonpy of this folder spares that.
        run(PYTHON, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
            "--no-binary", ":all:", "--no-build-isolation", "-d", WORK, f"numpy=={VERSION}",
            env={**ENVIRONMENT, "PYTHONPATH": str(HERE / "metadata"), "NUMPY_VERSION": VERSION})
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{archive}: not the archive whose hash is in {__file__}")
    if not SOURCE.exists():
        shutil.unpack_archive(archive, WORK / "unpacked")
        (WORK / f"unpacked/numpy-{VERSION}").rename(SOURCE)


def build():
    """NumPy's own extension module, as optimised as a release."""
    if not (BUILD / "build.ninja").exists():
        run(PYTHON, SOURCE / "vendored-meson/meson/meson.py", "setup", BUILD, SOURCE,
            "--buildtype=release", "-Db_ndebug=if-release", "-Dcpu-dispatch=none", "-Dblas=none",
            "-Dlapack=none", "-Dallow-noblas=true", stdout=subprocess.DEVNULL)
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    run("ninja", "--quiet", "-C", BUILD, "-j", jobs, f"numpy/_core/{MODULE}")


def link(include, lib):
    """The same objects with our dlpack.c, for the library where it is."""
    ours = WORK / "dlpack.o"
    compiled = json.loads(ask("ninja", "-C", BUILD, "-t", "compdb"))
    entry = next(e for e in compiled if e["file"].endswith("multiarray/dlpack.c") and
                 "_multiarray_umath" in e["output"])
    words = shlex.split(entry["command"])
    words[words.index(entry["file"])] = HERE / "dlpack.c"
    words[words.index("-o") + 1] = ours
    written = words.index("-MD")  # -MD -MQ output -MF file: what the object of NumPy depends on
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
    """Two copies of the wheel, which share what is not replaced; where they are."""
    wheel = Path(ask(PYTHON, "-c", "import numpy; print(numpy.__path__[0])").strip()).parent
    for name, module in (("base", BUILD / "numpy/_core" / MODULE), ("ours", WORK / MODULE)):
        shutil.rmtree(WORK / name, ignore_errors=True)
        for package in ("numpy", "numpy.libs"):
            if (wheel / package).exists():
                shutil.copytree(wheel / package, WORK / name / package, copy_function=os.link,
                                ignore=shutil.ignore_patterns("__pycache__"))
        (WORK / name / "numpy/_core" / MODULE).unlink()
        shutil.copy(module, WORK / name / "numpy/_core" / MODULE)
    return {name: {**ENVIRONMENT, "PYTHONPATH": str(WORK / name), "PYTHONDONTWRITEBYTECODE": "1"}
            for name in ("base", "ours")}


def own_tests(environment):
    """What NumPy's tests of DLPack say, as pytest's counts."""
    done = run(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs",
               "numpy._core.tests.test_dlpack", env=environment, cwd=WORK, check=False,
               stdout=subprocess.PIPE, text=True)
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    if done.returncode:
        print(done.stdout)
    return {"passed": 0, "failed": 0, **counts}


def differential(environments):
    for name, environment in environments.items():
        (WORK / f"{name}.json").write_text(
            ask(PYTHON, HERE / "differential.py", "answers", env=environment))
    return json.loads(ask(PYTHON, HERE / "differential.py", "compare", WORK / "base.json",
                          WORK / "ours.json", check=False))


def measure(environments):
    least = {}
    for _ in range(7):  # in turn: what else runs here is the same for both
        for name, environment in environments.items():
            for call, ns in json.loads(ask(PYTHON, HERE / "measure.py", env=environment)).items():
                row = least.setdefault(call, {})
                row[name] = min(ns, row.get(name, ns))
    return {call: {"numpy_ns": round(row["base"], 1), "ours_ns": round(row["ours"], 1),
                   "ratio": round(row["ours"] / row["base"], 3)} for call, row in least.items()}


def lines_of_code(path):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    return sum(bool(line.strip()) for line in text.splitlines())


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.processor()


def main():
    places = sys.argv[1:3] or [ROOT / "target/include", ROOT / "target/lib"]
    include, lib = (Path(place).resolve() for place in places)
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        sys.exit("make adopt-numpy needs Python.h: apt-get install python3-dev")
    WORK.mkdir(parents=True, exist_ok=True)
    prepare()
    build()
    link(include, lib)
    environments = install()
    results = {
        "date": datetime.date.today().isoformat(),
        "numpy": VERSION,
        "dlpack_rs": re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1],
        "python": platform.python_version(),
        "compiler": ask(*shlex.split(os.environ.get("CC", "gcc")), "--version").splitlines()[0],
        "processor": processor(),
        "lines": {"numpy": lines_of_code(SOURCE / "numpy/_core/src/multiarray/dlpack.c"),
                  "ours": lines_of_code(HERE / "dlpack.c"), "most": MOST_LINES},
        "numpy_tests": own_tests(environments["ours"]),
        "differential": differential(environments),
        "exchange": measure(environments),
    }
    text = json.dumps(results, indent=2)
    print(text)
    (HERE / "results.json").write_text(text + "\n")
    checks = [results["lines"]["ours"] <= MOST_LINES, not results["differential"]["faults"],
              results["numpy_tests"]["passed"] > 0 and not results["numpy_tests"]["failed"]]
    for call, row in results["exchange"].items():
        if row["ratio"] > MOST_RATIO:  # a finding, and not a failed test: it is a measurement
            print(f"finding: {call} takes {row['ratio']} x NumPy's own time, aim {MOST_RATIO}")
    print(f"adopt-numpy: {sum(checks)} passed, {len(checks) - sum(checks)} failed")
    sys.exit(not all(checks))


if __name__ == "__main__":
    main()
