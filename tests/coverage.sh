#!/usr/bin/env bash
# Which lines and functions of the product the tests run that go through the C ABI only: the C tests, the
# devices on stand-ins, a short soak, Python with ctypes and cffi; none of Rust's own. Needs LLVM's
# tools of the version that the Rust compiler has, and rustup's compiler, which brings the runtime.
# What a processor does not have is not run: the level of instructions is the machine's.
# Leaves target/coverage/report.txt (a line per file), lines.lcov and uncovered.txt (what was not
# run, longest first). One line a row; then the totals; the last: `coverage: N passed, M failed`.
. "$(dirname "$0")/../packaging/platforms/common.sh"
need rustc:rustup gcc:gcc g++:g++ python3:python3
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
need "llvm-profdata-$llvm:llvm-$llvm" "llvm-cov-$llvm:llvm-$llvm"

out=$target_dir/coverage
rm -rf "$out/raw" "$out"/*.*
mkdir -p "$out/raw" "$out/lib"
lib=$out/lib/libdlpack_rs.so
host=$(cargo -vV | sed -n 's/^host: //p')

# Without LTO, which would only take longer; what it would remove of `core`, tables of a panic that
# cannot happen, then needs a symbol.
library() {
  RUSTFLAGS=-Cinstrument-coverage CARGO_TARGET_DIR=$out/cargo \
    cargo rustc --release --locked -p dlpack_rs_cdylib --features module --crate-type cdylib \
    --target "$host" \
    --config 'profile.release.lto=false' --config 'profile.release.codegen-units=16' -- \
    -Clink-arg=-Wl,--defsym=rust_eh_personality=0
  cp "$out/cargo/$host/release/libdlpack_rs.so" "$lib"
}

row "the library, instrumented" library
$worked || exit 1
# Processes add their counts to one of a few files.
export LLVM_PROFILE_FILE=$out/raw/%4m.profraw
export NO_VALGRIND=1 NO_LAWS=1 STACK_KIB=64 # frames that count need more room
row "C tests" c_tests/run.sh include "$out/lib"
row "devices, on stand-ins" c_tests/gpu/run.sh include "$out/lib"
row "soak, 10 seconds" c_tests/soak/run.sh include "$out/lib" 10
row "Python" tests/python/run.sh "$lib"

"llvm-profdata-$llvm" merge -sparse "$out"/raw/*.profraw -o "$out/all.profdata" || exit 1
"llvm-cov-$llvm" report "$lib" -instr-profile="$out/all.profdata" -sources src crates python/module \
  -show-region-summary=false -show-branch-summary=false >"$out/report.txt" || exit 1
"llvm-cov-$llvm" export "$lib" -format=lcov -instr-profile="$out/all.profdata" -sources src crates python/module \
  >"$out/lines.lcov" || exit 1
# Ranges of lines without coverage, including comments and blank lines between them.
awk -F'[:,]' -v top="$PWD/" '
  function close_run() { if (n) print n, file ":" first "-" last; n = 0 }
  /^SF:/ { file = $2; sub(top, "", file) }
  /^DA:/ && $3 == 0 { if (!n) first = $2; last = $2; n++ }
  /^DA:/ && $3 != 0 || /^end_of_record/ { close_run() }' "$out/lines.lcov" |
  sort -k1,1nr -k2 >"$out/uncovered.txt"
awk '$1 == "TOTAL" { print "functions: " $4 " of " $2 "; lines: " $7 " of " $5 }' "$out/report.txt"
totals coverage
