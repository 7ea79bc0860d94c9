#!/bin/sh
# Tests of the library from Python, with NumPy as the reference, through ctypes and through cffi.
#
#   run.sh [LIBRARY [PYTEST_ARGUMENTS...]]      default: target/lib/libdlpack_rs.so
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
examples=$here/../../examples/python
python=$("$examples/venv.sh" "$examples/requirements.txt" "$here/requirements.txt" \
    "$here/../../examples/bindings/requirements.txt")
if ! "$examples/venv.sh" "$here/requirements-pyright.txt" >/dev/null; then
    echo "pyright: not run: pip has none for this machine"
    rm -f "$here"/../../target/venv/asked/*-requirements-pyright.txt.new
fi
if [ $# -gt 0 ]; then
    DLPACK_RS_LIBRARY=$(CDPATH='' cd "$(dirname "$1")" && pwd)/$(basename "$1")
    export DLPACK_RS_LIBRARY
    shift
fi
exec "$python" -B -m pytest -q --tb=short -p no:cacheprovider "$here" "$@"
