#!/usr/bin/env bash
# The tests with sanitizers, of the library too: `sanitize.sh [rust|valgrind|address|thread]...`.
#   rust     the Rust tests with AddressSanitizer
#   valgrind the Rust tests under valgrind, without the longest, tests/engine (C's runs under it in
#            c_tests/run.sh)
#   address  the C tests with AddressSanitizer, UndefinedBehaviorSanitizer (of C) and LeakSanitizer
#   thread   what uses threads with ThreadSanitizer
# No suppressions, and nothing that is found is let pass. A process has one runtime: clang's of the
# LLVM version that the Rust compiler has. For the C tests `core` is compiled with the sanitizer, so
# a Rust compiler with the sources of its standard library is needed, and for the Rust tests one
# that brings the runtime, which is rustup's. One line a row; the last: `sanitize: N passed, M failed`.
. "$(dirname "$0")/../packaging/platforms/common.sh"
[ $# -gt 0 ] || set -- rust valgrind address thread

rust=$(command -v rustc)
triple=$(rustc -vV | sed -n 's/^host: //p')
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
SOAK_SECONDS=${SOAK_SECONDS:-20}

# Small stacks are left out: a sanitizer's frames are larger.
rust_tests() {
  RUSTC=$rust RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
    CARGO_TARGET_DIR=$target_dir/sanitize/rust \
    cargo test --locked --release --target "$triple" -p dlpack_rs --lib --tests --no-fail-fast \
    --config 'profile.release.lto=false' --config 'profile.release.codegen-units=16' \
    --config 'profile.release.debug-assertions=true' --config 'profile.release.debug=1' \
    -- --skip small_stacks >"$out/rust.log" 2>&1 || { cat "$out/rust.log"; return 1; }
  awk '/^test result:/ { p += $4; f += $6 } END { print p " passed, " f " failed" }' "$out/rust.log"
}

# Valgrind has no floating-point flags and one rounding mode, so tests of these are left out.
# The test harness keeps blocks until the end, which are no leaks.
in_valgrind() {
  local build=(cargo test --locked --release -p dlpack_rs --lib --tests --no-run) name exe
  need valgrind:valgrind
  row "valgrind: the Rust tests" "${build[@]}"
  $worked || return
  "${build[@]}" 2>&1 | sed -n 's/^ *Executable.* \(tests\|src\)\/\([^ ]*\) (\(.*\))$/\2 \3/p' |
    grep -v '^house\|^engine' >"$out/rust_tests"
  while read -r name exe; do
    row "valgrind: $name" valgrind -q --error-exitcode=9 --leak-check=full \
      --errors-for-leak-kinds=definite --show-leak-kinds=definite "$exe" --test-threads=1 \
      --skip floating_point_settings
  done <"$out/rust_tests"
}

library() { # library KIND
  export RUSTFLAGS="-Zsanitizer=$1 -Cdebuginfo=1"
  target_dir=$target_dir/sanitize/$1
  CARGO_TARGET_DIR=$target_dir
  build "$triple" cc
  cp "$CARGO_TARGET_DIR/$triple/release/libdlpack_rs.so" "$out/"
  ln -sf libdlpack_rs.so "$out/$soname"
  # A library that is not instrumented proves nothing.
  nm -D "$out/libdlpack_rs.so" | grep " U __[at]san_" | wc -l
}
compile() { # compile EXE SOURCE...
  "$clang" -std=gnu11 -g -O1 "${flags[@]}" -Wall -Iinclude -Ic_tests "${@:2}" -o "$1" -L"$out" \
    -Wl,-rpath,"$out" -ldlpack_rs -lpthread -ldl
}
program() { # program NAME SOURCE... [-- ARGUMENT...]
  local name=$1 sources=(); shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do sources+=("$1"); shift; done
  compile "$out/$name" "${sources[@]}" c_tests/harness.c c_tests/inject.c
  timeout -k 10 900 "$out/$name" "${@:2}"
}

# Must be detected: a fault inside the library, by its own instrumentation.
control() { # control WORDS
  compile "$out/control" "$out/control.c"
  if "$out/control" >"$out/control.log" 2>&1; then
    echo "not found"
    return 1
  fi
  grep -E "$1" "$out/control.log"
  # One of the two stacks of a report is in the library.
  grep -E 'libdlpack_rs\.so|dlpack_rs::' "$out/control.log"
}
beyond_the_end() {
  cat >"$out/control.c" <<'C'
#include <stdlib.h>
#include "harness.h"
int main(void) {
  int64_t shape[1] = {100}, stride[1] = {3};
  float *from = calloc(297, sizeof *from), *to = calloc(300, sizeof *to); /* 298 are read */
  DLTensor tensors[2] = {{from, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0},
                         {to, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0}};
  dlrs_copy_desc(&tensors[0], 0, &tensors[1], 0, NULL, NULL);
  free(from);
  free(to);
  return 0;
}
C
  control 'heap-buffer-overflow'
}
race() {
  cat >"$out/control.c" <<'C'
#include <pthread.h>
#include "harness.h"
static float from[300], to[300];
static void *writes(void *tensor) {
  from[150] = 1;
  return tensor;
}
int main(void) {
  int64_t shape[1] = {100}, stride[1] = {3};
  DLTensor tensors[2] = {{from, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0},
                         {to, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0}};
  pthread_t thread;
  pthread_create(&thread, NULL, writes, NULL);
  dlrs_copy_desc(&tensors[0], 0, &tensors[1], 0, NULL, NULL);
  pthread_join(thread, NULL);
  return 0;
}
C
  control 'data race'
}

prepare() { # prepare KIND FLAG...
  local kind=$1 runtime; shift
  flags=("$@" -fno-omit-frame-pointer)
  runtime=$("$clang" --print-file-name="libclang_rt.$sanitizer-$(uname -m).a")
  need "$runtime:libclang-rt-$llvm-dev"
  row "$kind: the library, instrumented" library "$kind"
}

in_address() {
  local source name sanitizer=asan
  # Requests that exceed memory return NULL, as the tests expect.
  export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
  export UBSAN_OPTIONS=print_stacktrace=1
  prepare address -fsanitize=address,undefined -fno-sanitize-recover=all
  $worked || return
  row "address: reading beyond the end is found" beyond_the_end
  for source in c_tests/test_*.c c_tests/sweep.c; do
    name=$(basename "$source" .c)
    row "address: $name" program "$name" "$source"
  done
  row "address: catalogue" program catalogue c_tests/catalogue*.c
  row "address: threads" program threads c_tests/threads.c -- 10
  row "address: soak" program soak c_tests/soak/soak.c -- "$SOAK_SECONDS"
  row "address: devices" devices
}
# The stand-ins are instrumented as well. Drivers' functions are called with `void *` for their
# handles, as dlsym gives them.
devices() {
  flags+=(-fno-sanitize=function)
  CC="$clang ${flags[*]}" CXX="$clangxx ${flags[*]}" NO_VALGRIND=1 FAULTS_STEP=7 \
    c_tests/gpu/run.sh include "$out" "$out/gpu"
}

in_thread() {
  local sanitizer=tsan
  prepare thread -fsanitize=thread
  $worked || return
  row "thread: a race with a copy is found" race
  row "thread: threads" program threads c_tests/threads.c -- 20
  row "thread: test_engine" program test_engine c_tests/test_engine.c -- 20
  row "thread: soak" program soak c_tests/soak/soak.c -- "$SOAK_SECONDS"
  row "thread: devices" device_threads
}
device_threads() {
  local face
  CC="$clang ${flags[*]}" CXX="$clangxx ${flags[*]}" c_tests/standin/build.sh "$out/standin"
  compile "$out/device_threads" c_tests/gpu/threads.c c_tests/gpu/gpu.c c_tests/harness.c c_tests/inject.c
  for face in cuda:cuda hip6:rocm; do
    LD_LIBRARY_PATH=$out/standin/${face%:*} timeout -k 10 600 "$out/device_threads" "${face#*:}" || return
  done
}

for kind in "$@"; do
  case $kind in
    rust)
      need rustc:rustup
      if ! ls "$(rustc --print sysroot)/lib/rustlib/$triple"/lib/librustc*_rt.asan.a >/dev/null; then
        echo "$0: $(rustc --version) brings no AddressSanitizer: rustup's does"
        exit 1
      fi
      row "rust: tests with AddressSanitizer" rust_tests ;;
    valgrind) in_valgrind ;;
    address | thread)
      find_rust
      soname=$(crates/cdylib/soname.sh)
      llvm=$("$RUSTC" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
      clang=clang-$llvm clangxx=clang++-$llvm
      need "$clang:$clang" "$clangxx:$clang" nm:binutils
      "in_$kind" ;;
    *) echo "sanitize.sh: unknown kind $kind"; exit 2 ;;
  esac
done
totals sanitize
