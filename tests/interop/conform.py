#!/usr/bin/env python3
"""Runs the conformance kit on every system of systems/ and writes the verdicts.

    conform.py [--again] [SYSTEM...]
    conform.py --check

Each system has the environment that run.py creates. Verdicts are written to
conformance/results/SYSTEM.json; docs/conformance.md is written from all files there; --check
fails where it differs. --again: only this library's re-exports of the system's tensors, of which
nothing is kept. Fails where a system cannot be checked, and where this library violates a rule
that counts.
"""

import datetime
import json
import os
import re
import subprocess
import sys

import run

sys.path.insert(0, str(run.ROOT / "conformance"))

from dlpack_conformance import CHECKS  # noqa: E402

ROOT, HERE = run.ROOT, run.HERE
DATA = ROOT / "conformance" / "results"
PAGE = ROOT / "docs" / "conformance.md"
# The systems that the kit supports; others through library.py.
KNOWN = ("dlpack_rs", "numpy", "torch", "jax", "tensorflow", "tvm_ffi", "pyarrow")
# Those that need a GPU, or only import.
LEFT_OUT = ("torch_cuda", "mpi4py_mpich", "mpi4py_openmpi")
SEVERITIES = ("MUST", "SHOULD", "ROBUST")
VIOLATIONS = ("fail", "crash", "hang")
SECONDS = 30 * 60


def judge(name, again=False):
    """The verdicts about a system, or about this library's re-exports of the system's tensors;
    and the reason where there are none."""
    system = run.declared("numpy" if name == "dlpack_rs" else name)
    system["folder"] = run.VENVS / system["venv"]
    python, why = run.environment(system, run.Deadline(run.PIP_SECONDS), False)
    if python is None:
        return None, why
    library = name if name in KNOWN else f"library:System({name!r})"
    own = re.search(r'^CONFORM = "(.*)"$', (HERE / "systems" / f"{name}.py").read_text(), re.M) \
        if name != "dlpack_rs" else None
    arguments = [f"library:Again({name!r})", "--select", "P*,R*,X*"] if again else [library]
    if own and not again:
        arguments += ["--select", own[1]]
    where = os.pathsep.join(map(str, (ROOT / "python", ROOT / "conformance", HERE)))
    done = subprocess.run(
        [python, "-B", "-m", "dlpack_conformance", *arguments, "--json"],
        env={**os.environ, "PYTHONPATH": where,
             "DLPACK_RS_LIBRARY": str(ROOT / "target" / "lib" / "libdlpack_rs.so")},
        capture_output=True, text=True, timeout=SECONDS)
    if done.returncode not in (0, 1) or not done.stdout:
        return None, (done.stderr.strip().splitlines() or ["no output"])[-1]
    return json.loads(done.stdout), ""


def write(name, found):
    """A system's data: a line for each check, "outcome: text"; for a crash only its signal."""
    for check in found["checks"]:
        if check["outcome"] == "crash":
            check["text"] = check["text"].partition(":")[0]
    verdicts = {check["id"]: ": ".join(filter(None, (check["outcome"], check["text"])))
                for check in found["checks"]}
    DATA.mkdir(exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(
        {"library": found["library"], "version": found["version"],
         "date": str(datetime.date.today()), "verdicts": verdicts}, indent=0) + "\n")


def violations(found):
    """`(check, outcome, text)` of a system's violations, the gravest first."""
    for severity in SEVERITIES:
        for name, verdict in found["verdicts"].items():
            outcome, _, text = verdict.partition(": ")
            if outcome in VIOLATIONS and CHECKS[name].severity == severity:
                yield CHECKS[name], outcome, text


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
        f"[conformance/results](../conformance/results); do not edit. {len(CHECKS)} checks ran as in",
        "`python -m dlpack_conformance numpy` ([the kit](../conformance/README.md)). `--explain P15`",
        "prints a rule and the sentence that it rests on. Libraries without Python can be tested",
        "[from C](conformance_c.md).",
        "",
        "| severity | a violation |",
        "| --- | --- |",
        "| MUST | contradicts a sentence of a standard |",
        "| SHOULD | contradicts a recommendation, or what programs in use rely on |",
        "| ROBUST | mishandles input that no correct producer creates |",
        "",
        "Each MUST has [a report](../conformance/reports), ready to be filed; [a",
        "program](../tests/interop/reproducers.py) shows further violations in a few lines each.",
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
    lines += ["", "Not run with these checks:", f"{', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main():
    names = sys.argv[1:]
    if names == ["--check"]:
        same = PAGE.read_text() == page()
        print("" if same else "FAIL  docs/conformance.md is not made of conformance/results\n", end="")
        return not same
    again = "--again" in names
    names = [name for name in names if name != "--again"] or [
        *([] if again else ["dlpack_rs"]),
        *(name for name in run.systems() if name not in LEFT_OUT)]
    failed = 0
    for name in names:
        found, why = judge(name, again)
        wrong = []
        if found is not None and (again or name == "dlpack_rs"):
            own = json.loads((DATA / f"{name}.json").read_text())["verdicts"] \
                if again and (DATA / f"{name}.json").exists() else {}
            wrong = [check["id"] for check in found["checks"]
                     if check["outcome"] in VIOLATIONS and check["severity"] != "INFO"
                     and own.get(check["id"], "").partition(":")[0] not in VIOLATIONS]
        if found is not None and not again:
            write(name, found)
        failed += bool(why or wrong)
        print(f"{name}{', exported again' if again else ''}: {why or ' '.join(['judged', *wrong])}",
              flush=True)
    PAGE.write_text(page())
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
