#!/bin/sh
# Runs lemmas.py with z3, which it installs into target/venv.
set -eu
CDPATH='' cd "$(dirname "$0")/.."
exec "$(examples/python/venv.sh tests/requirements-lemmas.txt)" -B tests/lemmas.py
