#!/usr/bin/env python3
"""Runs the conformance kit on every system of systems/ and writes the verdicts.

    conform.py [--again] [SYSTEM...]
    conform.py --check

Each system has the environment that run.py creates. Verdicts are written to
docs/conformance/SYSTEM.json; --again: only this library's re-exports of the system's tensors are
judged, whose violations are printed. docs/conformance.md is written from all files there;
--check fails where it differs. Fails where a system cannot be checked, and where this library
violates a rule that counts.
"""

import datetime
import json
import os
import re
import subprocess
import sys

import run

sys.path.insert(0, str(run.ROOT / "python"))

from dlpack_rs.conform import CHECKS  # noqa: E402

ROOT, HERE = run.ROOT, run.HERE
DATA = ROOT / "docs" / "conformance"
PAGE = ROOT / "docs" / "conformance.md"
# The systems that the kit supports; others through library.py.
KNOWN = ("dlpack_rs", "numpy", "torch", "jax", "tensorflow", "tvm_ffi", "pyarrow")
# Those that need a GPU, or only export tensors of another system.
LEFT_OUT = ("cupy", "torch_cuda", "dask", "numba", "mpi4py_mpich", "mpi4py_openmpi")
SEVERITIES = ("MUST", "SHOULD", "ROBUST")
VIOLATIONS = ("fail", "crash", "hang")
SECONDS = 30 * 60


def judge(name, again=False):
    """The reason why there are no verdicts about a system, or about this library's re-exports of
    the system's tensors, and the verdicts."""
    system = run.declared("numpy" if name == "dlpack_rs" else name)
    system["folder"] = run.VENVS / system["venv"]
    python, why = run.environment(system, run.Deadline(run.PIP_SECONDS), False)
    if python is None:
        return why, None
    library = name if name in KNOWN else f"library:System({name!r})"
    own = re.search(r'^CONFORM = "(.*)"$', (HERE / "systems" / f"{name}.py").read_text(), re.M) \
        if name != "dlpack_rs" else None
    arguments = [f"library:Again({name!r})", "--select", "P*,R*,X*"] if again else [library]
    if own and not again:
        arguments += ["--select", own[1]]
    where = os.pathsep.join([str(ROOT / "python"), str(HERE)])
    done = subprocess.run(
        [python, "-B", "-m", "dlpack_rs", "conform", *arguments, "--json"],
        env={**os.environ, "PYTHONPATH": where,
             "DLPACK_RS_LIBRARY": str(ROOT / "target" / "lib" / "libdlpack_rs.so")},
        capture_output=True, text=True, timeout=SECONDS)
    if done.returncode not in (0, 1) or not done.stdout:
        return (done.stderr.strip().splitlines() or ["no output"])[-1], None
    return "", data(json.loads(done.stdout))


def data(found):
    """A system's data: a line for each check, "outcome: text"; for a crash only its signal."""
    for check in found["checks"]:
        if check["outcome"] == "crash":
            check["text"] = check["text"].partition(":")[0]
    verdicts = {check["id"]: ": ".join(filter(None, (check["outcome"], check["text"])))
                for check in found["checks"]}
    return {"library": found["library"], "version": found["version"],
            "date": str(datetime.date.today()), "verdicts": verdicts}


def violations(found):
    """`(check, outcome, text)` of a system's violations, the gravest first."""
    for severity in SEVERITIES:
        for name, verdict in found["verdicts"].items():
            outcome, _, text = verdict.partition(": ")
            if outcome in VIOLATIONS and CHECKS[name].severity == severity:
                yield CHECKS[name], outcome, text


def ours(name, found):
    """This library's violations with tensors of a system, which are not the system's."""
    own = set()
    if (DATA / f"{name}.json").exists():
        alone = json.loads((DATA / f"{name}.json").read_text())
        own = {check.id for check, _, _ in violations(alone)}
    return [one for one in violations(found) if one[0].id not in own]


def short(text):
    text = re.sub(r"(?<![`\w])__\w+__(?![`\w])", r"`\g<0>`", text) if "`" not in text else text
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


def page():
    """The page, from all data."""
    found = [json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))]
    lines = [
        "# Conformance",
        "",
        "How well frameworks follow DLPack's rules. Written by `make conform` from",
        f"[docs/conformance](conformance); do not edit. {len(CHECKS)} checks ran as in",
        "`python -m dlpack_rs conform numpy`, each in its own process. `--explain P15` prints a",
        "rule and its source. Libraries without Python can be tested [from C](conformance_c.md).",
        "",
        "| severity | a violation |",
        "| --- | --- |",
        "| MUST | breaks other programs |",
        "| SHOULD | breaks what consumers rely on |",
        "| ROBUST | mishandles input that no correct producer creates |",
        "",
        f"[Short programs](../tests/interop/reproducers) reproduce "
        f"{len(list(HERE.glob('reproducers/*_*.py')))} of the violations with only",
        "the framework and NumPy.",
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
    lines += ["", f"Not run: {', '.join(missing)}. These need a GPU or export another framework's",
              "tensors."]
    return "\n".join(lines) + "\n"


def main():
    names = sys.argv[1:]
    if names == ["--check"]:
        same = PAGE.read_text() == page()
        print("" if same else "FAIL  docs/conformance.md is not made of docs/conformance\n", end="")
        return not same
    only_again = "--again" in names
    names = [name for name in names if name != "--again"] or [
        "dlpack_rs", *(name for name in run.systems() if name not in LEFT_OUT)]
    failed = 0
    for name in names:
        for how in ([] if only_again else [False]) + ([True] if name != "dlpack_rs" else []):
            why, found = judge(name, how)
            wrong = [] if why or not how else ours(name, found)
            if not why and not how:
                (DATA / f"{name}.json").write_text(json.dumps(found, indent=0) + "\n")
            failed += bool(why or wrong)
            said = why or " ".join(["judged", *(one[0].id for one in wrong)])
            print(f"{name}{', exported again' if how else ''}: {said}", flush=True)
    PAGE.write_text(page())
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
