#!/usr/bin/env bash
# The macOS libraries, linked by zig (PyPI's cargo-zigbuild and ziglang): exports, imports,
# thread-local storage, install name, read off the Mach-O files. Nothing here runs them. ZIGBUILD
# names the folder of an environment that has both; else one is made in target/macos. One line a
# row; ends with `macos: N passed, N failed`.
. "$(dirname "$0")/common.sh"

out=$target_dir/macos
target_dir=$out/cargo CARGO_TARGET_DIR=$out/cargo

tools=${ZIGBUILD:-$out/tools}
get_zig() {
  [ -x "$tools/bin/cargo-zigbuild" ] || {
    python3 -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check cargo-zigbuild==0.24.1 \
      ziglang==0.17.1
  }
}
make_library() { # make_library TRIPLE
  PATH=$tools/bin:$PATH "$cargo" zigbuild --release --locked -p dlpack_rs_cdylib --target "$1" \
    -Zbuild-std=core
  cp "$target_dir/$1/release/libdlpack_rs.dylib" "$out/$1.dylib"
}
exported() { # exactly the list, but for two names that zig's linker adds
  llvm-nm --extern-only --defined-only "$out/$1.dylib" | awk '{ print substr($3, 2) }' |
    grep -vxE '__dso_handle|_mh_dylib_header' | sort | diff <(crates/cdylib/exports.sh) -
}
lean() { # law 6: no thread-local storage, no start-up code, nothing that only a panic needs
  llvm-objdump --macho --section-headers "$out/$1.dylib" >"$out/sections.txt"
  if grep -E '__thread|__mod_init' "$out/sections.txt"; then return 1; fi
  llvm-nm --undefined-only "$out/$1.dylib" | awk '{ print $NF }' | sort >"$out/$1.imports"
  cat "$out/$1.imports"
  if grep -E '^_(abort|_Unwind|_tlv_bootstrap)' "$out/$1.imports"; then return 1; fi
  # The names are those of Linux, and those that compilers for this platform call.
  sed 's/^_//' "$out/$1.imports" | grep -vxF -f c_tests/imports.txt |
    grep -vxE '__udivti3|(__)?bzero|memcmp|memset_pattern16|dyld_stub_binder' \
      >"$out/unexpected.txt" || true
  cat "$out/unexpected.txt"
  [ ! -s "$out/unexpected.txt" ]
}
names() { # what a program asks the loader for, and what this library does
  llvm-objdump --macho --dylib-id "$out/$1.dylib" | grep -E '^@rpath/libdlpack_rs\.[0-9.]+dylib$'
  llvm-objdump --macho --dylibs-used "$out/$1.dylib" | tail -n +3 >"$out/used.txt"
  if grep -v '/usr/lib/libSystem' "$out/used.txt"; then return 1; fi
}

find_rust
need llvm-nm:llvm llvm-objdump:llvm python3:python3-venv
row "zig" get_zig
if $worked; then
  for triple in aarch64-apple-darwin x86_64-apple-darwin; do
    row "$triple: the library" make_library $triple
    $worked || continue
    row "$triple: exports are the list" exported $triple
    row "$triple: no TLS, no start-up code, no panic path" lean $triple
    row "$triple: install name, and libSystem only" names $triple
  done
fi
totals macos
