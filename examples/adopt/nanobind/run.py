#!/usr/bin/env python3
"""nanobind with its DLPack support replaced by nb_ndarray.cpp of this folder: build, test, compare.

    run.py [INCLUDE LIBDIR]      of a built library; default: target/include target/lib

nanobind's source archive comes from the package index. Its library is linked twice into the
extension modules of its tests, with nanobind's nb_ndarray.cpp and with ours. nanobind's tests of
ndarray run on both, and differential.py compares the results of both. The outcome is written
to results.json. Tests that need PyTorch are skipped unless PYTHONPATH has it.
"""
import os
import shlex
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from adopt import Port, lines_of_code  # noqa: E402

NANOBIND = Port("nanobind", "6661e3dc1434d78781ccf7913442d90361dab395c3424efadb63bbb6ddea7ea3",
                "scikit_build_core.build")
SOURCE, BUILD = NANOBIND.source, NANOBIND.work / "build"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MODULES = ("test_ndarray", "differential")
# The parts of nanobind's file that do not concern DLPack: from one text to before another.
PARTS = {"type": ("static PyMethodDef nb_ndarray_methods", "// ====="),
         "frameworks": ("// Per-framework import data", "// Helper function reports"),
         "exports": ("/// Module + attribute of export", "NAMESPACE_END(detail)")}
MOST_LINES = 275


def cut():
    """Writes nanobind's parts, and returns the rest of its file."""
    text = (SOURCE / "src/nb_ndarray.cpp").read_text()
    for name, (first, end) in PARTS.items():
        start = text.index(first)
        part = text[start:text.index(end, start)]
        (BUILD / f"nb_ndarray_{name}.inc").write_text(part)
        text = text.replace(part, "")
    return text


def compile(source, *options):
    """As in nanobind's nb_combined.cpp."""
    made = BUILD / f"{source.parent.name}-{source.stem}.o"
    if source.is_relative_to(SOURCE) and made.exists():
        return made
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    folders = [SOURCE / "include", SOURCE / "ext/robin_map/include", SOURCE / "src", BUILD,
               NANOBIND.include, sysconfig.get_paths()["include"]]
    NANOBIND.run(*compiler, "-std=c++17", "-fvisibility=hidden", "-DNDEBUG", "-fPIC", "-Wall",
                 "-Wextra", *(f"-I{folder}" for folder in folders), *options, "-c", source,
                 "-o", made)
    return made


def build():
    library = ["-O3", "-fno-strict-aliasing", "-ffunction-sections", "-fdata-sections"]
    rest = SOURCE / "src/all_but_ndarray.cpp"
    combined = (SOURCE / "src/nb_combined.cpp").read_text().splitlines(keepends=True)
    rest.write_text("".join(line for line in combined if "nb_ndarray.cpp" not in line))
    shared = compile(rest, *library)
    builds = {"base": [compile(SOURCE / "src/nb_ndarray.cpp", *library)],
              "ours": [compile(NANOBIND.here / "nb_ndarray.cpp", *library), f"-L{NANOBIND.lib}",
                       "-ldlpack_rs", f"-Wl,-rpath,{NANOBIND.lib}"]}
    environments = {}
    for module in MODULES:
        folder = NANOBIND.here if module == "differential" else SOURCE / "tests"
        # Leaks end the process.
        extension = compile(folder / f"{module}.cpp", "-Os", "-DNB_ABORT_ON_LEAK")
        for name, ndarray in builds.items():
            place = NANOBIND.work / name
            place.mkdir(exist_ok=True)
            NANOBIND.run("g++", "-shared", extension, *ndarray[:1], shared, *ndarray[1:],
                         "-o", place / f"{module}_ext{SUFFIX}")
            also = os.environ.get("PYTHONPATH")
            path = f"{place}:{SOURCE}/tests" + (f":{also}" if also else "")
            environments[name] = {**NANOBIND.environment, "PYTHONPATH": path,
                                  "PYTHONDONTWRITEBYTECODE": "1"}
    return environments


def main():
    NANOBIND.prepare()
    BUILD.mkdir(exist_ok=True)
    theirs = lines_of_code(cut())
    environments = build()
    tests = {name: NANOBIND.own_tests(environment, SOURCE / "tests/test_ndarray.py")
             for name, environment in environments.items()}
    ours = lines_of_code((NANOBIND.here / "nb_ndarray.cpp").read_text())
    results = {**NANOBIND.versions(),
               "lines": {"nanobind": theirs, "ours": ours, "most": MOST_LINES},
               "nanobind_tests": tests["ours"], "nanobind_tests_on_its_own_code": tests["base"],
               "differential": NANOBIND.differential(environments)}
    NANOBIND.finish(results, [ours <= MOST_LINES, tests["ours"]["passed"] > 0,
                              tests["ours"] == tests["base"],
                              not results["differential"]["faults"]])


if __name__ == "__main__":
    main()
