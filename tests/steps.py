#!/usr/bin/env python3
"""Runs test steps, each a command line, several at a time, and continues after a failure.

    steps.py [--all [--but WORD]...] STEP...

It says which step of how many begins and ends, the time so far and, after a first whole run, how
long the rest will take. A step that fails is shown at once: the lines that look like the reason, the
end of what it said, and the command that repeats it. All that a step says is in target/test/, where
junit.xml has the results for other programs. Last comes a table, in the order given, and the total
counts as `N passed, N failed`; an interrupt ends all steps and leaves the table of what has ended.

A step without counts and output has failed. What a step did not run (`...: not run, because ...`) is
shown in the table; with --all it has failed, but for steps that have one of the WORDs in them.

STEP_JOBS is how many steps run at a time, as many as there are processors, at most 4; with 1, what a
step says is printed as it says it. STEP_SECONDS is how long a step may take before it is ended,
2,400: a deadlock does not hang everything. Set, it is also how long a program of c_tests may take: a
machine with much other work needs more.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "target/test"
TIMES = LOGS / "seconds.json"
REASON = re.compile(r"FAIL|panicked at|\(expected |^error|:[0-9]+: ")
CASE = re.compile(r"^(?:(pass|FAIL)  (.+)|test (\S+) \.\.\. (ok|FAILED).*)$")
COUNTS = re.compile(r"\b(\d+) (passed|failed)\b")
SAID_MOST = 40  # lines that a failed step's last words may have


def counts(lines):
    """(passed, failed): the sum of cargo's results, or else the last line with counts."""
    cargo, last = [0, 0], None
    for line in lines:
        found = {word: int(number) for number, word in COUNTS.findall(line)}
        if found:
            pair = (found.get("passed", 0), found.get("failed", 0))
            if line.startswith("test result:"):
                cargo = [a + b for a, b in zip(cargo, pair)]
            else:
                last = pair
    return tuple(cargo) if any(cargo) else last or (0, 0)


class Step:
    def __init__(self, number, command, may_be_absent):
        self.number, self.command, self.may_be_absent = number, command, may_be_absent
        slug = re.sub(r"\W+", "-", command)[:40].strip("-")
        self.log = LOGS / f"{number:02}-{slug}.log"
        self.passed = self.failed = None

    def start(self, shown):
        """Begins; what it says goes to its log and, where asked, to the terminal."""
        self.began = time.monotonic()
        seconds = os.environ.get("STEP_SECONDS", "2400")
        command = ["timeout", "-k", "30", seconds, "bash", "-c", self.command]
        environment = {**os.environ, "STEP_ID": f"{os.getpid()}.{self.number}"}
        with self.log.open("wb") as log:
            out = subprocess.PIPE if shown else log
            # Kept: what subprocess has of a forgotten child, it waits for itself.
            self.child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out,
                                          stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.tee = None
        if shown:
            self.tee = threading.Thread(target=self.show, args=(self.child.stdout,))
            self.tee.start()

    def show(self, pipe):
        with self.log.open("wb") as log:
            for line in pipe:
                log.write(line)
                log.flush()
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def end(self, status, usage):
        """Counts what it said."""
        self.seconds = time.monotonic() - self.began
        self.processors = usage.ru_utime + usage.ru_stime
        code = self.child.returncode = os.waitstatus_to_exitcode(status)
        overdue = code in (124, 137, -9)
        if overdue:
            end_processes(f"{os.getpid()}.{self.number}")
        if self.tee:
            self.tee.join()
        text = re.sub(r"\033\[[0-9;]*m", "", self.log.read_text(errors="replace"))
        text = re.sub(r"[^\t\n -\ud7ff]", "?", text)  # what XML cannot hold
        self.lines = text.splitlines() + ["FAIL: ended after its time"] * overdue
        self.absent = [line for line in self.lines if ": not run, because " in line]
        self.passed, self.failed = counts(self.lines)
        if self.absent and not self.may_be_absent:
            self.failed += 1
            self.lines.append("FAIL: here it has to run")
        silent = self.passed == 0 and not self.absent
        if self.failed == 0 and (code != 0 or silent):
            self.failed = 1

    def row(self):
        word = "FAIL" if self.failed else "pass" if self.passed else "none"
        absent = "".join(f"\n      {line}" for line in self.absent)
        return (f"{word}  {self.passed:7} passed {self.failed:3} failed {self.seconds:4.0f} s "
                f"(processors {self.processors:4.0f} s)  {self.command}{absent}")

    def reasons(self):
        found = [line[:200] for line in self.lines if REASON.search(line)][:8]
        return "\n".join([f"{self.command}:", *found])

    def again(self):
        if "'" in self.command:
            return self.command
        return f"make test TESTS='\"{self.command}\"'"

    def junit(self):
        """Its cases, as far as they have lines of their own."""
        cases = []
        for line in self.lines:
            if found := CASE.match(line):
                name = found[2] or found[3]
                bad = "FAIL" in (found[1] or "") or found[4] == "FAILED"
                failure = "<failure/>" if bad else ""
                cases.append(f"    <testcase name={quoteattr(name)}>{failure}</testcase>\n")
        if self.failed and not any("<failure/>" in case for case in cases):
            failure = f"<failure message={quoteattr(self.reasons())}/>"
            cases.append(f"    <testcase name={quoteattr(self.command)}>{failure}</testcase>\n")
        return (f"  <testsuite name={quoteattr(self.command)} tests=\"{self.passed + self.failed}\" "
                f"failures=\"{self.failed}\" time=\"{self.seconds:.0f}\">\n{''.join(cases)}"
                "  </testsuite>\n")


