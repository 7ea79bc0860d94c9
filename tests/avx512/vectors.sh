#!/usr/bin/env bash
# The kernels for AVX-512 on any x86 processor, with plain Rust in place of its instructions
# (src/device/cpu/x86_emulated.rs): of each of both levels all of tests/engine where the processor
# lacks it, else random layouts. AVX2 is qemu's where there is none. In the environment: LEVELS, to
# have all tests of these whatever the processor has. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ "$(uname -m)" != x86_64 ]; then
  echo "tests/avx512/vectors.sh: not run, because this is no x86"
  exit
fi
has() { grep -qw "$1" /proc/cpuinfo; }
if ! has avx2; then
  command -v qemu-x86_64 >/dev/null || { echo "needs: apt-get install qemu-user"; exit 1; }
  export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='qemu-x86_64 -cpu max'
fi
export RUSTFLAGS="${RUSTFLAGS-} --cfg emulated"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/emulated"
lacking=${LEVELS:-}
if [ -z "$lacking" ]; then
  has avx512bw || lacking=avx512
  has avx512vbmi || lacking="$lacking vbmi"
  lacking=${lacking# }
fi
passed=0 failed=0
# engine LEVELS NAME...: the tests whose names have one of those in them, or all.
engine() {
  local log levels=$1 good=0 bad=0 line; shift
  log=$(mktemp)
  LEVELS=$levels "${CARGO:-cargo}" test --locked --test engine -- "$@" 2>&1 | tee "$log"
  line=$(grep '^test result:' "$log")
  if [[ $line =~ ([0-9]+)\ passed\;\ ([0-9]+)\ failed ]]; then
    good=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
  fi
  [ "$good" -gt 0 ] || bad=$((bad + 1))
  passed=$((passed + good)) failed=$((failed + bad))
  rm -f "$log"
}
[ -z "$lacking" ] || engine "$lacking"
[ "$lacking" = "avx512 vbmi" ] || engine "avx512 vbmi" elements random groups
echo "tests/avx512/vectors.sh: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
