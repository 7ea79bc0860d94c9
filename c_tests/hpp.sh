#!/usr/bin/env bash
# The C++ header: compiles without a warning as C++17 and C++20 with g++ and clang++, behaves, and
# leaks nothing. Arguments: INCLUDE LIBDIR.
set -u
cd "$(dirname "$0")/.." || exit 1
include=$(realpath "${1:-target/include/dlpack}") && lib=$(realpath "${2:-target/lib}") || exit 1
for tool in g++:g++ clang++:clang valgrind:valgrind; do
  command -v "${tool%:*}" >/dev/null || { echo "hpp.sh needs ${tool%:*}: apt-get install ${tool#*:}"; exit 1; }
done
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
passed=0 failed=0
try() { # NAME COMMAND...
  if "${@:2}" >"$out/log" 2>&1; then passed=$((passed + 1)); echo "pass  $1"
  else failed=$((failed + 1)); cat "$out/log"; echo "FAIL  $1"; fi
}
for compiler in g++ clang++; do
  for standard in 17 20; do
    program=$out/$compiler-$standard
    try "$compiler -std=c++$standard: no warnings" "$compiler" "-std=c++$standard" -O1 -Wall \
      -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$include" c_tests/test_hpp.cpp \
      -L"$lib" -ldlpack_rs -Wl,-rpath,"$lib" -o "$program"
    try "$compiler -std=c++$standard: $("$program" 2>&1 | tail -n 1)" "$program"
  done
done
refused() { # TYPE: has no DLPack type, and says so
  printf '#include "dlpack_rs.hpp"\nauto type = dlpack_rs::dtype_of<%s>();\n' "$1" >"$out/type.cpp"
  ! g++ -std=c++17 -fsyntax-only -I"$include" "$out/type.cpp" 2>"$out/said" &&
    grep -q "not an element type\|has no DLPack type" "$out/said"
}
for type in "long double" "std::complex<long double>" "std::complex<int>" "void *"; do
  try "no dtype of $type" refused "$type"
done
too_old() { # COMPILER: says what is wrong, and nothing else first
  ! "$1" -std=c++14 -fsyntax-only -Iinclude -xc++ include/dlpack_rs.hpp 2>"$out/said" &&
    grep -m 1 error "$out/said" | grep -F "needs C++17"
}
for compiler in g++ clang++; do
  try "$compiler -std=c++14: says that it is too old" too_old "$compiler"
done
try "valgrind" valgrind -q --leak-check=full --error-exitcode=9 "$out/g++-17"
echo "hpp: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
