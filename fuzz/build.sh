#!/bin/sh
# Builds the fuzz targets with libFuzzer and AddressSanitizer, without cargo-fuzz, and prints the
# folder they lie in. Sanitizers are options of nightly Rust; RUSTC_BOOTSTRAP=1 opens them in any.
set -eu
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz
host=$(cargo -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$coverage -Zsanitizer=address --cfg fuzzing -Cdebug-assertions \
-Ccodegen-units=4" cargo build --quiet --locked --release --target "$host" --target-dir "$target" >&2
echo "$target/$host/release"
