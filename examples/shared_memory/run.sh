#!/usr/bin/env bash
# Runs the example of a tensor in shared memory, both processes under valgrind where it is
# installed: run.sh INCLUDE LIBDIR of a built library. Ends with "shared memory: N passed, N
# failed".
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include}") && lib=$(realpath "${2:-target/lib}") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
check=
! command -v valgrind >/dev/null ||
  check="valgrind -q --leak-check=full --error-exitcode=9 --trace-children=yes"
# shellcheck disable=SC2086
if gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -g -I"$include" \
      examples/shared_memory/shared_memory.c -L"$lib" -ldlpack_rs -Wl,-rpath,"$lib" -lrt \
      -o "$work/shared_memory" >"$work/log" 2>&1 &&
   timeout -k 10 120 $check "$work/shared_memory" >"$work/said" 2>"$work/log" &&
   diff -u examples/expected/shared_memory.txt "$work/said" >"$work/log" 2>&1; then
  echo "pass  examples/shared_memory"; echo "shared memory: 1 passed, 0 failed"
else
  cat "$work/log"; echo "FAIL  examples/shared_memory"; echo "shared memory: 0 passed, 1 failed"
  exit 1
fi
