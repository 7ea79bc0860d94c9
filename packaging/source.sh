#!/usr/bin/env bash
# The release archive of the sources, target/packages/dlpack_rs-VERSION-src.tar.gz: HEAD without
# the generator of the headers, with the crates libc and ryu in vendor/, so that a build needs no
# network. The same commit gives the same bytes.
set -euo pipefail
. "$(dirname "$0")/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$name"
git archive HEAD | tar x -C "$work/$name"
cd "$work/$name"
rm -rf crates/headers .ci
# The rest of the lock file keeps its versions.
cargo update --quiet --workspace
diff <(grep -A3 '^name = "libc"' Cargo.lock) <(grep -A3 '^name = "libc"' "$root/Cargo.lock")
cargo vendor --quiet --locked vendor >/dev/null
printf '\n[source.crates-io]\nreplace-with = "vendored"\n\n[source.vendored]\n%s\n' \
  'directory = "vendor"' >>.cargo/config.toml
[ "$(ls vendor)" = "$(printf 'libc\nryu')" ] # and no more is needed
pack "$work/$name" "$out/$name-src.tar.gz"
sha256sum "$out/$name-src.tar.gz"
