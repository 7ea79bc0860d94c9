#!/bin/sh
# tests/soundness.rs under Miri, with both of Rust's aliasing models: Stacked Borrows and Tree
# Borrows; with several seeds, which decide where threads are interrupted; and the copy engine's
# kernels at the levels in plain Rust, some minutes. Needs a nightly toolchain with
# Miri (rustup component add miri --toolchain nightly). The last line lists what was run.
CDPATH='' cd "$(dirname "$0")/.." || exit 2
cargo=${CARGO:-cargo}
if ! "$cargo" +nightly miri --version >/dev/null 2>&1; then
    echo "miri: not run: cargo +nightly miri does not answer"
    exit 1
fi
failed=0
for model in "" -Zmiri-tree-borrows; do
    for seed in ${SEEDS:-1 2 3}; do
        MIRIFLAGS="$model -Zmiri-seed=$seed" \
            "$cargo" +nightly miri test --locked --test soundness || failed=$((failed + 1))
    done
done
"$cargo" +nightly miri test --locked -p dlpack_kernels || failed=$((failed + 1))
# The tests' memory is never freed.
MIRIFLAGS="-Zmiri-ignore-leaks" \
    "$cargo" +nightly miri test --locked --test engine matrix || failed=$((failed + 1))
echo "miri: $failed of the runs failed"
[ "$failed" -eq 0 ]
