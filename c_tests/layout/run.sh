#!/usr/bin/env bash
# Tests what others test their dlpack.h with: run.sh INCLUDE LIBDIR
#   dlpack_rs_layout.h in every language standard on headers of several versions and on headers that
#   are wrong in one place each; dlpack_rs_test_layout in a CMake project; both on the headers of
#   real projects: Debian's libdlpack-dev, and every dlpack.h in the Python environment that
#   $PYTHON or target/ has (torch's and TVM's), or that LAYOUT_HEADERS names.
# Ends with "layout: N passed, N failed".
set -uo pipefail
root=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd) || exit 1
include=$(realpath "${1:-$root/target/include/dlpack}") && lib=$(realpath "${2:-$root/target/lib}")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset CMAKE_PREFIX_PATH DESTDIR CARGO_TARGET_DIR
passed=0 failed=0
row() { # row NAME COMMAND...
  local name=$1; shift
  (set -e; "$@") >"$work/log" 2>&1
  if [ $? -eq 0 ]; then # shellcheck disable=SC2181
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); tail -n 30 "$work/log"; echo "FAIL  $name"
  fi
}
fails() { if "$@"; then echo "should have failed: $*"; return 1; fi; }

compile() { # compile COMPILER LANGUAGE STANDARD HEADER OPTION...
  "$1" -x "$2" "-std=$3" -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${@:5}" -include "$4" \
    "$include/dlpack_rs_layout.h"
}
dialects() { # dialects COMMAND...: appended COMPILER LANGUAGE STANDARD
  local standard
  for standard in c99 c11 c17 c2x; do
    "$@" gcc c $standard
    ! command -v clang >/dev/null || "$@" clang c $standard
  done
  for standard in c++11 c++14 c++17 c++20 c++2b; do
    "$@" g++ c++ $standard
    ! command -v clang++ >/dev/null || "$@" clang++ c++ $standard
  done
}
accepted() { compile "${@: -3}" "$1" "${@:2:$#-4}"; }
refused() { # refused HEADER TEXT [OPTION...] COMPILER LANGUAGE STANDARD: and the message has TEXT
  fails compile "${@: -3}" "$1" "${@:3:$#-5}" 2>"$work/said"
  # C99's messages are names.
  [ "${*: -1}" = c99 ] || grep -F "$2" "$work/said"
}
old=$root/c_tests/headers/dlpack_0_8.h
wrong() { # the flags before the deleter, as somebody may have it
  sed -e '/uint64_t flags;/d' \
    -e 's|^  void (\*deleter)(struct DLManagedTensorVersioned.*|  uint64_t flags;\n&|' \
    "$include/dlpack.h" >"$work/wrong.h"
  fails cmp "$include/dlpack.h" "$work/wrong.h"
}
newer=$work/newer.h codes="kDLTPU=19 kDLTPUHost=20 kDLAscend=21 kDLBcomplex=18"
sed -e '/kDLTrn = 18,/a kDLTPU=19, kDLTPUHost=20, kDLAscend=21,' \
  -e '/kDLFloat4_e2m1fn = 17U,/a kDLBcomplex=18,' "$include/dlpack.h" >"$newer"
sed 's/_MINOR_VERSION 3/_MINOR_VERSION 4/' "$newer" >"$work/1_4.h"
each_newer_code() {
  local code
  for code in $codes; do
    sed "s/\b$code,/${code}0,/" "$newer" >"$work/wrong_code.h"
    refused "$work/wrong_code.h" "${code%=*} must be ${code#*=}" -DDLRS_LAYOUT_MINIMUM=104 "$@"
    refused "$include/dlpack.h" "${code%=*}" -DDLRS_LAYOUT_MINIMUM=104 "$@"
  done
}
row "every change of one place is seen" python3 -B "$root/c_tests/layout/mutants.py" "$include"
row "1.3, in every language" dialects accepted "$include/dlpack.h" -DDLRS_LAYOUT_MINIMUM=103
row "1.3 with the codes since" dialects accepted "$newer" -DDLRS_LAYOUT_MINIMUM=104
row "each of those codes" dialects each_newer_code
row "1.4 has them" dialects accepted "$work/1_4.h"
row "0.8: named is what it lacks" dialects refused "$old" \
  "it lacks DLManagedTensorVersioned, DLPackVersion, flags, kDLMAIA (since DLPack 1.0)"
