#!/usr/bin/env bash
# Runs the example of a tensor in shared memory, both processes under valgrind where it is
# installed, and a hostile peer against it: run.sh INCLUDE LIBDIR of a built library. Ends with
# "shared memory: N passed, N failed".
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include}") && lib=$(realpath "${2:-target/lib}") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
check=
! command -v valgrind >/dev/null ||
  check="valgrind -q --leak-check=full --error-exitcode=9 --trace-children=yes"
compile() {
  gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -g -I"$include" "$@" -L"$lib" -ldlpack_rs \
      -Wl,-rpath,"$lib"
}
passed=0 failed=0
report() { # the last command's status, name
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "pass  $2"
  else failed=$((failed + 1)); cat "$work/log"; echo "FAIL  $2"; fi
}
# shellcheck disable=SC2086
compile examples/shared_memory/shared_memory.c -o "$work/shared_memory" >"$work/log" 2>&1 &&
  timeout -k 10 120 $check "$work/shared_memory" >"$work/said" 2>"$work/log" &&
  diff -u examples/expected/shared_memory.txt "$work/said" >"$work/log" 2>&1
report $? examples/shared_memory
# Not under valgrind, which does not pass a limit of descriptors on to the kernel.
compile -Wno-override-init -fsanitize=address examples/shared_memory/hostile.c \
        -o "$work/hostile" >"$work/log" 2>&1 &&
  timeout -k 10 120 "$work/hostile" >"$work/log" 2>&1
report $? examples/shared_memory/hostile
echo "shared memory: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
