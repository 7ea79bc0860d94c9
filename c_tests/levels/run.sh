#!/usr/bin/env bash
# Copies with every set of kernels that this processor supports, each as on a processor without the
# others, and with the plain Rust equivalents of AVX2's and AVX-512's: test_engine runs on stacks of
# 64 KiB, with layouts of full length, which take too long under valgrind. The library is built as
# it is shipped, with these and one more function. Argument: INCLUDE.
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include/dlpack}") || exit 1
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/levels
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
host=$("${CARGO:-cargo}" -vV | sed -n 's/^host: //p')
"${CARGO:-cargo}" build -q --release --locked -p dlpack_rs_cdylib --features levels \
  --target-dir "$target" --target "$host" || exit 1
soname=$(crates/cdylib/soname.sh)
cp "$target/$host/release/libdlpack_rs.so" "$out/$soname" || exit 1
gcc -g -O1 -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$include" -Ic_tests \
  c_tests/levels/level.c c_tests/{harness,inject,test_engine}.c \
  "$out/$soname" -Wl,-rpath,'$ORIGIN' -ldl -lpthread -lm -o "$out/test_engine" || exit 1
levels="portable neon avx2 avx512 vbmi emulated emulated-lanes"
number=0
for level in $levels; do
  number=$((number + 1))
  { LEVEL=$number "$out/test_engine" >"$out/$level" 2>&1; echo $? >"$out/$level.status"; } &
done
wait
passed=0 failed=0
for level in $levels; do
  log=$out/$level status=$(cat "$out/$level.status")
  [ "$status" -eq 77 ] && echo "$level: not on this processor" && continue
  read -r p _ f _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' <(tail -n 1 "$log") || echo 0 0 1)
  [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
  [ "$f" -ne 0 ] && tail -n 40 "$log"
  passed=$((passed + p)) failed=$((failed + f))
  echo "$level: exit status $status; $(grep '^stack:' "$log")"
done
echo "levels: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
