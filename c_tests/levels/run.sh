#!/usr/bin/env bash
# Copies with every set of kernels that this processor supports, each as on a processor without the
# others, and with the plain Rust equivalents of AVX2's and AVX-512's: the programs run on stacks of
# 64 KiB, with layouts of full length, which take too long under valgrind. The library is built as
# it is shipped, with these and one more function. Arguments: INCLUDE, and a folder for programs and
# library that are then not run, for tests/avx512.
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include/dlpack}") || exit 1
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/levels
if [ $# -gt 1 ]; then
  mkdir -p "$2" && out=$(realpath "$2") || exit 1
else
  out=$(mktemp -d) || exit 1
  trap 'rm -rf "$out"' EXIT
fi
host=$("${CARGO:-cargo}" -vV | sed -n 's/^host: //p')
"${CARGO:-cargo}" build -q --release --locked -p dlpack_rs_cdylib --features levels \
  --target-dir "$target" --target "$host" || exit 1
soname=$(crates/cdylib/soname.sh)
cp "$target/$host/release/libdlpack_rs.so" "$out/$soname" || exit 1
programs="test_stack test_engine"
for program in $programs; do
  gcc -g -O1 -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$include" -Ic_tests \
    c_tests/levels/level.c c_tests/{harness,inject}.c "c_tests/$program.c" \
    "$out/$soname" -Wl,-rpath,'$ORIGIN' -ldl -lpthread -lm \
    -o "$out/$program" || exit 1
done
[ $# -gt 1 ] && exit
levels="portable neon avx2 avx512 vbmi emulated emulated-lanes"
number=0
for level in $levels; do
  number=$((number + 1))
  for program in $programs; do
    LEVEL=$number "$out/$program" >"$out/$level-$program" 2>&1
    echo $? >"$out/$level-$program.status"
  done &
done
wait
passed=0 failed=0
for level in $levels; do
  for program in $programs; do
    log=$out/$level-$program status=$(cat "$out/$level-$program.status")
    [ "$status" -eq 77 ] && echo "$level, $program: not on this processor" && continue
    read -r p _ f _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' <(tail -n 1 "$log") || echo 0 0 1)
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ "$f" -ne 0 ] && tail -n 40 "$log"
    passed=$((passed + p)) failed=$((failed + f))
    echo "$level, $program: exit status $status; $(grep '^stack:' "$log")"
  done
done
echo "levels: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
