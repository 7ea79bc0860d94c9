#!/usr/bin/env bash
# ThreadSanitizer on the library and on the C tests of threads, by gcc and any Rust: an ordering of
# atomics that is too weak is a race here, on processors too that do not show it. Faults of
# tests/faults/faults.txt are planted first, and have to be found. (`tests/sanitize.sh thread` has
# `core` instrumented as well, and runs more.) The last line is `tsan: N passed, M failed`.
. "$(dirname "$0")/../packaging/platforms/common.sh"
PLANTED=("the last owner frees without acquire" "a link is published without release")
host=$(rustc -vV | sed -n 's/^host: //p')
out=$target_dir/tsan
tree=$out/tree
mkdir -p "$out/lib"
if ! { echo 'int main(void) { return 0; }' |
  gcc -fsanitize=thread -x c - -o "$out/none" 2>/dev/null && "$out/none"; }; then
  echo "tsan: not run, because gcc's ThreadSanitizer (package libtsan2) does not work here"
  exit
fi
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$out/target CARGO_PROFILE_RELEASE_LTO=off
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
# gcc's runtime, and no link-time optimization, which removes what `core` has for unwinding.
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -Zexternal-clangrt \
  -Cdebuginfo=1 -Clink-arg=-Wl,--defsym=rust_eh_personality=0"

library() {
  (cd "$tree" && cargo build --quiet --release --locked -p dlpack_rs_cdylib --target "$host")
  cp "$out/target/$host/release/libdlpack_rs.so" "$out/lib/"
  ln -sf libdlpack_rs.so "$out/lib/$(crates/cdylib/soname.sh)"
  nm -D "$out/lib/libdlpack_rs.so" | grep -c ' U __tsan_write' # else nothing would be found
}
programs() {
  local name
  # What LLVM names its own way.
  cat >"$out/names.c" <<'C'
#include <string.h>
void *__tsan_memset(void *d, int c, size_t n) { return memset(d, c, n); }
void *__tsan_memcpy(void *d, const void *s, size_t n) { return memcpy(d, s, n); }
void *__tsan_memmove(void *d, const void *s, size_t n) { return memmove(d, s, n); }
C
  for name in threads test_share test_chain test_workers; do
    gcc -fsanitize=thread -g -O1 -w -std=gnu11 -Iinclude -Ic_tests "c_tests/$name.c" \
      c_tests/harness.c c_tests/inject.c "$out/names.c" -rdynamic -o "$out/$name" \
      -L"$out/lib" -ldlpack_rs -Wl,-rpath,"$out/lib" -lpthread -ldl
  done
}
program() { # program NAME [ARGUMENT]
  timeout -k 10 "${STEP_SECONDS:-600}" "$out/$1" "${@:2}"
}
found() { # found SENTENCE: by one of the programs
  local file
  file=$(tests/faults.py --plant "$tree" "$1")
  library
  { program threads 20 || program test_chain; } >"$out/log" 2>&1 || true
  grep -E 'WARNING: ThreadSanitizer: (data race|heap-use-after-free)' "$out/log" &&
    grep -E 'dlpack|dlrs' "$out/log"
  cp "$root/$file" "$tree/$file"
}

rm -rf "$tree"
mkdir "$tree"
cp -R Cargo.toml Cargo.lock build.rs src crates python tests benches include "$tree/"
row "the library, instrumented" library
$worked || { totals tsan; exit; }
row "the programs" programs
for sentence in "${PLANTED[@]}"; do row "found: $sentence" found "$sentence"; done
row "the library again" library
row "threads" program threads 20
for name in test_share test_chain test_workers; do row "$name" program "$name"; done
totals tsan
