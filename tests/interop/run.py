#!/usr/bin/env python3
"""Exchanges tensors with every system and writes the outcomes.

    run.py [--fast] [--tidy] [--bless] [--ci] [SYSTEM...]

Each system has a file in systems/, and an environment in target/interop which pip fills. Its checks
run in a separate process; a crash is recorded, and the rest continues in a new one. Outcomes are
compared with those in results.json. --bless writes those of the systems that ran, and so does a run
of all systems as expected; docs/interop.md is made of it. A system that cannot be installed counts as failed.
--fast: the systems that `make test` runs, without environments that take long to install. --tidy:
environments are removed after use, which needs at most 10 GB instead of 23. --ci: as --tidy, with
new environments and a time limit, after which systems are not run instead of failed; both write to
target. Prints the reason if nothing can run at all.
"""

import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENVS = Path(os.environ.get("INTEROP_VENVS", ROOT / "target" / "interop"))
SECONDS = 300  # for all checks of a system
PIP_SECONDS = 600  # for its environment
CI_SECONDS = 25 * 60  # for all systems
LATE = "no time was left"
CI_ROOM = 12_000_000_000  # bytes free: the largest environment, and pip's unpacked files
PINNED_FOR = ((3, 11), "Linux", "x86_64")  # where the versions in systems/ are available


def systems():
    return sorted(path.stem for path in (HERE / "systems").glob("*.py") if path.stem != "__init__")


def declared(name):
    """VENV, PIP and FAST of a system, without an import of packages that may be missing."""
    text = (HERE / "systems" / f"{name}.py").read_text()
    venv, pip = re.search(r'^VENV, PIP = ("\w+"), (\[.*?\])$', text, re.M | re.S).groups()
    return {"venv": json.loads(venv), "pip": json.loads(pip), "fast": "\nFAST = True" in text}


class Deadline:
    """Seconds from now, at most up to another deadline."""

    def __init__(self, seconds, other=None):
        self.at = min(time.monotonic() + seconds, other.at if other else float("inf"))

    def left(self):
        return max(self.at - time.monotonic(), 0.1)

    def over(self):
        return time.monotonic() >= self.at


