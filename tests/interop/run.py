#!/usr/bin/env python3
"""Exchanges tensors with every system there is and writes what happened.

    run.py [--fast] [--tidy] [--bless] [SYSTEM...]

Each system has a file in systems/, and an environment in target/interop which pip fills. Its checks
run in a process of its own; what kills it is recorded, and the rest goes on in another. Outcomes
are compared with expected.txt, which --bless rewrites; with all systems, docs/interop.md is
written.
--fast: the systems that `make test` runs, and no environment that takes long. --tidy: environments
are removed after use, 7 GB at most then instead of 23.
"""

import datetime
import json
import os
import re
import shutil
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
    known = {name: declared(name) for name in names}
    wanted = [name for name in names if known[name]["fast"] or "--fast" not in options]
    results, counts = {}, [0, 0]
    for venv in dict.fromkeys(known[name]["venv"] for name in wanted):
        for name in (name for name in wanted if known[name]["venv"] == venv):
            results[name] = exchange(name, known[name])
            compare(name, results[name], "--bless" in options, counts)
        if "--tidy" in options:
            shutil.rmtree(VENVS / venv)
    if "--bless" in options:
        write_expected(results)
    results = {name: results[name] for name in sorted(results)}
    if list(results) == systems():
        write_matrix(ROOT / "docs" / "interop.md", results, datetime.date.today())
    passed, failed = counts
    print(f"interop: {passed} passed, {failed} failed")
    return failed > 0 or passed == 0


def exchange(name, system):
    """What the matrix needs of a system: version, {check: (result, text)}, why it could not run."""
    python, why = environment(system)
    if python is None:
        return {"version": "not installed", "outcomes": {}, "why": why}
    version, outcomes = run(name, python)
    return {"version": version, "outcomes": outcomes}


def compare(name, found, bless, counts):
    """Prints and counts what is as expected and what is not."""
    expected, wrong = read_expected().get(name, {}), []
    for check, (result, text) in found["outcomes"].items():
        fine = result != "wrong" if bless else expected.get(check) == outcome(result, text)
        counts[not fine] += 1
        if not fine:
            wrong.append(f"  {check}: {result}: {text} (expected {expected.get(check)})")
    good = len(found["outcomes"]) - len(wrong)
    said = found.get("why") or f"{good} as expected, {len(wrong)} not"
    print(f"{name} {found['version']}: {said}", *wrong, sep="\n", flush=True)


def read_expected():
    """{system: {check: outcome}}"""
    found = {}
    for line in EXPECTED.read_text().splitlines() if EXPECTED.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, check, known = line.split(" | ")
            found.setdefault(name, {})[check] = known
    return found


def write_expected(results):
    """Rewrites the file for the systems that ran; what is wrong is never expected."""
    found = read_expected()
    for name, seen in results.items():
        if seen["outcomes"] and "start" not in seen["outcomes"]:
            found[name] = {check: outcome(*said) for check, said in seen["outcomes"].items()
                           if said[0] != "wrong"}
    lines = ["# What each check of tests/interop says; rewritten by `run.py --bless`."]
    for name in sorted(found):
        lines += [f"{name} | {check} | {known}" for check, known in found[name].items()]
    EXPECTED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
