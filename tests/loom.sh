#!/usr/bin/env bash
# The models of tests/loom, which call the library's own functions with loom's atomics, in every order
# of threads; and once for each of some faults of those functions, which a model has to find. Fetches
# loom. The last line is `loom: N passed, N failed`.
. "$(dirname "$0")/../packaging/platforms/common.sh"
export CARGO_TARGET_DIR=$target_dir/loom RUSTFLAGS="--cfg loom"
models() { cargo test --quiet --locked --manifest-path tests/loom/Cargo.toml; }
found() { # found OLD=>NEW: a model fails, and not the build
  if PLANT=$1 models >"$CARGO_TARGET_DIR/log" 2>&1; then return 1; fi
  grep -E '^test .* FAILED|^ +[a-z_]+$|panicked at' "$CARGO_TARGET_DIR/log"
}
row "models" models
row "found: the last owner does not acquire" \
  found 'references.load(Acquire)=>references.load(Relaxed)'
row "found: an owner releases nothing" found 'fetch_sub(1, AcqRel)=>fetch_sub(1, Acquire)'
row "found: the last of several does not acquire" found 'fetch_sub(1, AcqRel)=>fetch_sub(1, Release)'
row "found: a reference is lost" \
  found 'self.references.fetch_add(1, Relaxed);=>self.references.store(self.references.load(Relaxed) + 1, Relaxed);'
row "found: the last reference stays" found 'references.store(0, Relaxed);=>'
row "found: a copy that is shared counts as one's own" \
  found 'fetch_and(!DLPACK_FLAG_BITMASK_IS_COPIED=>fetch_and(!1'
totals loom
