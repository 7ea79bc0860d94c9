#!/usr/bin/env bash
# The models of tests/loom, which call the library's own functions with loom's atomics, in every order
# of threads; and once for each of some faults of those functions, which a model has to find. Fetches
# loom. The last line is `loom: N passed, N failed`.
. "$(dirname "$0")/../packaging/platforms/common.sh"
export CARGO_TARGET_DIR=$target_dir/loom RUSTFLAGS="--cfg loom"
models() { cargo test --quiet --locked --manifest-path tests/loom/Cargo.toml "$@"; }
found() { # found OLD=>NEW WORD...: a model with that name fails, and not the build
  if PLANT=$1 models "${@:2}" >"$CARGO_TARGET_DIR/log" 2>&1; then return 1; fi
  grep -E '^test .* FAILED|^ +[a-z_]+$|panicked at' "$CARGO_TARGET_DIR/log"
}
row "models" models
row "found: the last owner does not acquire" \
  found 'references.load(Acquire)=>references.load(Relaxed)' owners
row "found: an owner releases nothing" found 'fetch_sub(1, AcqRel)=>fetch_sub(1, Acquire)' owners
row "found: the last of several does not acquire" found 'fetch_sub(1, AcqRel)=>fetch_sub(1, Release)' owners
row "found: a reference is lost" \
  found 'self.references.fetch_add(1, Relaxed);=>self.references.store(self.references.load(Relaxed) + 1, Relaxed);' owners
row "found: the last reference stays" found 'references.store(0, Relaxed);=>' owners
row "found: a copy that is shared counts as one's own" \
  found 'fetch_and(!DLPACK_FLAG_BITMASK_IS_COPIED=>fetch_and(!1' owners
row "found: a job is published without release" \
  found '<< 16, Release)=><< 16, Relaxed)' runs_once
row "found: a part is taken without acquire" \
  found 'word + 1, Acquire, Relaxed=>word + 1, Relaxed, Relaxed' runs_once
row "found: a part is done without release" \
  found 'self.done.fetch_add(1, Release)=>self.done.fetch_add(1, Relaxed)' runs_once
row "found: who sleeps may miss the change" found $'fence(SeqCst);\n        while=>while' woken
row "found: who rings may miss the sleeper" \
  found $'fence(SeqCst);\n        if self.asleep=>if self.asleep' woken
totals loom
