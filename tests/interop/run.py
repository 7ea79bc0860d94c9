#!/usr/bin/env python3
"""Exchanges tensors with every system there is and writes what happened.

    run.py [--fast] [--bless] [SYSTEM...]

Each system has a file in systems/, and an environment in target/interop which pip fills. Its checks
run in a process of its own; what kills it is recorded, and the rest goes on in another. Outcomes are
compared with expected.txt, which --bless rewrites; with all systems, docs/interop.md is written.
--fast: the systems that `make test` runs, and no environment that takes long.
"""

import datetime
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from report import write_matrix

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENVS = Path(os.environ.get("INTEROP_VENVS", ROOT / "target" / "interop"))
EXPECTED = HERE / "expected.txt"
SECONDS = 300  # for all checks of a system


def systems():
    return sorted(path.stem for path in (HERE / "systems").glob("*.py") if path.stem != "__init__")


def declared(name):
    """VENV, PIP and FAST of a system, without importing what may not be installed."""
    text = (HERE / "systems" / f"{name}.py").read_text()
    venv, pip = re.search(r'^VENV, PIP = ("\w+"), (\[.*?\])$', text, re.M | re.S).groups()
    return {"venv": json.loads(venv), "pip": json.loads(pip), "fast": "\nFAST = True" in text}


def environment(system):
    """The python of the system's environment; (None, what pip said) where it cannot be had."""
    folder = VENVS / system["venv"]
    python = folder / "bin" / "python"
    stamp = folder / f"{'_'.join(re.sub('[^a-z0-9.]', '-', p.lower()) for p in system['pip'])}.ok"
    if stamp.exists():
        return python, ""
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                           *system["pip"]], capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return None, (lines or done.stderr.splitlines() or ["pip failed"])[-1]
    stamp.touch()
    return python, ""


def run(name, python):
    """(version, {check: (result, text)}): one process after the other until all is known."""
    version, outcomes, fault = "", {}, None
    while True:
        said, code, errors = process(name, python, list(outcomes))
        started = None
        for line in said:
            version = line.get("version", version)
            started, fault = line.get("started", started), line.get("fault", fault)
            if "check" in line:
                outcomes[line["check"]] = (line["result"], line["text"])
        if said and "finished" in said[-1]:
            outcomes["exit"] = ("wrong", ending(code)) if code else ("ok", "clean")
            return version, outcomes
        if started is None or started in outcomes:
            last = (errors.strip().splitlines() or ["no output"])[-1]
            return version, {**outcomes, "start": ("wrong", f"{ending(code)}: {last}")}
        killed = f"its process ended with {ending(code)}"
        outcomes[started] = ("fault", f"{fault}: {killed}") if fault else ("wrong", killed)


def process(name, python, known):
    """Runs what is not yet known. (what it said, exit code, standard error)"""
    with subprocess.Popen([python, "-B", HERE / "cell.py", name, *known], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        try:
            out, errors = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            out, errors = running.communicate()
    said = [json.loads(line) for line in out.splitlines() if line.startswith('{"')]
    return said, running.returncode, errors


def ending(code):
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def outcome(result, text):
    """What expected.txt keeps of it: not the wording of an error."""
    if result == "ok":
        return f"ok: {text}"
    return f"{result}: {text.split(':')[0]}" if text else result


def main():
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or systems()
    expected = read_expected()
    results, passed, failed = {}, 0, 0
    for name in names:
        system = declared(name)
        if "--fast" in options and not system["fast"]:
            continue
        python, why = environment(system)
        if python is None:
            results[name] = {"version": "not installed", "outcomes": {}, "why": why}
            print(f"{name}: {why}")
            continue
        version, outcomes = run(name, python)
        results[name] = {"version": version, "outcomes": outcomes}
        known = expected.get(name, {})
        wrong = []
        for check, (result, text) in outcomes.items():
            fine = result != "wrong" if "--bless" in options else (
                known.get(check) == outcome(result, text))
            passed, failed = passed + fine, failed + (not fine)
            if not fine:
                wrong.append(f"  {check}: {result}: {text} (expected {known.get(check)})")
        print(f"{name} {version}: {len(outcomes) - len(wrong)} as expected, {len(wrong)} not",
              *wrong, sep="\n", flush=True)
    if "--bless" in options:
        write_expected({**expected, **{name: {check: outcome(*seen) for check, seen
                                              in found["outcomes"].items() if seen[0] != "wrong"}
                                       for name, found in results.items()
                                       if found["outcomes"] and "start" not in found["outcomes"]}})
    if set(results) == set(systems()):
        write_matrix(ROOT / "docs" / "interop.md", results, datetime.date.today())
    print(f"interop: {passed} passed, {failed} failed")
    return failed > 0 or passed == 0


def read_expected():
    """{system: {check: outcome}}"""
    found = {}
    for line in EXPECTED.read_text().splitlines() if EXPECTED.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, check, known = line.split(" | ")
            found.setdefault(name, {})[check] = known
    return found


def write_expected(found):
    lines = ["# What each check of tests/interop says; rewritten by `run.py --bless`."]
    for name in sorted(found):
        lines += [f"{name} | {check} | {known}" for check, known in found[name].items()]
    EXPECTED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
