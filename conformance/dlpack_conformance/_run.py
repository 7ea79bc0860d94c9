"""Runs checks, each in a separate process: a crash is a verdict, too."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings

from ._causes import unfreed, unmet
from ._model import STAGE, Failed, Noted, Skipped, Unfreed, Verdict, findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._libraries import Library
    from ._model import Check

SECONDS = 180  # for one check: a machine may have much else to do


def judge(library: Library, check: Check) -> Verdict:
    """A verdict by this process, which may crash before."""
    try:
        if check.subject in ("producer", "both") and library.make is None:
            return Verdict(check, "skip", "the library is no producer here")
        if check.subject in ("consumer", "both") and library.take is None:
            return Verdict(check, "skip", "the library is no consumer here")
        if why := unmet(library, check):
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


def judge_forked(library: Library, check: Check, seconds: float = SECONDS) -> Verdict:
    """A verdict by a fork of this process. A check that `ends` is left out: what a fork lacks, such
    as the library's threads, may be what the end waits for."""
    if check.ends:
        return Verdict(check, "skip", "needs a program that ends: use the command line")
    return _judged(library, check, seconds, lambda *files: _Fork(library, check, *files))


def judge_by_program(library, arguments, check, seconds):
    """A verdict by a program of its own: its end belongs to a check that `ends`."""
    if not sys.executable:
        return Verdict(check, "skip", "needs a program of Python: sys.executable is empty")
    # With this process's options, such as -I.
    program = [sys.executable, *subprocess._args_from_interpreter_flags(), "-m",
               "dlpack_conformance", "--worker", check.id, *arguments]
    return _judged(library, check, seconds, lambda out, errors: subprocess.Popen(
        program, stdin=subprocess.DEVNULL, stdout=out, stderr=errors))


class _Fork:
    """A fork that judges, with what of subprocess.Popen is needed."""

    def __init__(self, library, check, out, errors):
        with warnings.catch_warnings():  # the child judges and ends, whatever other threads do
            warnings.simplefilter("ignore")
            self.pid = os.fork()
        if self.pid != 0:
            return
        try:
            os.dup2(errors.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            faulthandler.disable()  # a crash is expected, and its report is long
            gc.freeze()  # what the parent has is not searched again by each collection
            answer(library, check, os.fdopen(os.dup(out.fileno()), "w"))
            os._exit(0)
        except BaseException as error:  # SystemExit, pytest.skip: the parent's code is not run
            os.write(2, f"{type(error).__name__}: {error!s:.120}".encode(errors="replace"))
        finally:
            os._exit(1)

    def poll(self):
        child, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if child else None

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        os.waitpid(self.pid, 0)


def answer(library, check, file):
    """Judges a check, and writes what runs, the verdict, and what other checks rest on."""
    def write(*what):
        print(json.dumps(what), file=file, flush=True)

    STAGE[0] = lambda what: write("stage", what)
    verdict = judge(library, check)
    write("verdict", verdict.outcome, verdict.text[:2000])
    write("known", findings(library))


def _judged(library, check, seconds, start):
    """The verdict of a process that writes it to a file: of a pipe, processes that the library
    started may keep the other end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process, end = start(out, errors), time.monotonic() + seconds
        while (status := process.poll()) is None and time.monotonic() < end:
            time.sleep(0.001)
        if status is None:
            process.kill()
            process.wait()
        out.seek(0)
        errors.seek(0)
        lines = [json.loads(line) for line in out if line.endswith(b"\n")]
        said = errors.read().decode(errors="replace").strip().splitlines()
    written = {what: rest for what, *rest in lines}
    findings(library).update(*written.get("known", []))
    if "verdict" in written and (status == 0 or written["verdict"][0] not in ("pass", "note")):
        return Verdict(check, *written["verdict"])
    stage = written.get("stage", [""])[0]
    how = f"no end within {seconds:g} s" if status is None else f"exit status {status}"
    if status is not None and status < 0:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
    said = [line for line in said if line.startswith("Fatal Python error")] or said[-1:]
    text = ": ".join([how, *said[:1]])[:200]
    if stage.endswith(" judges it"):
        findings(library)[stage] = f"{stage}: {text}"
        return Verdict(check, "skip", f"{stage}: {text}")
    if stage.startswith("the library's own"):
        return Verdict(check, "skip", f"{stage} ends the process: {text}")
    return Verdict(check, "hang" if status is None else "crash",
                   f"{text} ({stage})" if stage else text)


def work(find, check):
    """The program of one check: imports the library, and writes what runs and the verdict."""
    # What the library prints is not for those who read verdicts.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer(find(), check, out)
    if not check.ends:
        os._exit(0)


class Report:
    """All verdicts about one library."""

    def __init__(self, name, version):
        self.name, self.version, self.verdicts = name, version, []


def run(library, arguments, checks, seconds=SECONDS):
    """Judges a library, which the arguments name on the command line, by some checks."""
    report = Report(library.name, library.version())
    for check in checks:
        report.verdicts.append(
            judge_forked(library, check, seconds)
            if library.fork and hasattr(os, "fork") and not check.ends
            else judge_by_program(library, arguments, check, seconds))
    return report
