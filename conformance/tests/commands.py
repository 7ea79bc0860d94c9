"""The command line, as programs and in this process."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import dlpack_conformance as conform


def command(*arguments, **options):
    """`python -m dlpack_conformance`, with this process's package."""
    options.setdefault("env", environment())
    return subprocess.run([sys.executable, "-B", "-m", "dlpack_conformance", *arguments],
                          capture_output=True, text=True, timeout=300, **options)


def environment(*folders):
    package = os.path.dirname(os.path.dirname(conform.__file__))
    here = os.path.dirname(os.path.abspath(__file__))
    return {**os.environ, "NO_COLOR": "1",
            "PYTHONPATH": os.pathsep.join([*map(str, folders), package, here])}


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = conform.main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()
