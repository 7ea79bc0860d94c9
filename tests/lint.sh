#!/usr/bin/env bash
# What reads the sources: rustfmt, clippy, rustdoc, shellcheck. One line each; what it said comes
# before. Ends with "lint: N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0
row() { # row NAME COMMAND...
  local name=$1; shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); tail -n 60 "$log"; echo "FAIL  $name"
  fi
}
in_fuzz() { (cd fuzz && "$@"); }
row "rustfmt" cargo fmt --all --check
row "rustfmt, fuzz targets" in_fuzz cargo fmt --check
row "clippy" cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
row "rustdoc" env RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --locked --no-deps --document-private-items -p dlpack_rs -p headers
if command -v shellcheck >/dev/null; then
  # Scripts by their names, and those without an extension by their first line.
  mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run)
  row "shellcheck" shellcheck -x -S warning "${scripts[@]}"
else
  echo "shellcheck: not run, because it is not installed (Debian: apt-get install shellcheck)"
fi
echo "lint: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
