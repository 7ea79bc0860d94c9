#!/usr/bin/env bash
# The library with fewer Cargo features: its core alone, and one more combination. Each is built,
# passes the checks of its file (with the exports of its features, and no size above its limit), has
# headers that compile and declare these exports, passes the C tests that call no other function, and
# reports missing features. Arguments: INCLUDE [FEATURES...], each a list as "cuda print".
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
include=$(realpath "${1:-target/include/dlpack}") || exit 1
shift $(($# > 0))
[ $# -gt 0 ] || set -- "" "cuda print"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/features
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
host=$("${CARGO:-cargo}" -vV | sed -n 's/^host: //p')
jobs=$(nproc 2>/dev/null || echo 2)
warn="-Wall -Wextra -Wpedantic -Werror"
# Those that take long and test what no feature changes; those that load CUDA's driver.
long="test_engine test_platform test_racing test_workers"
for_cuda="test_device test_setters"
passed=0 failed=0

try() { # try NAME COMMAND...
  if "${@:2}" >"$out/log" 2>&1; then passed=$((passed + 1))
  else failed=$((failed + 1)); echo "FAIL  $1"; tail -n 40 "$out/log"; fi
}
counted() { # counted NAME FILE STATUS: adds up a program's closing line
  local p f
  read -r p _ f _ < <(tail -n 1 "$2" | grep -E '^[0-9]+ passed, [0-9]+ failed$' || echo 0 0 1)
  [ "$3" -ne 0 ] && [ "$f" -eq 0 ] && f=1
  [ "$f" -eq 0 ] || { echo "FAIL  $1: exit status $3"; tail -n 40 "$2"; }
  passed=$((passed + p)) failed=$((failed + f))
}
declared() { # what the header declares is what the library exports
  gcc -E -P -DDLRS_API=DLRS_API $1 -xc "$include/dlpack_rs.h" | tr '\n' ' ' | sed 's/DLRS_API/\n/g' |
    sed -nE 's/^[^(]*\b(dlrs_[a-z0-9_]+) ?\(.*/\1/p' | LC_ALL=C sort | diff "$out/exports" -
}
sets() { # so for every set of the features that have functions; module has all of them
  local set feature defines
  for set in "" python cast print "python cast" "python print" "cast print" "python cast print" \
      module; do
    defines=''
    for feature in python cast print; do
      case " $set " in *" $feature "* | *" module "*) ;; *) defines="$defines -DDLRS_NO_${feature^^}" ;; esac
    done
    DLRS_FEATURES=$set crates/cdylib/exports.sh >"$out/exports"
    declared "$defines" || { echo "with \"$set\""; return 1; }
  done
}

run() { # run PROGRAM: builds and runs it; leaves its output and exit status
  local name
  name=$bin/$(basename "$1" .c)
  # shellcheck disable=SC2086
  gcc $flags "-I$include" "$1" "$bin/harness.o" "$bin/inject.o" "-L$lib" -ldlpack_rs "-Wl,-rpath,$lib" -ldl \
    -lpthread -lm -o "$name" >"$name.log" 2>&1 &&
    MALLOC_PERTURB_=165 timeout 300 "$name" >"$name.log" 2>&1
  echo $? >"$name.status"
}

combination() { # combination FEATURES
  local lib=$out/lib bin=$out/bin feature name defines='' program programs='' left skipped=$long
  export DLRS_FEATURES=$1
  for feature in cuda rocm python cast print vectors; do
    case " $1 " in *" $feature "*) ;; *) defines="$defines -DDLRS_NO_${feature^^}" ;; esac
  done
  case $defines in *CUDA*) skipped="$skipped $for_cuda" ;; esac
  "${CARGO:-cargo}" build -q --release --locked -p dlpack_rs_cdylib --no-default-features \
    --features "$1" --target-dir "$target" --target "$host" ||
    { failed=$((failed + 1)); echo "FAIL  \"$1\" does not build"; return; }
  rm -rf "${lib:?}" && mkdir "$lib"
  cp "$target/$host/release/libdlpack_rs.so" "$lib" && ln -s libdlpack_rs.so "$lib/$(crates/cdylib/soname.sh)"
  crates/cdylib/exports.sh >"$out/exports"
  left=$(crates/cdylib/exports.sh | LC_ALL=C comm -13 - <(cut -d" " -f1 include/exports.txt))

  c_tests/laws.sh "$include" "$lib" >"$out/laws" 2>&1
  local status=$?
  sed -n "s/^stripped: /\"$1\": /p" "$out/laws"
  sed -i '/^stripped: /d' "$out/laws"
  counted "laws of \"$1\"" "$out/laws" $status

  try "\"$1\": the header declares what is exported" declared "$defines"
  for standard in c99 c++17; do
    # shellcheck disable=SC2086
    try "\"$1\": the header as $standard" gcc -std=$standard $warn $defines -fsyntax-only \
      -x "${standard%%[0-9]*}" "$include/dlpack_rs.h"
  done
  # shellcheck disable=SC2086
  try "\"$1\": the C++ headers" g++ -std=c++17 $warn $defines -fsyntax-only -x c++ \
    "$include/dlpack_rs.hpp" -Wno-pragma-once-outside-header

  # The programs whose text names no function that is left out.
  for program in c_tests/test_*.c; do
    case " $skipped " in *" $(basename "$program" .c) "*) continue ;; esac
    gcc -fpreprocessed -E -P -xc "$program" | grep -qwF "${left:-none}" || programs="$programs $program"
  done
  programs="$programs c_tests/features/left_out.c"
  rm -rf "${bin:?}" && mkdir "$bin"
  flags="-g -O1 -std=c11 $warn $defines -Ic_tests"
  for name in harness inject; do
    # shellcheck disable=SC2086
    gcc -c $flags "-I$include" "c_tests/$name.c" -o "$bin/$name.o"
  done
  export lib bin flags include
  export -f run
  # shellcheck disable=SC2086
  printf '%s\n' $programs | xargs -P "$jobs" -I{} bash -c 'run {}'
  for program in $programs; do
    program=$bin/$(basename "$program" .c)
    counted "$(basename "$program") of \"$1\"" "$program.log" "$(cat "$program.status")"
  done
  echo "\"$1\": $(echo "$programs" | wc -w) programs, $(wc -l <"$out/exports") functions"
}

