#!/usr/bin/env python3
"""Runs the conformance kit on every system of systems/ and writes what it found.

    conform.py [SYSTEM...]

Each system has the environment that run.py makes. Verdicts go to docs/conformance/SYSTEM.json, and
docs/conformance.md is written from all files there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import run

ROOT, HERE = run.ROOT, run.HERE
DATA = ROOT / "docs" / "conformance"
PAGE = ROOT / "docs" / "conformance.md"
# What the kit itself knows how to reach; others by library.py.
KNOWN = ("dlpack_rs", "numpy", "torch", "jax", "tensorflow", "tvm_ffi", "pyarrow")
# Those that need a GPU, or only hand on what another system exports.
LEFT_OUT = ("cupy", "torch_cuda", "dask", "numba", "mpi4py_mpich", "mpi4py_openmpi")
SEVERITIES = ("MUST", "SHOULD", "ROBUST")
VIOLATIONS = ("fail", "crash", "hang")
SECONDS = 30 * 60


def judge(name):
    """Writes the verdicts about a system; says why where there are none."""
    system = run.declared("numpy" if name == "dlpack_rs" else name)
    system["folder"] = run.VENVS / system["venv"]
    python, why = run.environment(system, run.Deadline(run.PIP_SECONDS), False)
    if python is None:
        return why
    library = name if name in KNOWN else f"library:System({name!r})"
    where = os.pathsep.join([str(ROOT / "python"), str(HERE)])
    done = subprocess.run(
        [python, "-B", "-m", "dlpack_rs", "conform", library, "--json"],
        env={**os.environ, "PYTHONPATH": where,
             "DLPACK_RS_LIBRARY": str(ROOT / "target" / "lib" / "libdlpack_rs.so")},
        capture_output=True, text=True, timeout=SECONDS)
    if done.returncode not in (0, 1) or not done.stdout:
        return (done.stderr.strip().splitlines() or ["no output"])[-1]
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.json").write_text(done.stdout)
    return ""


def short(text):
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


def page():
    """The page, from all data."""
    found = [json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))]
    lines = [
        "# Conformance",
        "",
        "Written by `make conform` from [docs/conformance](conformance); do not edit. Each system",
        f"was judged by {max(len(one['checks']) for one in found)} checks, each in a process of",
        "its own: `python -m dlpack_rs conform numpy`; `--explain P15` gives a rule's source.",
        "",
        "MUST: other programs break. SHOULD: what consumers rely on. ROBUST: input that no correct",
        "producer gives.",
        "",
        "| system | version | passed | skipped | MUST | SHOULD | ROBUST | crashes |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for one in found:
        checks = one["checks"]
        wrong = [check for check in checks if check["outcome"] in VIOLATIONS]
        counts = [sum(check["severity"] == severity for check in wrong)
                  for severity in SEVERITIES]
        passed = sum(check["outcome"] in ("pass", "note") for check in checks)
        skipped = sum(check["outcome"] == "skip" for check in checks)
        crashes = sum(check["outcome"] != "fail" for check in wrong)
        lines.append(f"| {one['library']} | {one['version']} | {passed} | {skipped} | "
                     f"{counts[0]} | {counts[1]} | {counts[2]} | {crashes} |")
    for one in found:
        wrong = [check for check in one["checks"]
                 if check["outcome"] in VIOLATIONS and check["severity"] in SEVERITIES]
        if not wrong:
            continue
        lines += ["", f"## {one['library']} {one['version']}", "",
                  "| check | severity | rule | found |", "| --- | --- | --- | --- |"]
        for check in sorted(wrong, key=lambda check: SEVERITIES.index(check["severity"])):
            outcome = "" if check["outcome"] == "fail" else f"{check['outcome']}: "
            lines.append(f"| {check['id']} | {check['severity']} | {short(check['rule'])} | "
                         f"{outcome}{short(check['text'])} |")
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    names = sys.argv[1:] or ["dlpack_rs",
                             *(name for name in run.systems() if name not in LEFT_OUT)]
    missing = 0
    for name in names:
        why = judge(name)
        missing += bool(why)
        print(f"{name}: {why or 'judged'}", flush=True)
    page()
    return missing > 0


if __name__ == "__main__":
    sys.exit(main())
