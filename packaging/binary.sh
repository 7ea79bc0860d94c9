#!/usr/bin/env bash
# The release archive of a platform: binary.sh TRIPLE [CMAKE-OPTION...], one of
#   x86_64-unknown-linux-gnu   built from the source archive, without a network, in an empty home;
#                              by zig for glibc 2.17 and later, where tools() has it
#   aarch64-unknown-linux-gnu, riscv64gc-unknown-linux-gnu, x86_64-unknown-linux-musl,
#   x86_64-pc-windows-gnu      from this folder, with `core` compiled for the platform
# Leaves target/packages/dlpack_rs-VERSION-TRIPLE.tar.gz, the folder it was made of, and the build
# tree target/packages/build-TRIPLE, to be installed from.
set -euo pipefail
. "$(dirname "$0")/common.sh"
triple=$1; shift
build=$out/build-$triple prefix=$out/$name-$triple
rm -rf "$build" "$prefix"
source=$root strip=strip
# The folders of packaging/platforms/: existing builds there are reused.
case $triple in
aarch64-*) dir=$root/target/cross/aarch64/cargo gnu=aarch64-linux-gnu processor=aarch64 ;;
riscv64gc-*) dir=$root/target/cross/riscv64/cargo gnu=riscv64-linux-gnu processor=riscv64 ;;
*-musl) dir=$root/target/musl/cargo gnu='' processor=x86_64 ;;
*-windows-*) dir=$root/target/windows/cargo gnu=x86_64-w64-mingw32 processor=x86_64 ;;
x86_64-*) dir=$out/cargo gnu='' processor=x86_64 ;;
*) echo "binary.sh: unknown platform $triple"; exit 2 ;;
esac
options=("-DDLPACK_RS_CARGO_TARGET_DIR=$dir" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Release
  "-DDLPACK_RS_CARGO=$cargo" -DCMAKE_INSTALL_DOCDIR=share/doc/dlpack_rs)
run=(env)
if [ "$triple" = x86_64-unknown-linux-gnu ]; then
  rm -rf "${out:?}/src" "${out:?}/home"
  mkdir -p "$out/src" "$out/home"
  tar xzf "$out/$name-src.tar.gz" -C "$out/src"
  source=$out/src/$name
  options+=("-DDLPACK_RS_CARGO_FLAGS=--offline")
  run=(isolated env "CARGO_HOME=$out/home" "RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}")
  tools
  if "$tools/bin/python" -m ziglang version >/dev/null 2>&1; then
    # zig adds the index of unwind tables, which build.rs leaves out, unless disabled.
    printf '#!/bin/sh\nexec "%s" -m ziglang cc -target x86_64-linux-gnu.2.17 %s "$@"\n' \
      "$tools/bin/python" "-fno-unwind-tables -fno-asynchronous-unwind-tables" >"$out/linker"
    chmod +x "$out/linker"
    run+=("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$out/linker")
  fi
else
  # Rust's sources of `core`: packaging/platforms/common.sh finds a compiler that has them.
  . packaging/platforms/common.sh
  find_rust
  export RUSTC
  unset CARGO_TARGET_DIR
  options+=("-DDLPACK_RS_CARGO=$cargo" "-DDLPACK_RS_CARGO_TARGET=$triple"
    "-DDLPACK_RS_CARGO_FLAGS=-Zbuild-std=core")
  run+=(RUSTC_BOOTSTRAP=1)
  case $triple in
  *-windows-*) options+=("-DCMAKE_TOOLCHAIN_FILE=$root/packaging/cmake/mingw-toolchain.cmake") ;;
  *-musl) options+=("-DCMAKE_C_COMPILER=$(command -v musl-gcc)") ;;
  *) options+=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$processor"
    "-DCMAKE_C_COMPILER=$(command -v $gnu-gcc)") ;;
  esac
  [ -z "$gnu" ] || strip=$gnu-strip
fi
"${run[@]}" cmake -S "$source" -B "$build" "${options[@]}" "$@"
"${run[@]}" cmake --build "$build"
cmake --install "$build" --prefix "$prefix"
find "$prefix" \( -name 'libdlpack_rs.so.*' -o -name '*.dll' \) ! -type l -exec "$strip" \
  --strip-unneeded {} +
pack "$prefix" "$prefix.tar.gz"
sha256sum "$prefix.tar.gz"
