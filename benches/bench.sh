#!/bin/sh
# Measures the library next to memcpy, NumPy, torch, jax and others: docs/benchmarks.md, plots.
#
#   bench.sh [--quick] [--only SECTION,...]      see bench.py
#   bench.sh python [--quick] [--write]          see python_exchange.py
#
# `make build` comes first (`make bench` does both). The virtual environment is target/venv-bench;
# to use one of your own, which is then left as it is, set VENV to its folder. torch and jax may be
# missing there, and so may be the Rust and C++ libraries of benches/peers, which are built here (HPTT
# needs cmake, a C++ compiler and some minutes, once): the table says so.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=${VENV:-$root/target/venv-bench}
if [ -z "${VENV:-}" ]; then
    stamp=$venv/$(cksum < benches/requirements.txt | tr -d ' ').installed
    [ -x "$venv/bin/pip" ] || "${PYTHON:-python3}" -m venv "$venv"
    pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"
    if [ ! -e "$stamp" ]; then
        # One by one: without torch or jax, which are large, the rest can still be measured.
        for need in $(grep -v '^#' benches/requirements.txt); do
            $pip "$need" || echo "bench.sh: $need could not be installed" >&2
        done
        : > "$stamp"
    fi
fi
export DLPACK_RS_LIBRARY="${DLPACK_RS_LIBRARY:-$root/target/lib/libdlpack_rs.so}"
case ${1:-} in
python) script=python_exchange.py && shift ;;
*)
    script=bench.py
    benches/peers/build.sh || echo "bench.sh: goes on without what is missing of benches/peers" >&2
    ;;
esac
exec "$venv/bin/python" -B "benches/$script" "$@"
