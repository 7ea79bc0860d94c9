#!/usr/bin/env bash
# Runs the MPI examples, in C and in Python, with Open MPI and with MPICH, as far as installed:
# run.sh INCLUDE LIBDIR of a built library. Ends with "mpi: N passed, N failed".
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include}") && lib=$(realpath "${2:-target/lib}") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Short names: Open MPI creates sockets below it.
export TMPDIR=/tmp DLPACK_RS_LIBRARY=$lib/libdlpack_rs.so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
passed=0 failed=0
row() { # row NAME EXPECTED COMMAND...
  local name=$1 expected=$2; shift 2
  if timeout -k 10 120 "$@" >"$work/said" 2>"$work/log" && sort "$work/said" >"$work/sorted" &&
     diff -u "$expected" "$work/sorted" >>"$work/log" 2>&1; then
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); cat "$work/said" "$work/log"; echo "FAIL  $name"
  fi
}

python='' why="package mpi4py"
if command -v mpirun.openmpi mpirun.mpich >/dev/null; then
  python=$(examples/python/venv.sh examples/mpi/requirements.txt) || python=
  # Its MPI is chosen when it is loaded.
  [ -z "$python" ] || "$python" -c 'import mpi4py, numpy' 2>/dev/null || python=
fi
for mpi in openmpi:libopenmpi-dev mpich:libmpich-dev; do
  package=${mpi#*:} mpi=${mpi%:*}
  if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
    echo "$mpi: not run: package $package"
    continue
  fi
  if "mpicc.$mpi" -std=c11 -Wall -Wextra -Werror -g -I"$include" examples/mpi/strided.c \
      -L"$lib" -ldlpack_rs -Wl,-rpath,"$lib" -o "$work/$mpi" >"$work/log" 2>&1; then
    row "$mpi, C" examples/expected/mpi-strided-c.txt "mpirun.$mpi" -n 2 "$work/$mpi"
  else
    failed=$((failed + 1)); cat "$work/log"; echo "FAIL  $mpi, C: does not build"
  fi
  if [ -z "$python" ]; then
    echo "$mpi, Python: not run: $why"
    continue
  fi
  # Debian's name of MPICH's library differs from that in mpi4py's wheel.
  mkdir -p "$work/names"
  mpich=$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)
  [ -z "$mpich" ] || ln -sf "$mpich" "$work/names/libmpi.so.12"
  row "$mpi, Python" examples/expected/mpi-strided-python.txt env MPI4PY_MPIABI="$mpi" \
    LD_LIBRARY_PATH="$work/names" "mpirun.$mpi" -n 2 "$python" -B examples/mpi/strided.py
done
echo "mpi: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