# The installed files of the first combination declare its features: with both of its libraries,
# left_out.c is compiled with the definitions of CMake's targets and pkg-config.
installed() { # installed FEATURES
  cmake -S . -B "$out/cmake" "-DDLPACK_RS_FEATURES=$1" "-DDLPACK_RS_CARGO_TARGET_DIR=$target" \
    "-DCMAKE_INSTALL_PREFIX=$out/prefix" && cmake --build "$out/cmake" &&
    cmake --install "$out/cmake" || return 1
  mkdir "$out/consumer"
  cat >"$out/consumer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(dlpack_rs REQUIRED COMPONENTS shared static $1)
if(NOT "\${dlpack_rs_FEATURES}" STREQUAL "${1// /;}")
  message(FATAL_ERROR "features: \${dlpack_rs_FEATURES}")
endif()
foreach(feature IN ITEMS cuda rocm python cast print vectors)
  find_package(dlpack_rs QUIET COMPONENTS \${feature})
  list(FIND dlpack_rs_FEATURES \${feature} place)
  if((place EQUAL -1 AND dlpack_rs_\${feature}_FOUND) OR
     (NOT place EQUAL -1 AND NOT dlpack_rs_\${feature}_FOUND))
    message(FATAL_ERROR "component \${feature}: \${dlpack_rs_\${feature}_FOUND}")
  endif()
endforeach()
find_package(Threads REQUIRED)
foreach(kind IN ITEMS shared static)
  add_executable(\${kind} "$PWD/c_tests/features/left_out.c" "$PWD/c_tests/harness.c"
    "$PWD/c_tests/inject.c")
  target_include_directories(\${kind} PRIVATE "$PWD/c_tests" "$out/prefix/include/dlpack")
  target_link_libraries(\${kind} dlpack_rs::dlpack_rs_\${kind} Threads::Threads \${CMAKE_DL_LIBS})
endforeach()
CMAKE
  cmake -S "$out/consumer" -B "$out/consumer/build" "-DCMAKE_PREFIX_PATH=$out/prefix" &&
    cmake --build "$out/consumer/build" && "$out/consumer/build/shared" && "$out/consumer/build/static" ||
    return 1
  PKG_CONFIG_PATH=$(echo "$out"/prefix/lib*/pkgconfig)
  export PKG_CONFIG_PATH
  [ "$(pkg-config --variable=features dlpack_rs)" = "$1" ] || return 1
  local by=()
  eval "by=($(pkg-config --cflags --libs dlpack_rs))" # blanks are escaped
  gcc -Ic_tests "-I$out/prefix/include/dlpack" c_tests/{features/left_out,harness,inject}.c \
    "${by[@]}" -ldl -lpthread "-Wl,-rpath,$out/prefix/lib" -o "$out/by_pkg_config" &&
    "$out/by_pkg_config"
}

try "every set of features: the header declares what is exported" sets
for features in "$@"; do combination "$features"; done
unset DLRS_FEATURES
try "installed with \"$1\"" installed "$1"
echo "features: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
