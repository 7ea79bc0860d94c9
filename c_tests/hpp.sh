#!/usr/bin/env bash
# The C++ headers: compile without a warning as C++17, C++20 and C++23 with g++ and clang++, with
# libstdc++ and (where it is installed) libc++, with and without exceptions; behave; leak nothing;
# reject invalid programs. Arguments: INCLUDE LIBDIR.
# CLANG names another clang++ to test as well, as clang++-22 of the newest libc++.
set -u
CDPATH='' cd "$(dirname "$0")/.." || exit 1
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
warn=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
link=("-I$include" "-L$lib" -ldlpack_rs "-Wl,-rpath,$lib")
all="test_hpp test_hpp_core test_hpp_std"
plain="test_hpp_core test_hpp_std" # what works without exceptions

build_and_run() { # EXE TEST COMPILER...
  "${@:3}" "${warn[@]}" -g -O1 "c_tests/$2.cpp" "${link[@]}" -o "$1" && "$1"
}
programs() { # NAMES COMPILER...
  local name exe
  for name in $1; do
    exe=$out/program
    [ "${*:2}" != "g++ -std=c++17" ] || exe=$out/g++-$name # for valgrind
    try "$name, ${*:2}" build_and_run "$exe" "$name" "${@:2}"
  done
}

# libc++ needs a recent clang: the newest one that compiles it is used.
libcxx=
for compiler in ${CLANG:-} clang++ clang++-{14..30}; do
  command -v "$compiler" >/dev/null || continue
  echo '#include <string>' | "$compiler" -stdlib=libc++ -fsyntax-only -xc++ - 2>/dev/null &&
    libcxx=$compiler
done
for standard in 17 20 2b; do
  for compiler in g++ clang++; do
    programs "$all" "$compiler" "-std=c++$standard"
  done
  programs "$plain" g++ "-std=c++$standard" -fno-exceptions -fno-rtti
  if [ -n "$libcxx" ]; then
    programs "$all" "$libcxx" -stdlib=libc++ "-std=c++$standard"
    programs "$plain" "$libcxx" -stdlib=libc++ "-std=c++$standard" -fno-exceptions -fno-rtti
  fi
done
[ -n "$libcxx" ] || echo "not run  libc++: apt-get install libc++-dev libc++abi-dev"

# Each header alone, and each program under the sanitizers of C++ and under valgrind.
for header in "$include"/*.hpp; do
  # The library or the bindings of a program may be absent.
  case $header in *_mdspan.hpp | *_python.hpp | *_nanobind.hpp | *_pybind11.hpp) continue ;; esac
  try "$(basename "$header") alone" g++ -std=c++17 "${warn[@]}" -fsyntax-only -xc++ "$header" \
    -Wno-pragma-once-outside-header
done
# shellcheck disable=SC2054
sanitize=(-fsanitize=address,undefined -fno-sanitize-recover=all)
programs "$all" g++ -std=c++17 "${sanitize[@]}"
for name in $all; do
  try "valgrind: $name" valgrind -q --leak-check=full --error-exitcode=9 "$out/g++-$name"
done

refused() { # STANDARD WORDS SOURCE: does not compile, and says why
  printf '#include "dlpack_rs.hpp"\nusing namespace dlpack_rs;\n%s\n' "$3" >"$out/source.cpp"
  # shellcheck disable=SC2086
  ! g++ -std=$1 -fsyntax-only -I"$include" "$out/source.cpp" 2>"$out/said" &&
    { grep -q "$2" "$out/said" || { cat "$out/said"; false; }; }
}
for type in "long double" "std::complex<long double>" "std::complex<int>" "void *"; do
  try "no dtype of $type" refused c++17 "not an element type" "auto type = dtype_of<$type>();"
done
try "C++14 is refused" refused c++14 "needs C++17 or newer" ""
try "a view of a temporary is refused" refused c++17 "deleted" \
  'float a[2]; TensorView view = Described(a, {2});'
try "a named container is not moved silently" refused c++17 "no matching function" \
  'auto f(std::string &s) { return Tensor::from(s); }'
try "packed elements have no address" refused c++17 "as large as its dtype" \
  'struct Nibble {}; template <> struct dlpack_rs::dtype_traits<Nibble> {
     static constexpr DLDataType value{kDLInt, 4, 1}; };
   auto f(Tensor &t) { return t.data_as<Nibble>(); }'
try "results are used" refused "c++17 -Werror" "nodiscard" \
  'void f() { Tensor::make<float>({2}); }'

# Vendors' element types, by stand-ins for their headers; those of Eigen where it is installed.
vendors() {
  cat >"$out/vendor.cpp" <<'CPP'
#define __CUDA_FP16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__
#define __CUDA_FP8_TYPES_EXIST__
struct __half { unsigned short x; };
struct __nv_bfloat16 { unsigned short x; };
struct __nv_fp8_e4m3 { unsigned char x; };
struct __nv_fp8_e5m2 { unsigned char x; };
#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#else
#define EIGEN_HALF_H
#define EIGEN_BFLOAT16_H
namespace Eigen {
struct half { unsigned short x; };
struct bfloat16 { unsigned short x; };
}
#endif
#include "dlpack_rs_vendor.hpp"
using namespace dlpack_rs;
template <class T>
constexpr bool is(int code, size_t bits) {
  return same(dtype_of<const T>(), DLDataType{uint8_t(code), uint8_t(bits), 1}) &&
         sizeof(T) * 8 == bits;
}
static_assert(is<__half>(kDLFloat, 16) && is<__nv_bfloat16>(kDLBfloat, 16));
static_assert(is<__nv_fp8_e4m3>(kDLFloat8_e4m3fn, 8) && is<__nv_fp8_e5m2>(kDLFloat8_e5m2, 8));
static_assert(is<Eigen::half>(kDLFloat, 16) && is<Eigen::bfloat16>(kDLBfloat, 16));
CPP
  g++ -std=c++17 "${warn[@]}" -I"$include" -fsyntax-only "$out/vendor.cpp"
}
try "element types of CUDA and Eigen" vendors

# The two modes are different types: a program with both does not link by mistake.
mixed() {
  printf '#include "dlpack_rs_core.hpp"\nint f(dlpack_rs::Tensor &t) { return t.ndim(); }\n' \
    >"$out/a.cpp"
  printf '#include "dlpack_rs_core.hpp"\nint f(dlpack_rs::Tensor &);\n%s\n' \
    'int main() { dlpack_rs::Tensor t; return f(t); }' >"$out/b.cpp"
  g++ -std=c++17 -I"$include" -c "$out/a.cpp" -o "$out/a.o" "$@"
  ! g++ -std=c++17 "$out/b.cpp" "$out/a.o" "${link[@]}" -o "$out/mixed" 2>"$out/said" &&
    grep -q "undefined reference" "$out/said"
}
try "objects compiled without exceptions do not link by mistake" mixed -fno-exceptions
# The core is for inclusion in headers: it includes little more than the C header and the
# language's.
small() {
  local lines
  lines=$(echo '#include "dlpack_rs_core.hpp"' | g++ -std=c++17 -I"$include" -E -P -xc++ - | wc -l)
  echo "$lines lines" && [ "$lines" -le 8000 ]
}
try "the core brings at most 8,000 lines" small
echo "hpp: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
