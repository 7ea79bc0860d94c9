#!/bin/sh
# Tests of the conformance kit, which need nothing but pytest: run.sh [PYTEST_ARGUMENTS...]
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
examples=$here/../../examples/python
python=$("$examples/venv.sh" "$examples/requirements.txt" "$here/../../tests/python/requirements.txt")
PYTHONPATH=$here/..
export PYTHONPATH
exec "$python" -B -m pytest -q --tb=short -p no:cacheprovider "$here" "$@"
