#!/usr/bin/env python3
"""Runs the conformance kit on every system of systems/ and writes what it found.

    conform.py [SYSTEM...]

Each system has the environment that run.py makes. Verdicts go to docs/conformance/SYSTEM.json, and
docs/conformance.md is written from all files there.
"""

import datetime
import json
import os
import subprocess
import sys

import run

sys.path.insert(0, str(run.ROOT / "python"))

from dlpack_rs.conform import CHECKS  # noqa: E402

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
    write(name, json.loads(done.stdout))
    return ""


def write(name, found):
    """The data of a system: a line for each check, "outcome: text"."""
    verdicts = {check["id"]: ": ".join(filter(None, (check["outcome"], check["text"])))
                for check in found["checks"]}
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(
        {"library": found["library"], "version": found["version"],
         "date": str(datetime.date.today()), "verdicts": verdicts}, indent=0) + "\n")


def violations(found):
    """`(check, outcome, text)` of what counts against a system, the gravest first."""
    for severity in SEVERITIES:
        for name, verdict in found["verdicts"].items():
            outcome, _, text = verdict.partition(": ")
            if outcome in VIOLATIONS and CHECKS[name].severity == severity:
                yield CHECKS[name], outcome, text


def short(text):
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


def page():
    """The page, from all data."""
    found = [json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))]
    lines = [
        "# Conformance",
        "",
        "Written by `make conform` from [docs/conformance](conformance); do not edit. Each system was",
        f"judged by {len(CHECKS)} checks, each in a process of its own, as by",
        "`python -m dlpack_rs conform numpy`; `--explain P15` gives the rule and its source.",
        "",
        "MUST: other programs break. SHOULD: what consumers rely on. ROBUST: input that no correct",
        "producer gives. Twelve of the violations have a short program each that needs only the library",
        "in question and NumPy: [tests/interop/reproducers](../tests/interop/reproducers).",
        "",
        "| system | version | date | passed | skipped | MUST | SHOULD | ROBUST | crashes |",
        "| --- | --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for one in found:
        wrong = list(violations(one))
        counts = [sum(check.severity == severity for check, _, _ in wrong)
                  for severity in SEVERITIES]
        outcomes = [verdict.partition(":")[0] for verdict in one["verdicts"].values()]
        passed, skipped = outcomes.count("pass") + outcomes.count("note"), outcomes.count("skip")
        crashes = sum(outcome != "fail" for _, outcome, _ in wrong)
        lines.append(f"| {one['library']} | {one['version']} | {one['date']} | {passed} | "
                     f"{skipped} | {counts[0]} | {counts[1]} | {counts[2]} | {crashes} |")
    for one in found:
        wrong = list(violations(one))
        if wrong:
            lines += ["", f"## {one['library']} {one['version']}", "",
                      "| check | severity | rule | found |", "| --- | --- | --- | --- |"]
        for check, outcome, text in wrong:
            said = short(text) if outcome == "fail" else f"{outcome}: {short(text)}"
            lines.append(f"| {check.id} | {check.severity} | {short(check.rule)} | {said} |")
    missing = sorted({*run.systems(), "dlpack_rs"} - {path.stem for path in DATA.glob("*.json")})
    lines += ["", f"Not run: {', '.join(missing)}. Of these, {', '.join(LEFT_OUT)} need a GPU, or",
              "only hand on what another system exports."]
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
