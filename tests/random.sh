#!/usr/bin/env bash
# Random runs, with another seed each time, which is printed: every fuzz target with
# AddressSanitizer, copies of any layout against an oracle at every level, casts of any layout, 8
# threads that set the allocator and fork, hostile objects for Python. RANDOM_SECONDS sets the
# approximate duration on two processors (240); SEED repeats a run. One line a job, with its
# processor time, which is less where other work runs concurrently; ends with "random: N passed, N
# failed".
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/.." || exit 1
export RANDOM_SECONDS=${RANDOM_SECONDS:-240}
SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
export SEED CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
share() { echo $(((RANDOM_SECONDS + $1 - 1) / $1)); } # share N: the N-th part of the time

# New inputs stay below fuzz/corpus, findings below fuzz/artifacts; fuzz/seeds.py adds to the inputs
# that `cargo test` replays.
fuzz() { # fuzz TARGET
  local corpus=fuzz/corpus/$1 found=fuzz/artifacts/$1
  mkdir -p "$found"
  python3 fuzz/seeds.py unpack "$1" "$corpus"
  timeout -k 10 $((RANDOM_SECONDS + 120)) "$FUZZ_PROGRAMS/$1" "$corpus" -seed="$SEED" \
    -max_total_time="$(share 6)" -max_len=512 -timeout=60 -print_final_stats=1 \
    -artifact_prefix="$found/"
}
differential() {
  DLRS_SEED=$SEED DLRS_SECONDS=$(share 15) \
    cargo test --locked --test engine differential -- --nocapture
}
threads() {
  c_tests/soak/run.sh target/include/dlpack target/lib "$(share 4)" "$SEED" 8
}
casts() { # some 200 cases a second
  local python
  python=$(examples/python/venv.sh examples/python/requirements.txt) &&
    "$python" -B tests/python/random_casts.py target/lib/libdlpack_rs.so \
      $((200 * $(share 15))) "$SEED"
}
hostile() {
  local python
  python=$(examples/python/venv.sh examples/python/requirements.txt) &&
    DLPACK_RS_LIBRARY=$PWD/target/lib/libdlpack_rs.so PYTHONPATH=python \
      "$python" -B tests/python/hostile.py "$(share 8)" "$SEED"
}

if [ "${1:-}" = --job ]; then
  log=$(mktemp) || exit 1
  trap 'rm -f "$log" "$log.time"' EXIT
  TIMEFORMAT='%0U %0S'
  if { time "${@:2}" >"$log" 2>&1; } 2>"$log.time"; then
    read -r user system <"$log.time"
    echo "pass  ${*:2} ($((user + system)) s of processor time)"
  else
    tail -n 60 "$log"
    echo "FAIL  ${*:2}, SEED=$SEED"
  fi
  exit 0
fi

echo "SEED=$SEED RANDOM_SECONDS=$RANDOM_SECONDS"
FUZZ_PROGRAMS=$(fuzz/build.sh) || { echo "random: 0 passed, 1 failed (no fuzz targets)"; exit 1; }
export FUZZ_PROGRAMS
cargo test --quiet --locked --test engine --no-run || exit 1
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT
mapfile -t targets < <(basename -s .rs fuzz/src/bin/*.rs)
jobs=("${targets[@]/#/fuzz }" differential casts threads hostile)
printf '%s\n' "${jobs[@]}" | xargs -P 2 -I{} bash -c "tests/random.sh --job {}" | tee "$lines"
passed=$(grep -c '^pass ' "$lines")
failed=$((${#jobs[@]} - passed)) # one that was killed said nothing
echo "random: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
