# Sourced by the scripts beside it: tools, rows, and the C test programs.
# shellcheck shell=bash
set -uo pipefail
root=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
cd "$root" || exit 1
target_dir=${CARGO_TARGET_DIR:-$root/target}
tests=${DLRS_C_TESTS:-$root/c_tests}
export CARGO_TARGET_DIR=$target_dir

. tests/lib/rows.sh

# need TOOL:PACKAGE...: exits with the packages to install when a tool is missing.
need() {
  local pair missing=
  for pair in "$@"; do
    [ -e "${pair%%:*}" ] || command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
  done
  [ -z "$missing" ] && return
  echo "$0: missing: apt-get install --no-install-recommends$missing"
  echo "  (the names are Debian's)"
  exit 1
}

# A compiler that can build `core` for any target: one with its sources. DLRS_RUSTC and DLRS_CARGO
# select another one.
find_rust() {
  local candidate
  for candidate in "${DLRS_RUSTC:-}" rustc /usr/bin/rustc; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if [ -e "$("$candidate" --print sysroot)/lib/rustlib/src/rust/library/core/Cargo.toml" ]; then
      RUSTC=$(command -v "$candidate")
      cargo=${DLRS_CARGO:-$(dirname "$RUSTC")/cargo}
      export RUSTC RUSTC_BOOTSTRAP=1
      return
    fi
  done
  echo "$0: no Rust compiler with the sources of its standard library. On Debian:"
  echo "  apt-get install --no-install-recommends rustc-web cargo-web rust-web-src"
  echo "or, with rustup: rustup component add rust-src"
  exit 1
}

# build TARGET LINKER [WHAT [ARGUMENT...]]: cargo build of the shipped library for a target.
build() {
  local name=${1^^}
  # The full path, as CMake passes it: for another name cargo would build everything again.
  export "CARGO_TARGET_${name//-/_}_LINKER=$(command -v "$2")"
  "$cargo" "${3:-build}" --release --locked -p dlpack_rs_cdylib --target "$1" -Zbuild-std=core \
    "${@:4}"
}

# layouts CC CXX [OPTION...]: every offset, as constants, seen by the target's C and C++.
layouts() {
  local header standard compile
  for header in dlpack.h dlpack_rs.h; do
    for standard in c99 c11 c17 c++11 c++17 c++20; do
      compile=("$1" -x c -pedantic)
      case $standard in c++*) compile=("$2" -x c++) ;; esac
      "${compile[@]}" "${@:3}" -std=$standard -Wall -Wextra -Werror -fsyntax-only \
        -include stddef.h -include stdint.h -Iinclude -DHEADER="\"$header\"" \
        c_tests/headers/layout.c
    done
  done
}
# An ELF library exports exactly the list, but for what musl's linker adds.
exported() { # exported FILE
  readelf -W --dyn-syms "$1" |
    awk '$5 == "GLOBAL" && $7 != "UND" && $8 !~ /^_(init|fini)$/ { print $8 }' | sort |
    diff <(crates/cdylib/exports.sh) -
}
# Law 6: it has no thread-local storage, and no code that only a panic needs; and it stays loaded.
lean() { # lean FILE
  readelf -Wd "$1" | grep -F NODELETE
  if readelf -Wl "$1" | grep -E '^ +TLS'; then return 1; fi
  readelf -W --dyn-syms "$1" | sed -n 's/.* UND //p' | sort -u
  if readelf -W --dyn-syms "$1" | grep -E 'UND (abort|_Unwind|__tls_get_addr)'; then return 1; fi
}
# shellcheck disable=SC2154 # $out is set by those that source this
compile_parts() { # compile_parts CC AR: $out/libparts.a
  local part
  for part in $(parts); do
    "$1" -std=gnu11 -O1 -Iinclude -I"$tests" -c "$part" -o "$out/$(basename "$part" .c).o"
  done
  rm -f "$out/libparts.a"
  "$2" rcs "$out/libparts.a" $(parts | sed "s|.*/\(.*\)\.c|$out/\1.o|")
}

# The programs: files with a main. The others are linked to them.
programs() { grep -lE '^int main\(' "$tests"/*.c; }
parts() { grep -LE '^int main\(' "$tests"/*.c; }
cxx_programs() { grep -lE '^int main\(' "$tests"/*.cpp 2>/dev/null; }