row "0.8, where that is enough" dialects accepted "$old" -DDLRS_LAYOUT_MINIMUM=8
wrong
row "flags in the wrong place: named" dialects refused "$work/wrong.h" \
  "DLManagedTensorVersioned.flags must be at offset"

# ---- the CMake function ------------------------------------------------------------------------
install_library() {
  cmake -S "$root" -B "$work/build" -DDLPACK_RS_CARGO_TARGET_DIR="$root/target" \
    "-DDLPACK_RS_CARGO=$(command -v cargo)"
  cmake --build "$work/build"
  cmake --install "$work/build" --prefix "$work/installed"
}
project() { # project NAME HEADER [OPTION...]
  rm -rf "${work:?}/$1"
  cmake -S "$root/examples/layout_consumer" -B "$work/$1" -DCMAKE_PREFIX_PATH="$work/installed" \
    -DDLPACK_H="$2" "${@:3}" || return
  (cd "$work/$1" && ctest --output-on-failure) >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log"; return 1; }
}
all_run() { # what the compilers know of C99 to C23, C++11 to 23, and the program
  cat "$work/$1.log"
  [ "$(grep -cE '^ *[0-9]+/[0-9]+ Test .*Passed' "$work/$1.log")" -ge 9 ]
}
right_header() { project right "$include/dlpack.h" -DMINIMUM=1.3; all_run right; }
old_header() {
  fails project old "$old"
  grep -F "differs  versioned_flags: 0 (not declared), the library has 24" "$work/old.log"
  grep -F "lacks DLManagedTensorVersioned" "$work/old.log"
}
old_is_enough() { project enough "$old" -DMINIMUM=0.8; all_run enough; }
wrong_header() {
  fails project wrong "$work/wrong.h"
  grep -F "differs  versioned_deleter: 24, the library has 16" "$work/wrong.log"
  grep -F "differs  versioned_flags: 16, the library has 24" "$work/wrong.log"
  grep -F "dlrs_abi_check: " "$work/wrong.log"
}
bad_arguments() {
  fails project bad "$old" -DMINIMUM=one 2>"$work/said"
  grep -F "MINIMUM is one" "$work/said"
}
install_library >"$work/log" 2>&1 || { cat "$work/log"; failed=$((failed + 1)); }
row "CMake: 1.3" right_header
row "CMake: 0.8 fails, and says what differs" old_header
row "CMake: 0.8, where that is enough" old_is_enough
row "CMake: flags in the wrong place" wrong_header
row "CMake: a version that is none" bad_arguments

# ---- without CMake, and on what real projects have ---------------------------------------------
by_hand() { # by_hand HEADER MINIMUM: the two lines of docs/layout_test.md
  printf '#include "%s"\n#define DLRS_LAYOUT_DEFINE\n#include "%s"\n' "$1" \
    "$include/dlpack_rs_layout.h" >"$work/table.c"
  gcc -DDLRS_LAYOUT_MINIMUM="$2" "$work/table.c" -I"$work/installed/include" \
    "$work/installed/lib/cmake/dlpack_rs/layout_check.c" -L"$lib" -ldlpack_rs -Wl,-rpath,"$lib" \
    -o "$work/check"
  "$work/check"
}
real() { # 0.6 is the oldest
  dialects accepted "$1" -DDLRS_LAYOUT_MINIMUM=6
  by_hand "$1" 6
}
row "by hand: 1.3" by_hand "$include/dlpack.h" 103
row "by hand: 0.8" by_hand "$old" 8
row "by hand: 0.8 is too old" fails by_hand "$old" 100
found=0
# shellcheck disable=SC2038,SC2046,SC2086
for header in ${LAYOUT_HEADERS:-} $(find /usr/include/dlpack/dlpack.h \
    $(${PYTHON:-python3} -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null) \
    "$root"/target/{venv,tmp/headers} -name dlpack.h 2>/dev/null |
    xargs -r grep -lE '^} DLManagedTensor;' | xargs -r realpath | sort -u); do
  found=$((found + 1))
  row "${header#"$root/"}" real "$header"
done
[ "$found" -gt 0 ] || echo "headers of other projects: not run: package libdlpack-dev"
echo "layout: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