def finished(command, deadline, **options):
    """(exit code, output, errors) of a process; after the deadline all are killed."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True, **options) as running:
        try:
            out, errors = running.communicate(timeout=deadline.left())
        except BaseException as error:
            os.killpg(running.pid, signal.SIGKILL)
            out, errors = running.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
    return running.returncode, out, errors


def environment(system, deadline, tidy):
    """The python of the system's environment; (None, pip's output) where it cannot be installed."""
    folder = system["folder"]
    python = folder / "bin" / "python"
    stamp = folder / f"{'_'.join(re.sub('[^a-z0-9.]', '-', p.lower()) for p in system['pip'])}.ok"
    if stamp.exists():
        return python, ""
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    options = {}
    if tidy:  # pip's unpacked files are removed with the environment, and nothing is cached
        (folder / "tmp").mkdir(exist_ok=True)
        options["env"] = {**os.environ, "PIP_NO_CACHE_DIR": "1", "TMPDIR": str(folder / "tmp")}
    deadline = Deadline(PIP_SECONDS, deadline)
    for _ in range(2):  # an index may fail once
        code, _, errors = finished([python, "-m", "pip", "install", "--quiet",
                                    "--disable-pip-version-check", *system["pip"]], deadline,
                                   **options)
        if code == 0:
            stamp.touch()
            return python, ""
        if deadline.over():
            return None, "pip was not done in time"
    lines = [line for line in errors.splitlines() if line.startswith("ERROR")]
    return None, (lines or errors.splitlines() or ["pip failed"])[-1]


def run(name, python, deadline):
    """(version, {check: (result, text)}): runs processes until all checks have an outcome."""
    version, outcomes, fault = "", {}, None
    deadline = Deadline(SECONDS, deadline)
    while True:
        said, code, errors = process(name, python, list(outcomes), deadline)
        started = None
        for line in said:
            version = line.get("version", version)
            started, fault = line.get("started", started), line.get("fault", fault)
            if "check" in line:
                outcomes[line["check"]] = (line["result"], line["text"])
        if said and "finished" in said[-1]:
            outcomes["exit"] = ("wrong", ending(code)) if code else ("ok", "clean")
            return version, outcomes
        if deadline.over():
            late = f"no more time after {started or 'the start'}"
            return version, {**outcomes, "time": ("wrong", late)}
        if started is None or started in outcomes:
            last = (errors.strip().splitlines() or ["no output"])[-1]
            return version, {**outcomes, "start": ("wrong", f"{ending(code)}: {last}")}
        killed = f"its process ended with {ending(code)}"
        outcomes[started] = ("fault", f"{fault}: {killed}") if fault else ("wrong", killed)


def process(name, python, known, deadline):
    """Runs the checks without an outcome. (output, exit code, standard error)"""
    code, out, errors = finished([python, "-B", HERE / "cell.py", name, *known], deadline)
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"')], code, errors


def ending(code):
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def outcome(result, text):
    """What is compared: without the wording of an error."""
    if result == "ok":
        return f"ok: {text}"
    return f"{result}: {text.split(':')[0]}" if text else result


def main():
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or systems()
    known = {name: declared(name) for name in names}
    known = {name: found for name, found in known.items()
             if found["fast"] or "--fast" not in options}
    ci, bless = "--ci" in options, "--bless" in options
    venvs, tidy = VENVS / "ci" if ci else VENVS, ci or "--tidy" in options
    for system in known.values():
        system["folder"] = venvs / system["venv"]
    if ci and (why := why_not(venvs)):
        return not_run(why)
    results, counts, deadline = {}, [0, 0], Deadline(CI_SECONDS if ci else float("inf"))
    for folder in dict.fromkeys(system["folder"] for system in known.values()):
        for name in (name for name in known if known[name]["folder"] == folder):
            results[name] = exchange(name, known[name], deadline, tidy)
            compare(name, results[name], bless, counts)
            if ci and len(results) == 2 and all("why" in found for found in results.values()):
                shutil.rmtree(venvs)
                return not_run(f"no package can be installed: {results[name]['why']}")
        if tidy:
            shutil.rmtree(folder, ignore_errors=True)
    if ci:
        shutil.rmtree(venvs)
    return conclude(results, counts, ci, bless)


def conclude(results, counts, ci, bless):
    """Writes data and page, and prints the counts. Whether something failed."""
    complete = sorted(results) == systems()
    if ci and complete or bless or complete and not counts[1]:
        new = {name: {key: found[key] for key in ("version", "outcomes", "why") if key in found}
               for name, found in results.items()
               if ci or found["outcomes"] and not {"start", "time"} & found["outcomes"].keys()}
        merged = new if ci else {**recorded(), **new}
        found = report.data(dict(sorted(merged.items())), datetime.date.today())
        files = ((ROOT / "target/interop.json", ROOT / "target/interop.md") if ci else
                 (report.DATA, report.PAGE))
        for file, text in zip(files, (report.as_json(found), report.page(found))):
            file.write_text(text)
    passed, failed = counts
    missing = ", ".join(name for name, found in results.items() if "why" in found)
    late = ", ".join(name for name, found in results.items() if found.get("why") == LATE)
    if late:
        not_run(LATE, of=f", {late}")
    print(f"interop: {passed} passed, {failed} failed{missing and f'; not run: {missing}'}")
    return failed > 0 or passed == 0


def why_not(venvs):
    """The reason why nothing can run here; None if there is room, but no environment yet."""
    here = (sys.version_info[:2], platform.system(), platform.machine())
    if here != PINNED_FOR:
        words = ["Python {}.{} on {} {}".format(*version, *rest)
                 for version, *rest in (PINNED_FOR, here)]
        return f"the systems are pinned for {words[0]}, and this is {words[1]}"
    shutil.rmtree(venvs, ignore_errors=True)
    venvs.mkdir(parents=True)
    free = shutil.disk_usage(venvs).free
    if free < CI_ROOM:
        return f"it needs {CI_ROOM / 1e9:.0f} GB for a while, and {free / 1e9:.1f} GB are free"
    return ""


def not_run(why, of=""):
    """A line that tests/steps.py parses."""
    print(f"interop{of}: not run, because {why}")
    return 0


def exchange(name, system, deadline, tidy):
    """A system's data for the matrix: version, {check: (result, text)}, why it could not run."""
    started, found = time.monotonic(), {"version": "not run", "outcomes": {}, "why": LATE}
    if not deadline.over():
        python, found["why"] = environment(system, deadline, tidy)
        if python is not None:
            found = dict(zip(("version", "outcomes"), run(name, python, deadline)))
        if deadline.over() and ("why" in found or found["outcomes"].pop("time", None)):
            found["why"] = LATE
    return {**found, "seconds": time.monotonic() - started}


def compare(name, found, bless, counts):
    """Prints and counts expected and unexpected outcomes."""
    expected, outcomes, wrong = read_expected().get(name, {}), found["outcomes"], []
    for check, (result, text) in outcomes.items():
        fine = result != "wrong" if bless else expected.get(check) == outcome(result, text)
        counts[not fine] += 1
        if not fine:
            wrong.append(f"  {check}: {result}: {text} (expected {expected.get(check)})")
    lost = [] if bless or "why" in found else [check for check in expected if check not in outcomes]
    counts[1] += len(lost) + (found.get("why", LATE) != LATE)
    good, bad = len(outcomes) - len(wrong), len(wrong) + len(lost)
    if lost:
        wrong.append(f"  not run: {', '.join(lost)}")
    said = found.get("why") or f"{good} as expected, {bad} not"
    print(f"{name} {found['version']}: {said} ({found['seconds']:.0f} s)", *wrong, sep="\n",
          flush=True)


def recorded():
    """{system: {version, outcomes}} of results.json"""
    return report.recorded()["systems"] if report.DATA.exists() else {}


def read_expected():
    """{system: {check: outcome}}; a Wrong outcome is never expected."""
    return {name: {check: outcome(*said) for check, said in found["outcomes"].items()
                   if said[0] != "wrong"} for name, found in recorded().items()}


if __name__ == "__main__":
    sys.exit(main())
