#!/usr/bin/env bash
# Checks of the sources: rustfmt, clippy, rustdoc, shellcheck, and that the oldest and the newest Rust
# build them. One line each, after its output. Ends with "lint: N passed, N failed".
set -uo pipefail
CDPATH='' cd "$(dirname "$0")/.." || exit 1
. tests/lib/rows.sh
# An exported CDPATH sends a relative `cd` elsewhere, and lets it print where.
cd_without_cdpath() { grep -nE '\$\(cd |cd "\$\(dirname' "$@" | grep -v "CDPATH='' cd "; }
in_fuzz() { (CDPATH='' cd fuzz && "$@"); }
absent() { # absent NAME PACKAGE
  echo "lint, $1: not run, because package $2 is not installed"
}
if cargo fmt --version >/dev/null 2>&1; then
  row "rustfmt" cargo fmt --all --check
  row "rustfmt, fuzz targets" in_fuzz cargo fmt --check
  row "rustfmt, models" rustfmt --check --edition 2024 tests/loom/build.rs tests/loom/lib.rs
else
  absent rustfmt "rustfmt or rustfmt-web"
fi
if cargo clippy --version >/dev/null 2>&1; then
  row "clippy" cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
  row "clippy, with the Python module" \
    cargo clippy --quiet --locked -p dlpack_rs_cdylib --features module -- -D warnings
  for features in "" "cuda print"; do
    row "clippy, with the features \"$features\"" cargo clippy --quiet --locked -p dlpack_rs_cdylib \
      --no-default-features --features "$features" -- -D warnings
  done
else
  absent clippy "rust-clippy or rust-web-clippy"
fi
read -ra features < <(sed -n 's/^default = //p' crates/cdylib/Cargo.toml | tr -d '[],"')
for feature in "${features[@]}"; do
  row "without the feature $feature" cargo check --quiet --locked -p dlpack_rs_cdylib \
    --no-default-features --features "$(printf '%s\n' "${features[@]}" | grep -vx "$feature" | tr '\n' ' ')"
done
row "rustdoc" env RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --locked --no-deps --document-private-items \
  -p dlpack_rs -p headers --features dlpack_rs/module
# The oldest Rust that Cargo.toml names, where it is installed.
least=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
oldest=
for version in "" "$least.0" "$least.1" "$least"; do
  case $(RUSTUP_TOOLCHAIN=$version rustc --version 2>/dev/null) in
    "rustc $least."*) oldest=$version; break ;;
    *) oldest=none ;;
  esac
done
if [ "$oldest" = none ]; then
  echo "lint, Rust $least: not tried, this machine has another"
else
  row "Rust $least compiles it" env ${oldest:+"RUSTUP_TOOLCHAIN=$oldest"} \
    cargo check --quiet --locked --workspace ${oldest:+--target-dir target/least}
fi
# What the optimiser leaves of core, panics above all, differs by version: the laws of the library's
# file, built by the newest Rust of this machine where that is not the one in use.
newest=$(rustup toolchain list 2>/dev/null | while read -r name _; do
  echo "$(RUSTUP_TOOLCHAIN=$name rustc --version 2>/dev/null | cut -d' ' -f2) $name"
done | sort -V | tail -n 1)
in_use=$(rustc --version | cut -d' ' -f2)
laws_by_newest() { # laws_by_newest CARGO-OPTION...
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTUP_TOOLCHAIN=${newest#* } cargo build --quiet --release --locked -p dlpack_rs_cdylib "$@" \
    --target "$host" --target-dir target/newest &&
    c_tests/laws.sh include "target/newest/$host/release"
}
if [ "$(printf '%s\n' "$in_use" "${newest% *}" | sort -V | tail -n 1)" = "$in_use" ]; then
  echo "lint, laws by a newer Rust: not run: no newer Rust than $in_use"
else
  unset DLRS_FEATURES
  row "the laws by Rust ${newest% *}" laws_by_newest --features module
  DLRS_FEATURES='' row "the laws of the core by Rust ${newest% *}" laws_by_newest \
    --no-default-features
fi
if command -v shellcheck >/dev/null; then
  # Scripts by their names, and those without an extension by their first line.
  mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run)
  row "shellcheck" shellcheck -x -S warning "${scripts[@]}"
  row "cd and CDPATH" eval '! cd_without_cdpath "${scripts[@]}"'
else
  absent shellcheck shellcheck
fi
row "planted faults have their places" python3 -B tests/faults.py --places
workflows() {
  local bin
  bin=$(dirname "$(examples/python/venv.sh tests/requirements-lint.txt)") &&
    "$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml &&
    "$bin/zizmor" --offline --no-progress .github
}
row "workflows of a public host, which has not run them" workflows
totals lint
