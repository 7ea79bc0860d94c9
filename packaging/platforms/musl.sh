#!/usr/bin/env bash
# The library for musl (Alpine's C library) and the C tests with it, run by this processor. C++ needs
# a libstdc++ for musl, which Debian lacks: those tests are not run. One line a row; ends with
# `musl: N passed, N failed`.
. "$(dirname "$0")/common.sh"

triple=$(uname -m)-unknown-linux-musl
out=$target_dir/musl
target_dir=$out/cargo CARGO_TARGET_DIR=$out/cargo

make_library() {
  build "$triple" musl-gcc
  mkdir -p "$out/include"
  ln -sfn "$root/include" "$out/include/dlpack"
  cp "$target_dir/$triple/release/libdlpack_rs.so" "$out/"
  cp "$out/libdlpack_rs.so" "$out/libcopy.so"
  soname=$(readelf -d "$out/libdlpack_rs.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
  ln -sf libdlpack_rs.so "$out/$soname"
  CC=musl-gcc crates/cdylib/static.sh "$target_dir/$triple/release/libdlpack_rs.a" "$out/libdlpack_rs.a"
}
needed() { # nothing of glibc
  if readelf -Wd "$out/libdlpack_rs.so" | grep NEEDED | grep -v '\[libc.so\]'; then return 1; fi
  if readelf -W --dyn-syms "$out/libdlpack_rs.so" | grep GLIBC; then return 1; fi
}
static_program() { # the archive in a program without any shared library
  musl-gcc -static -std=c11 -Ic_tests -I"$out/include" examples/c/hello.c -L"$out" \
    -l:libdlpack_rs.a -o "$out/hello"
  "$out/hello" | diff examples/expected/c-hello.txt -
}
program() { # program SOURCE
  local name; name=$(basename "$1" .c)
  local run=(timeout -k 10 900 env "LD_LIBRARY_PATH=$out" "$out/$name")
  musl-gcc -std=gnu11 -O1 -Wall -Iinclude -I"$tests" "$1" -o "$out/$name" -L"$out" -lparts \
    -ldlpack_rs -pthread -ldl
  case $name in
  lifecycle) "${run[@]}" "$out/libdlpack_rs.so" "$out/libcopy.so" ;;
  *) "${run[@]}" ;;
  esac
}

find_rust
need musl-gcc:musl-tools readelf:binutils
row "the library" make_library
if $worked; then
  row "exports are the list" exported "$out/libdlpack_rs.so"
  row "no TLS, no panic path, stays loaded" lean "$out/libdlpack_rs.so"
  row "libc only" needed
  row "parts of the C tests" compile_parts musl-gcc ar
  row "a static program" static_program
  # shellcheck disable=SC2046
  for source in ${ONLY:-$(programs)}; do row "$(basename "$source")" program "$source"; done
fi
totals musl
