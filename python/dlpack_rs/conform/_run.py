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

from ._causes import causes, unfreed
from ._model import CHECKS, Failed, Noted, Skipped, Unfreed, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._libraries import Library
    from ._model import Check

SECONDS = 60  # for one check


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


def judge_forked(library: Library, check: Check, seconds: float = SECONDS) -> Verdict:
    """A verdict by a fork of this process. A check that `ends` is left out: what a fork lacks, such
    as the library's threads, may be what the end waits for."""
    if check.ends:
        return Verdict(check, "skip", "needs a program that ends: use the command line")
    return _explained(check, lambda one: _judge_forked(library, one, seconds))


def _fork():
    with warnings.catch_warnings():  # the child runs one check and ends, whatever other threads do
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _judge_forked(library, check, seconds):
    readable, writable = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = _fork()
        if child == 0:
            try:
                os.close(readable)
                os.dup2(errors.fileno(), 2)
                faulthandler.disable()  # a crash is expected, and its report is long
                gc.freeze()  # what the parent has is not searched again by each collection
                verdict = _judge(library, check)
                answer = json.dumps([verdict.outcome, verdict.text[:2000]]) + "\n"
                os.write(writable, answer.encode())
                os._exit(0)
            except BaseException as error:  # SystemExit, pytest.skip: the parent's code is not run
                os.write(2, f"{type(error).__name__}: {error!s:.120}".encode(errors="replace"))
            finally:
                os._exit(1)
        os.close(writable)
        answer, in_time = _read(readable, seconds)
        os.close(readable)
        if not in_time:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        return _verdict(check, answer, status, in_time, seconds, errors.read())


def _read(descriptor, seconds):
    """A line, or the data until the other end is closed, and whether that was in time. Processes
    that the library started may keep the other end open."""
    end, answer = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(max(end - time.monotonic(), 0)):
            part = os.read(descriptor, 65536)
            answer += part
            if not part or part.endswith(b"\n"):
                return answer, True
    return answer, False


def _verdict(check, answer, status, in_time, seconds, errors):
    if not in_time:
        return Verdict(check, "hang", f"no end within {seconds:g} s")
    if status == 0 and answer:
        return Verdict(check, *json.loads(answer))
    lines = errors.decode(errors="replace").strip().splitlines()
    how = f"exit status {status}"
    if status < 0:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
    said = [line for line in lines if line.startswith("Fatal Python error")] or lines[-1:]
    return Verdict(check, "crash", ": ".join([how, *said[:1]])[:200])


def work(find):
    """The worker: imports the library once, then reads names of checks and writes verdicts."""
    # What the library prints is not for those who read verdicts.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    library = find()
    print(json.dumps([library.name, library.version() if hasattr(library, "version") else "",
                      library.fork and hasattr(os, "fork")]), file=out, flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        check = CHECKS[name]
        forks = library.fork and hasattr(os, "fork") and not check.ends
        verdict = judge_forked(library, check, float(seconds)) if forks else judge(library, check)
        print(json.dumps([verdict.outcome, verdict.text]), file=out, flush=True)


class Worker:
    """A process that has imported the library."""

    def __init__(self, arguments):
        if not sys.executable:
            raise ValueError("checks run in processes of Python: sys.executable is empty")
        # With this process's options, such as -I.
        python = [sys.executable, *subprocess._args_from_interpreter_flags()]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*python, "-m", "dlpack_rs.conform", "--worker", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.ended = False
        hello = self.process.stdout.readline()
        if not hello:
            self.process.wait()
            self.errors.seek(0)
            text = self.errors.read().decode(errors="replace").strip()
            self.close()
            raise ImportError(text.splitlines()[-1] if text else "the library cannot be imported")
        self.name, self.version, self.forks = json.loads(hello)

    def judge(self, check, seconds):
        """A verdict; by a fork of the worker, or by the worker, which ends then."""
        self.process.stdin.write(f"{check.id} {seconds}\n".encode())
        self.process.stdin.flush()
        if self.forks and not check.ends:
            answer = self.process.stdout.readline()
            if answer:
                return Verdict(check, *json.loads(answer))
        self.ended = True
        self.process.stdin.close()
        answer, in_time = _read(self.process.stdout.fileno(), seconds)
        try:  # Python closes its output before the process ends
            status = self.process.wait(seconds if in_time else 0)
        except subprocess.TimeoutExpired:
            in_time = False
            self.process.kill()
            status = self.process.wait()
        self.errors.seek(0)
        return _verdict(check, answer, status, in_time, seconds, self.errors.read())

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Report:
    """All verdicts about one library."""

    def __init__(self, name, version):
        self.name, self.version, self.verdicts = name, version, []

    def count(self, outcome):
        return sum(verdict.outcome == outcome for verdict in self.verdicts)


def run(arguments, checks, seconds=SECONDS, progress=None):
    """Judges a library, which is named as on the command line, by some checks."""
    worker = Worker(arguments)
    report = Report(worker.name, worker.version)
    try:
        for check in checks:
            if worker is None:
                worker = Worker(arguments)
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
