#!/bin/sh
# Builds the fuzz targets with libFuzzer and AddressSanitizer, without cargo-fuzz, and prints their
# folder. Sanitizers are options of nightly Rust; RUSTC_BOOTSTRAP=1 enables them in any.
# Debian's Rust lacks their runtimes.
set -eu
CDPATH='' cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz
host=$(cargo -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
sanitizer=-Zsanitizer=address
if ! ls "$(rustc --print sysroot)/lib/rustlib/$host/lib/"librustc*_rt.asan.a >/dev/null 2>&1; then
    sanitizer=
    echo "AddressSanitizer: not run, because this Rust has no runtime of it" >&2
fi
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$coverage $sanitizer --cfg fuzzing -Cdebug-assertions \
-Ccodegen-units=4" cargo build --quiet --locked --release --target "$host" --target-dir "$target" >&2
echo "$target/$host/release"
