"""The command line, `python -m dlpack_rs` or `dlpack_rs`.

Exit status: 0 success, 1 the check failed, 2 wrong arguments or an expression that fails.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys

WHAT = """MODULE:EXPRESSION, evaluated in the module's names, such as 'numpy:arange(6.0)[::-1]';
or a .npy file"""


class Wrong(Exception):
    """An error in one line, with status 2."""


def evaluate(text):
    """The object that an argument of `inspect` and `check` names."""
    try:
        if text.endswith(".npy"):
            import numpy

            return numpy.load(text)
        name, colon, expression = text.partition(":")
        if not (name and colon and expression):
            raise ValueError(f"{text!r} is not MODULE:EXPRESSION, such as numpy:arange(6.0)")
        if "" not in sys.path:
            sys.path.insert(0, "")
        module = importlib.import_module(name)
        return eval(expression, {**vars(module), name.partition(".")[0]: module})
    except Exception as error:
        raise Wrong(f"{text}: {type(error).__name__}: {error}") from None


def examined(options):
    """The Inspection of what is named."""
    import dlpack_rs

    obj = evaluate(options.what)
    try:
        return dlpack_rs.inspect(obj)
    except Exception as error:
        raise Wrong(f"{options.what}: {type(error).__name__}: {error}") from None


def inspect(options):
    found = examined(options)
    if not options.json:
        print(found)
        return 0
    rows = {name: value for name, value in found.rows() if name}
    rows["consumers"] = [{"name": consumer.name, "version": consumer.version, "verdict": verdict,
                          "why": why} for consumer, verdict, why in found.consumers]
    print(json.dumps({"type": found.type, **rows}, indent=1))
    return 0


def check(options):
    """Whether an export is valid at the strictest level."""
    found = examined(options)
    valid = found.valid == "strictly"
    if options.json:
        print(json.dumps({"type": found.type, "valid": valid, "message": found.invalid}, indent=1))
    else:
        print(f"{found.type}: {'valid' if valid else found.invalid}")
    return 0 if valid else 1


def told(options):
    """Arguments for compilers and CMake."""
    from dlpack_rs import _compile
    from dlpack_rs.abi import library_path

    try:
        value = str((library_path if options.command == "library"
                     else getattr(_compile, options.command))())
    except ImportError as error:
        raise Wrong(str(error)) from None
    print(json.dumps({options.command: value}) if options.json else value)
    return 0


def version(options):
    from dlpack_rs import __version__, dlpack_version

    found = {"dlpack_rs": __version__, "dlpack": ".".join(map(str, dlpack_version))}
    print(json.dumps(found) if options.json else
          f"dlpack_rs {found['dlpack_rs']}, DLPack {found['dlpack']}")
    return 0


def parser():
    from dlpack_rs import __version__

    arguments = argparse.ArgumentParser(prog="dlpack_rs", description="DLPack tensors, looked at.",
                                        epilog=__doc__.split("\n\n")[1])
    arguments.add_argument("--version", action="version", version=__version__)
    commands = arguments.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, run, text):
        found = commands.add_parser(name, help=text, description=text)
        found.add_argument("--json", action="store_true", help="for programs")
        found.set_defaults(run=run)
        return found

    for name, run, text in (
            ("inspect", inspect, "show everything about an object's export, and who takes it"),
            ("check", check, "validate an object's export")):
        command(name, run, text).add_argument("what", metavar="WHAT", help=WHAT)
    commands.add_parser("conform", add_help=False,
                        help="judge how a library keeps DLPack's rules; conform --help says more")
    for name, text in (
            ("include", "the folder for programs that include <dlpack/dlpack_rs.h>"),
            ("cflags", "the compiler's arguments"), ("libs", "the linker's arguments"),
            ("cmakedir", "the folder for CMake's dlpack_rs_DIR"),
            ("library", "the path of the shared library")):
        command(name, told, f"print {text}")
    command("version", version, "print the versions of this package and of DLPack")
    return arguments


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as head, has enough: nothing is written at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def run(arguments: list[str]) -> int:
    if arguments[:1] == ["conform"]:
        try:
            from dlpack_rs.conform import main as conform
        except ModuleNotFoundError as error:
            print(f"dlpack_rs: {error}", file=sys.stderr)
            return 2
        status: int = conform(arguments[1:])
        return status
    options = parser().parse_args(arguments)
    try:
        status = options.run(options)
        return status
    except Wrong as error:
        print(f"dlpack_rs: {error}".splitlines()[0], file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
