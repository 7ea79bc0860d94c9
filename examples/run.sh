#!/usr/bin/env bash
# Builds the C and C++ examples, runs them under valgrind, and compares what they print with
# examples/expected/. What a line "Link: ..." names is linked too; such examples run without
# valgrind, which has much to say about drivers, and only where there are the files that a line
# "Needs: FILE PACKAGE ..." names. BLESS=1 rewrites the expected ones. Arguments: INCLUDE LIBDIR of a
# built library (`make build` leaves them in target/include and target/lib).
set -u
CDPATH='' cd "$(dirname "$0")/.." || exit 1
include=$(realpath "${1:-target/include}") && lib=$(realpath "${2:-target/lib}") || exit 1
for tool in gcc g++ valgrind; do
  command -v "$tool" >/dev/null ||
    { echo "examples/run.sh needs $tool: apt-get install $tool"; exit 1; }
done
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
warn="-Wall -Wextra -Wpedantic -Werror -g"
link=("-L$lib" -ldlpack_rs "-Wl,-rpath,$lib")
passed=0 failed=0

for source in examples/c/*.c examples/cpp/*.cpp; do
  name=$(basename "${source%.*}") dir=$(basename "$(dirname "$source")")
  case $source in *.cpp) compile="g++ -std=c++17" ;; *) compile="gcc -std=c11" ;; esac
  expected=examples/expected/$dir-$name.txt
  also=$(sed -n 's/^ \* Link: \([^*]*\).*/\1/p' "$source")
  missing=
  while read -r file package; do
    [ -z "$file" ] || [ -e "$file" ] || missing="$missing $package"
  done < <(sed -n 's/^ \* Needs: //p' "$source")
  # shellcheck disable=SC2086 # arguments of the linker
  [ -z "$also" ] || gcc -shared -nostdlib $also -o /dev/null -xc /dev/null 2>/dev/null ||
    missing="$missing (for $also)"
  if [ -n "$missing" ]; then
    echo "$source: not run, because these packages are not installed:$missing"
    continue
  fi
  check="valgrind -q --leak-check=full --error-exitcode=9"
  [ -z "$also" ] || check=
  # shellcheck disable=SC2086
  if $compile $warn -I"$include" "$source" "${link[@]}" $also -o "$out/$name" >"$out/log" 2>&1 &&
     $check "$out/$name" >"$out/said" 2>"$out/log" &&
     { [ -z "${BLESS:-}" ] || cp "$out/said" "$expected"; } &&
     diff -u "$expected" "$out/said" >"$out/log" 2>&1; then
    passed=$((passed + 1)); echo "pass  $source"
  else
    failed=$((failed + 1)); cat "$out/log"; echo "FAIL  $source"
  fi
done
# Between processes: these print what they cannot run.
for script in examples/shared_memory/run.sh examples/mpi/run.sh; do
  "$script" "$include" "$lib" >"$out/log" 2>&1 && status=0 || status=1
  cat "$out/log"
  passed=$((passed + $(grep -c '^pass ' "$out/log"))) failed=$((failed + status))
done
echo "examples: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
