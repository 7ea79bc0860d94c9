#!/bin/sh
# Measures the library next to memcpy, NumPy, torch and others: benches/results, docs/benchmarks.md.
# `bench.sh --help` lists the options; `make bench` builds the library first.
#
# The virtual environment is target/venv-bench; VENV selects another folder, which is then left
# unchanged. torch may be missing there, and so may be the libraries of benches/peers,
# which are built here (HPTT needs cmake, a C++ compiler and some minutes, once).
set -eu
root=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=${VENV:-$root/target/venv-bench}
if [ -z "${VENV:-}" ]; then
    stamp=$venv/$(cksum < benches/requirements.txt | tr -d ' ').installed
    [ -x "$venv/bin/pip" ] || "${PYTHON:-python3}" -m venv "$venv"
    pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"
    if [ ! -e "$stamp" ]; then
        # One by one: without torch, which is large, the rest can still be measured.
        for need in $(grep -v '^#' benches/requirements.txt); do
            $pip "$need" || echo "bench.sh: $need could not be installed" >&2
        done
        : > "$stamp"
    fi
fi
benches/peers/build.sh || echo "bench.sh: goes on without what is missing of benches/peers" >&2
exec "$venv/bin/python" -B benches/bench.py "$@"
