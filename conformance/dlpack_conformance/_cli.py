"""`python -m dlpack_conformance`."""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import os
import sys
from contextlib import contextmanager, redirect_stdout

from . import _cross, _report
from ._libraries import LIBRARIES, find
from ._model import CHECKS, SEVERITIES
from ._run import SECONDS, run, work
from ._texts import STANDARDS, asked


def selected(patterns, standard=None):
    """Checks whose identifier or severity fits one of the patterns; all without patterns. Those
    whose sentence is younger than a year of the standard are left out."""
    checks = [check for check in CHECKS.values() if standard is None or asked(check.text, standard)]
    if not patterns:
        return checks
    wanted = [part for pattern in patterns for part in pattern.split(",") if part]
    if not wanted:
        raise ValueError("--select names no check: leave it out to select all")
    for part in wanted:
        if part not in SEVERITIES and not fnmatch.filter(CHECKS, part):
            raise ValueError(f"no check fits {part!r}; identifiers are C01 to X12, severities "
                             f"{', '.join(SEVERITIES)}")
    return [check for check in checks
            if any(check.severity == part or fnmatch.fnmatch(check.id, part) for part in wanted)]


def known_of(path):
    """Identifiers of a file: one a line, a reason may follow, # begins a comment."""
    known = {}
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            words = line.partition("#")[0].split(None, 1)
            if words and words[0] not in CHECKS:
                raise ValueError(f"{path}:{number}: there is no check {words[0]!r}")
            if words:
                known[words[0]] = words[1].strip() if len(words) > 1 else ""
    return known


def positive(text):
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no time between 0 and 1e6 seconds")
    return value


def parser(program):
    arguments = argparse.ArgumentParser(
        prog=program, description="Judges how a Python library keeps the rules of DLPack.",
        epilog="Exit status: 0 no violation but known ones, 1 violations or known ones that are "
               "gone, 2 wrong arguments or a library that cannot be imported.")
    arguments.add_argument("producer", nargs="?", metavar="PRODUCER",
                           help=f"one of {', '.join(LIBRARIES)}; or MODULE:EXPRESSION, a "
                                "Library or a function that makes a tensor of the library of one "
                                "in host memory")
    arguments.add_argument("--from", dest="consumer", metavar="CONSUMER",
                           help="a library of the list, or MODULE:EXPRESSION, a from_dlpack "
                                "function")
    arguments.add_argument("--select", action="append", metavar="P15,C*,MUST",
                           help="only these checks: identifiers, patterns, severities")
    arguments.add_argument("--namespace", action="store_true",
                           help="PRODUCER is a module with asarray and from_dlpack, as the array "
                                "API standard has them")
    arguments.add_argument("--standard", choices=STANDARDS, metavar="YEAR",
                           help="what this year of the array API standard asks, and the DLPack of "
                                f"its time: {', '.join(STANDARDS)}")
    arguments.add_argument("--seed", type=int, default=0, help="of the crossed checks (0)")
    arguments.add_argument("--explain", metavar="ID", help="the rule of a check and its source")
    arguments.add_argument("--list", action="store_true", help="all checks")
    arguments.add_argument("--known", metavar="FILE",
                           help="violations that are known: an identifier a line, a reason may "
                                "follow, # begins a comment")
    arguments.add_argument("--seconds", type=positive, default=SECONDS,
                           help=f"time limit of each check ({SECONDS})")
    forms = arguments.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="all verdicts, for programs")
    forms.add_argument("--junit", action="store_true", help="all verdicts, for CI: JUnit's XML")
    forms.add_argument("--markdown", action="store_true", help="all verdicts, as a table")
    arguments.add_argument("--worker", metavar="ID", help=argparse.SUPPRESS)
    return arguments


def found(options):
    """The library that is named; whatever its import raises, it cannot be judged."""
    try:
        return find(options.producer, options.consumer, options.namespace)
    except Exception as error:
        raise ImportError(f"{type(error).__name__}: {error}") from error


@contextmanager
def _apart():
    """What a library prints is not for those who read verdicts: it goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if hasattr(ctypes.pythonapi, "fflush"):
            ctypes.pythonapi.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def main(arguments: list[str] | None = None, program: str = "dlpack_conformance") -> int:
    """The exit status."""
    options = parser(program).parse_args(arguments)
    _cross.SEED[0] = options.seed
    if options.worker:
        work(lambda: found(options), CHECKS[options.worker])
        return 0
    try:
        if options.explain:
            if options.explain not in CHECKS:
                raise ValueError(f"there is no check {options.explain!r}; --list shows all")
            print(CHECKS[options.explain].explain())
            return 0
        checks = selected(options.select, options.standard)
        if options.list:
            for check in checks:
                print(f"{check.id} {check.severity:6} {check.rule}")
            return 0
        if not options.producer:
            raise ValueError("which PRODUCER? --help says what it may be")
        known = known_of(options.known) if options.known else {}
        named = [options.producer, "--seed", str(options.seed),
                 *(["--from", options.consumer] if options.consumer else []),
                 *["--namespace"] * options.namespace]
        with _apart():
            report = run(found(options), named, checks, options.seconds)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    if hasattr(sys.stdout, "reconfigure"):  # messages may have what the encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    if options.json:
        print(_report.as_json(report, known))
    elif options.junit:
        print(_report.junit(report, known))
    elif options.markdown:
        print(_report.markdown(report, known))
    else:
        print(_report.text(report, known))
    gone = _report.gone(report, known)
    for verdict in gone:
        print(f"{verdict.check.id} is known, and passes: take it out of {options.known}",
              file=sys.stderr)
    return 1 if gone or _report.new(report, known) else 0
