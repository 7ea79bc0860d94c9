#!/bin/sh
# Compares the stand-in with a recorded real driver: conform.sh TRACE STANDIN RECORDED
# TRACE is the program, RECORDED its output on a real driver. One check per call.
[ $# -eq 3 ] || { echo "usage: conform.sh TRACE STANDIN RECORDED"; exit 2; }
root=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
"$1" "$2" "$root/crates/gpu/src/kernels.ptx" >"$work/here" || { echo "0 passed, 1 failed"; exit 1; }
diff "$3" "$work/here" >"$work/difference"
failed=$(grep -c '^<' "$work/difference")
passed=$(($(grep -c . "$3") - failed))
cat "$work/difference"
[ "$failed" -eq 0 ] && ! [ -s "$work/difference" ] || failed=$((failed + (failed == 0)))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
