#!/usr/bin/env bash
# The C and C++ tests on other architectures, under qemu-user: `cross.sh [aarch64|i686|armv7|
# s390x|powerpc64|riscv64]...`; riscv64 only where it is named. i686 is not emulated: the processor
# of this machine runs it, with all its vector instructions (and qemu-i386 7.2 hangs in these
# tests). DLRS_CROSS_STD=1 adds the Rust test of the copy engine at every level of instructions,
# which needs std for the target: a minute more each. Runs as many targets at a time as there are
# processors. One line a row; ends with `cross: N passed, N failed`.
. "$(dirname "$0")/common.sh"

describe() { # describe TARGET: Rust's name, GNU's name, qemu's name, Debian's packages
  case $1 in
    aarch64) set -- aarch64-unknown-linux-gnu aarch64-linux-gnu aarch64 aarch64-linux-gnu arm64 ;;
    i686) set -- i686-unknown-linux-gnu i686-linux-gnu i386 i686-linux-gnu i386 ;;
    armv7) set -- armv7-unknown-linux-gnueabihf arm-linux-gnueabihf arm arm-linux-gnueabihf armhf ;;
    s390x) set -- s390x-unknown-linux-gnu s390x-linux-gnu s390x s390x-linux-gnu s390x ;;
    powerpc64) set -- powerpc64-unknown-linux-gnu powerpc64-linux-gnu ppc64 powerpc64-linux-gnu \
      ppc64 ;;
    riscv64) set -- riscv64gc-unknown-linux-gnu riscv64-linux-gnu riscv64 riscv64-linux-gnu \
      riscv64 ;;
    *) echo "cross.sh: unknown target $1"; exit 2 ;;
  esac
  triple=$1 gnu=$2 emulator=qemu-$3
  packages="gcc-$4 g++-$4 libc6-dev-$5-cross"
}

emulated() { # emulated PROGRAM ARGUMENT...
  timeout -k 10 900 "$emulator" -L "/usr/$gnu" -E "LD_LIBRARY_PATH=$out" "$@"
}
native() { # where this machine can run the target itself: with all its vector instructions
  timeout -k 10 900 "/usr/$gnu/lib/ld-linux.so.2" --library-path "$out:/usr/$gnu/lib" "$@"
}

make_library() {
  build "$triple" "$gnu-gcc"
  mkdir -p "$out"
  cp "$target_dir/$triple/release/libdlpack_rs.so" "$out/"
  cp "$out/libdlpack_rs.so" "$out/libcopy.so"
  ln -sf libdlpack_rs.so "$out/$soname"
}
named() { # as programs ask for it
  readelf -Wd "$out/libdlpack_rs.so" | grep -F "[$soname]"
}

link_with=(-lparts -ldlpack_rs -pthread -ldl)
program() { # program RUNNER SOURCE
  local name; name=$(basename "$2")
  local exe=$out/${name%.*}
  case $2 in
    *.cpp) "$gnu-g++" -std=c++17 -O1 -Wall -Iinclude -I"$tests" "$2" -o "$exe" -L"$out" \
      "${link_with[@]}" ;;
    *) "$gnu-gcc" -std=gnu11 -O1 -Wall -Iinclude -I"$tests" "$2" -o "$exe" -L"$out" \
      "${link_with[@]}" ;;
  esac
  case ${name%.*} in
    lifecycle) "$1" "$exe" "$out/libdlpack_rs.so" "$out/libcopy.so" ;;
    # Fewer rounds and smaller layouts where every instruction is emulated.
    test_pool) "$1" "$exe" 10 "$1" ;;
    threads) "$1" "$exe" 50 ;;
    test_elements) "$1" "$exe" 200 ;;
    # Elsewhere the portable kernels are used, which c_tests/levels runs at full length: only the
    # order of bytes and 32 bits are new.
    test_engine) case $triple in
      aarch64* | i686*) "$1" "$exe" 4000 ;;
      *) "$1" "$exe" 1000 ;;
      esac ;;
    *) "$1" "$exe" ;;
  esac
}
# The engine at every level of instructions, which only Rust can select.
rust_engine() {
  local name=${triple^^}
  export "CARGO_TARGET_${name//-/_}_LINKER=$gnu-gcc"
  export "CARGO_TARGET_${name//-/_}_RUNNER=$emulator -L /usr/$gnu"
  "$cargo" test --locked --release -p dlpack_rs --test engine --target "$triple" \
    -Zbuild-std=std,panic_unwind --config 'profile.release.panic="unwind"' \
    --config 'profile.release.lto=false'
}

one_target() { # one_target TARGET
  local source runner=emulated
  # shellcheck disable=SC2086
  need "$gnu-gcc:$packages" "$gnu-g++:$packages" "$emulator:qemu-user" \
    "/usr/$gnu/include/stdio.h:$packages"
  row "$1: the library" make_library
  $worked || return
  row "$1: its name" named
  row "$1: exports are the list" exported "$out/libdlpack_rs.so"
  row "$1: no TLS, no panic path, stays loaded" lean "$out/libdlpack_rs.so"
  row "$1: layout tables, C and C++" layouts "$gnu-gcc" "$gnu-g++"
  row "$1: parts of the C tests" compile_parts "$gnu-gcc" "$gnu-ar"
  $worked || return
  if [ "$1" = i686 ]; then
    runner=native
    row "i686: this machine runs its programs" native --version
    $worked || return
  fi
  for source in $(programs) $(cxx_programs); do
    row "$1: $(basename "$source")" program $runner "$source"
  done
  [ -z "${DLRS_CROSS_STD:-}" ] || row "$1: tests/engine" rust_engine
}

find_rust
need readelf:binutils qemu-s390x:qemu-user
soname=$(crates/cdylib/soname.sh)
[ $# -gt 0 ] || set -- aarch64 i686 armv7 s390x powerpc64
if [ $# -eq 1 ]; then
  describe "$1"
  out=$target_dir/cross/$1
  # A folder each, because cargo locks it.
  target_dir=$out/cargo CARGO_TARGET_DIR=$out/cargo
  one_target "$1"
  totals "cross, $1"
else
  log=$(mktemp)
  printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 "$0" | tee "$log"
  each='s/^cross, .*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p'
  while read -r p f; do
    passed=$((passed + p)) failed=$((failed + f))
  done < <(sed -n "$each" "$log")
  # A target without counts has failed.
  failed=$((failed + $# - $(sed -n "$each" "$log" | wc -l)))
  rm -f "$log"
  totals cross
fi