def end_processes(step_id):
    """Ends the processes that have this STEP_ID, also in other groups and without a parent."""
    mark = f"STEP_ID={step_id}".encode()

    def found():
        for file in Path("/proc").glob("[0-9]*/environ"):
            try:
                if any(word == mark or word.startswith(mark + b".") for word in
                       file.read_bytes().split(b"\0")):
                    yield int(file.parent.name)
            except OSError:
                pass

    for number in (signal.SIGTERM, signal.SIGKILL):
        for wait in range(50):
            processes = list(found())
            if not processes:
                return
            for process in processes if wait == 0 else ():
                try:
                    os.kill(process, number)
                except OSError:
                    pass
            time.sleep(0.1)


def left(steps, past, jobs, running):
    """How long the rest takes, by the last run's times; empty without them."""
    rest = [step for step in steps if step.passed is None]
    if not all(step.command in past for step in rest):
        return ""
    seconds = [past[step.command] - (time.monotonic() - step.began if step in running else 0)
               for step in rest]
    seconds = [max(value, 0) for value in seconds]
    return f", about {max(sum(seconds) / jobs, *seconds, 0) / 60:.0f} min left"


def run(steps, jobs, past):
    """Runs all; whether nothing interrupted it."""
    began, spoke, waiting, running = time.monotonic(), time.monotonic(), list(steps), {}

    def say(text):
        nonlocal spoke
        spoke = time.monotonic()
        rest = left(steps, past, jobs, running.values())
        print(f"[{(spoke - began) / 60:.0f} min{rest}] {text}", flush=True)

    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                step = waiting.pop(0)
                say(f"step {step.number} of {len(steps)} begins: {step.command}")
                step.start(jobs == 1)
                running[step.child.pid] = step
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if process in running:
                step = running.pop(process)
                step.end(status, usage)
                say(f"step {step.number} of {len(steps)}: {step.row()}")
                if step.failed:
                    said = [] if jobs == 1 else ["..."] + step.lines[-SAID_MOST:]
                    print("\n".join([step.reasons(), *said, f"again: {step.again()}",
                                     f"all that it said: {step.log.relative_to(ROOT)}"]), flush=True)
            elif time.monotonic() - spoke > 60:
                say("running: " + ", ".join(step.command for step in running.values()))
            else:
                time.sleep(0.1)
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        print("\ninterrupted: all steps are ended")
        for step in running.values():
            end_processes(f"{os.getpid()}.{step.number}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--but", action="append", default=[])
    parser.add_argument("steps", nargs="+")
    asked = parser.parse_args()
    # Messages of compilers and sorted lists are read here: in English and in one order.
    os.environ.pop("LANGUAGE", None)
    os.environ["LC_ALL"] = "C"
    jobs = int(os.environ.get("STEP_JOBS") or min(len(os.sched_getaffinity(0)), 4))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    LOGS.mkdir(parents=True, exist_ok=True)
    for file in LOGS.glob("*.log"):
        file.unlink()
    steps = [Step(number, command, not asked.all or any(word in command for word in asked.but))
             for number, command in enumerate(asked.steps, 1)]
    past = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    whole = run(steps, jobs, past)
    ended = [step for step in steps if step.passed is not None]
    TIMES.write_text(json.dumps({**past, **{step.command: step.seconds for step in ended}}))
    suites = "".join(step.junit() for step in ended)
    (LOGS / "junit.xml").write_text(f"<testsuites>\n{suites}</testsuites>\n")
    print("", *(step.row() for step in ended), sep="\n")
    print(*(step.reasons() for step in ended if step.failed), sep="\n")
    passed, failed = (sum(getattr(step, name) for step in ended) for name in ("passed", "failed"))
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(130 if not whole else failed > 0 or passed == 0)


main()
