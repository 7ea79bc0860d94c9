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

# The programs: files with a main. The others are linked to them.
programs() { grep -lE '^int main\(' "$tests"/*.c; }
parts() { grep -LE '^int main\(' "$tests"/*.c; }
cxx_programs() { grep -lE '^int main\(' "$tests"/*.cpp 2>/dev/null; }