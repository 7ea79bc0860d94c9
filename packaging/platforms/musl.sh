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
  mkdir -p "$out"
  cp "$target_dir/$triple/release/libdlpack_rs.so" "$out/"
  cp "$out/libdlpack_rs.so" "$out/libcopy.so"
  soname=$(readelf -d "$out/libdlpack_rs.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
  ln -sf libdlpack_rs.so "$out/$soname"
  CC=musl-gcc crates/cdylib/static.sh "$target_dir/$triple/release/libdlpack_rs.a" "$out/libdlpack_rs.a"
}
lean() { # law 6: no thread-local storage, nothing that only a panic needs, nothing of glibc
  readelf -Wd "$out/libdlpack_rs.so" | grep -F NODELETE
  if readelf -Wd "$out/libdlpack_rs.so" | grep NEEDED | grep -v '\[libc.so\]'; then return 1; fi
  if readelf -Wl "$out/libdlpack_rs.so" | grep -E '^ +TLS'; then return 1; fi
  if readelf -W --dyn-syms "$out/libdlpack_rs.so" |
    grep -E 'UND (abort|_Unwind|__tls_get_addr)|GLIBC'; then return 1; fi
}
exported() { # exactly the list, but for what the linker adds
  readelf -W --dyn-syms "$out/libdlpack_rs.so" |
    awk '$5 == "GLOBAL" && $7 != "UND" && $8 !~ /^_(init|fini)$/ { print $8 }' | sort |
    diff <(crates/cdylib/exports.sh) -
}
static_program() { # the archive in a program without any shared library
  musl-gcc -static -std=c11 -Ic_tests -I"$out/include" examples/c/hello.c -L"$out" \
    -l:libdlpack_rs.a -o "$out/hello"
  "$out/hello" | diff examples/expected/c-hello.txt -
}
compile_parts() {
  local part
  mkdir -p "$out/include"
  ln -sfn "$root/include" "$out/include/dlpack"
  for part in $(parts); do
    musl-gcc -std=gnu11 -O1 -Iinclude -I"$tests" -c "$part" -o "$out/$(basename "$part" .c).o"
  done
  rm -f "$out/libparts.a"
  ar rcs "$out/libparts.a" $(parts | sed "s|.*/\(.*\)\.c|$out/\1.o|")
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
  row "exports are the list" exported
  row "no TLS, no panic path, stays loaded" lean
  row "parts of the C tests" compile_parts
  row "a static program" static_program
  # shellcheck disable=SC2046
  for source in ${ONLY:-$(programs)}; do row "$(basename "$source")" program "$source"; done
fi
totals musl
