"""Runs checks, each in a separate process: a crash is a verdict, too."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import warnings

from ._causes import CAUSES, causes, unfreed
from ._memory import exports, takes
from ._model import CHECKS, STAGE, Failed, Noted, Skipped, Unfreed, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._libraries import Library
    from ._model import Check

SECONDS = 180  # for one check: a machine may have much else to do


def judge(library: Library, check: Check) -> Verdict:
    """A verdict by this process, which may crash before."""
    return _explained(check, lambda one: _judge(library, one))


def _explained(check, judge):
    """The verdict, unless the cause of a violation is one that another check judges."""
    verdict = judge(check)
    if verdict.violation:
        for cause, outcomes in causes(check):
            if judge(cause).outcome in outcomes:
                return Verdict(check, "skip", f"{cause.id} judges it: {verdict.text}")
    return verdict


def _judge(library, check):
    try:
        if check.subject in ("producer", "both") and library.make is None:
            return Verdict(check, "skip", "the library is no producer here")
        if check.subject in ("consumer", "both") and library.take is None:
            return Verdict(check, "skip", "the library is no consumer here")
        if why := _refuses_all(library, check):
            return Verdict(check, "skip", why)
        check.judge(library)
    except Unfreed as failure:
        other = unfreed(library, check, failure)
        return Verdict(check, *(("skip", f"{other} judges it: {failure}") if other
                                else ("fail", str(failure))))
    except Failed as failure:
        return Verdict(check, "fail", str(failure))
    except Skipped as reason:
        return Verdict(check, "skip", str(reason))
    except Noted as remark:
        return Verdict(check, "note", str(remark))
    except Exception as error:
        return Verdict(check, "fail", f"{type(error).__name__}: {str(error)[:120]}")
    return Verdict(check, "pass")


# What judges that a library takes, or exports, nothing; and devices, which it may have alone.
_FIRST = {"P01", "P02", "P41", "P65", "C01", *(name for name in CHECKS if name[0] == "D")}


def _refuses_all(library, check):
    """What refuses every tensor has not kept the rules of what is to be refused."""
    if check.id in _FIRST:
        return ""
    known = library.__dict__.setdefault("_refuses_all", {})
    for side, how in (("consumer", takes), ("producer", exports)):
        if check.subject == side or (check.subject == "both" and side == "consumer"):
            if side not in known:
                known[side] = how(library)
            return known[side]
    return ""


def judge_forked(library: Library, check: Check, seconds: float = SECONDS) -> Verdict:
    """A verdict by a fork of this process. A check that `ends` is left out: what a fork lacks, such
    as the library's threads, may be what the end waits for."""
    group = Group(library)
    try:
        return group.judge(check, seconds)
    finally:
        group.close()


class Group:
    """Judges by a fork of this process, one check after the other, and by another fork after a
    crash. What a fork finds that has judged others before is found again by one of its own."""

    _pipes: set = set()  # of all groups: a fork closes those of others

    def __init__(self, library):
        self.library, self.child, self.fresh = library, None, True

    def judge(self, check, seconds=SECONDS):
        if check.ends:
            return Verdict(check, "skip", "needs a program that ends: use the command line")
        if self.child is None:
            self._fork()
        used = not self.fresh
        verdict = self._ask(check, seconds)
        if verdict.violation and verdict.outcome != "hang" and used:
            self.close()
            self._fork()
            verdict = self._ask(check, seconds)
        return _explained(check, lambda one: verdict if one is check else self._again(one, seconds))

    def _again(self, check, seconds):
        if self.child is None:
            self._fork()
        return self._ask(check, seconds)

    def _fork(self):
        (read_names, self.names), (self.answers, write_answers) = os.pipe(), os.pipe()
        self._pipes |= {self.names, self.answers}
        self.errors = tempfile.TemporaryFile()
        with warnings.catch_warnings():  # the child judges and ends, whatever other threads do
            warnings.simplefilter("ignore", DeprecationWarning)
            self.child = os.fork()
        if self.child == 0:
            try:
                for pipe in self._pipes:
                    os.close(pipe)
                os.dup2(self.errors.fileno(), 1)
                os.dup2(self.errors.fileno(), 2)
                faulthandler.disable()  # a crash is expected, and its report is long
                gc.freeze()  # what the parent has is not searched again by each collection
                _serve(self.library, os.fdopen(read_names), os.fdopen(write_answers, "w"))
                os._exit(0)
            except BaseException as error:  # SystemExit, pytest.skip: the parent's code is not run
                os.write(2, f"{type(error).__name__}: {error!s:.120}".encode(errors="replace"))
            finally:
                os._exit(1)
        os.close(read_names)
        os.close(write_answers)
        self.fresh, self.lines = True, _Lines(self.answers)

    def _ask(self, check, seconds):
        self.fresh = False
        self.errors.seek(0)
        self.errors.truncate()
        cause = "" if check is CHECKS[check.id] else " cause"
        os.write(self.names, f"{check.id}{cause}\n".encode())
        answer, stage, status = self.lines.verdict(seconds, self._ended)
        if answer is not None:
            return Verdict(check, *answer)
        self.errors.seek(0)
        said = self.errors.read()
        if status is None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        self._gone()
        return _died(check, status, stage, seconds, said)

    def _ended(self):
        child, status = os.waitpid(self.child, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if child else None

    def _gone(self):
        self.child = None
        self.errors.close()
        for pipe in (self.names, self.answers):
            self._pipes.discard(pipe)
            os.close(pipe)

    def close(self):
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self._gone()


def _serve(library, names, answers):
    """Reads identifiers of checks, and writes what runs and the verdicts."""
    def write(*what):
        print(json.dumps(what), file=answers, flush=True)

    STAGE[0] = lambda what: write("stage", what)
    for line in names:
        name, *cause = line.split()
        verdict = _judge(library, (CAUSES if cause else CHECKS)[name])
        write(verdict.outcome, verdict.text[:2000])


class _Lines:
    """Lines of a pipe. Processes that a library started may keep the other end open, so that the
    end of the one that writes is asked for, too."""

    def __init__(self, descriptor):
        self.descriptor, self.rest = descriptor, b""

    def read(self, end, ended):
        """A line; else None, and the exit status, or None where it did not end in time."""
        status = None
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor, selectors.EVENT_READ)
            while b"\n" not in self.rest:
                left = end - time.monotonic()
                if selector.select(max(min(left, 0.2), 0)):
                    part = os.read(self.descriptor, 65536)
                    self.rest += part
                    if part:
                        continue
                    while status is None and time.monotonic() < end:
                        status = ended()
                        time.sleep(0.002)
                elif status is None and left > 0:
                    status = ended()
                    if status is None:
                        continue
                return None, status
        line, _, self.rest = self.rest.partition(b"\n")
        return line, None

    def verdict(self, seconds, ended):
        """`(answer, stage, status)`: the answer is None where the other end is gone."""
        end, stage = time.monotonic() + seconds, ""
        while True:
            line, status = self.read(end, ended)
            if line is None:
                return None, stage, status
            answer = json.loads(line)
            if answer[0] != "stage":
                return answer, stage, None
            stage = answer[1]


