#!/bin/sh
# Exchanges real tensors between Python's frameworks through libdlpack_rs, and prints the results.
#
#   demo.sh [LIBRARY]       default: target/lib/libdlpack_rs.so
#
# NumPy and tvm-ffi are installed into target/venv; PyTorch, JAX and TensorFlow are used if the
# environment has them: see venv.sh for another environment.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
python=$("$here/venv.sh" "$here/requirements.txt")
if [ $# -gt 0 ]; then
    DLPACK_RS_LIBRARY=$(CDPATH='' cd "$(dirname "$1")" && pwd)/$(basename "$1")
    export DLPACK_RS_LIBRARY
fi
exec "$python" "$here/demo.py"