def _died(check, status, stage, seconds, errors):
    lines = errors.decode(errors="replace").strip().splitlines()
    how = f"no end within {seconds:g} s" if status is None else f"exit status {status}"
    if status is not None and status < 0:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
    said = [line for line in lines if line.startswith("Fatal Python error")] or lines[-1:]
    text = ": ".join([how, *said[:1]])[:200]
    if stage.startswith("the library's own"):
        return Verdict(check, "skip", f"{stage} ends the process: {text}")
    return Verdict(check, "hang" if status is None else "crash",
                   f"{text} ({stage})" if stage else text)


def work(find):
    """The worker: imports the library once, then reads names of checks and writes verdicts."""
    # What the library prints is not for those who read verdicts.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    library = find()
    forks = library.fork and hasattr(os, "fork")
    print(json.dumps([library.name, library.version(), forks]), file=out, flush=True)
    group = Group(library)
    STAGE[0] = lambda what: print(json.dumps(["stage", what]), file=out, flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        check = CHECKS[name]
        verdict = group.judge(check, float(seconds)) if forks and not check.ends else \
            judge(library, check)
        print(json.dumps([verdict.outcome, verdict.text]), file=out, flush=True)
    if forks:
        group.close()


class Worker:
    """A process that has imported the library."""

    def __init__(self, arguments):
        if not sys.executable:
            raise ValueError("checks run in processes of Python: sys.executable is empty")
        # With this process's options, such as -I.
        python = [sys.executable, *subprocess._args_from_interpreter_flags()]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*python, "-m", "dlpack_conformance", "--worker", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.ended, self.fresh = False, True
        self.lines = _Lines(self.process.stdout.fileno())
        hello, _ = self.lines.read(time.monotonic() + 600, self.process.poll)
        if not hello:
            self.close()
            raise ImportError(self.said.splitlines()[-1] if self.said else
                              "the library cannot be imported")
        self.name, self.version, self.forks = json.loads(hello)

    def judge(self, check, seconds):
        """A verdict; where the end of the process belongs to the check, it is the last one."""
        os.write(self.process.stdin.fileno(), f"{check.id} {seconds}\n".encode())
        # A fork is given its time by the worker.
        allowed = seconds * 10 + 60 if self.forks and not check.ends else seconds
        answer, stage, status = self.lines.verdict(allowed, self.process.poll)
        self.fresh = self.forks
        if answer is not None and check.ends and answer[0] in ("pass", "note"):
            self.process.stdin.close()
            try:
                status = self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            answer = answer if status == 0 else None
        if answer is not None and not check.ends:
            return Verdict(check, *answer)
        self.close()
        return Verdict(check, *answer) if answer is not None else _died(
            check, status, stage, seconds, self.said.encode())

    def close(self):
        if self.process.poll() is None and not self.ended:
            self.process.kill()
        self.process.wait()
        if not self.ended:
            self.ended = True
            self.errors.seek(0)
            self.said = self.errors.read().decode(errors="replace").strip()
            self.process.stdin.close()
            self.process.stdout.close()
            self.errors.close()


class Report:
    """All verdicts about one library."""

    def __init__(self, name, version):
        self.name, self.version, self.verdicts = name, version, []

    def count(self, outcome):
        return sum(verdict.outcome == outcome for verdict in self.verdicts)


def _another(worker, arguments):
    if worker is not None:
        worker.close()
    return Worker(arguments)


def run(arguments, checks, seconds=SECONDS, progress=None):
    """Judges a library, which is named as on the command line, by some checks."""
    worker = Worker(arguments)
    report = Report(worker.name, worker.version)
    try:
        for check in checks:
            if worker is None or (check.ends and not worker.fresh):
                worker = _another(worker, arguments)
            used = not worker.fresh
            verdict = worker.judge(check, seconds)
            if verdict.violation and used and verdict.outcome != "hang":  # by a process of its own
                worker = _another(worker, arguments)
                verdict = worker.judge(check, seconds)
            report.verdicts.append(verdict)
            if progress is not None:
                progress(verdict)
            if worker.ended:
                worker.close()
                worker = None
    finally:
        if worker is not None:
            worker.close()
    return report
