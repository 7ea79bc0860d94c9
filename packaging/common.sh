# Sourced by the scripts beside it: names, rows, reproducible archives.
# shellcheck shell=bash disable=SC2034
set -uo pipefail
root=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$root" || exit 1
out=$root/target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=dlpack_rs-$version
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
cargo=$(command -v cargo)
unset DESTDIR CMAKE_PREFIX_PATH CARGO_TARGET_DIR CARGO_BUILD_TARGET
# One date for all packed files: the commit's.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out"

. tests/lib/rows.sh

# pack FOLDER ARCHIVE: FOLDER as .tar.gz, independent of machine, user and time.
pack() {
  tar c -C "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --mode=u+rw,go=rX --format=gnu "$(basename "$1")" | gzip -9n >"$2"
}

# Tools from the package index, in a separate folder; TOOLS names an existing one.
tools() {
  tools=${TOOLS:-$out/tools}
  [ -n "${TOOLS:-}" ] && return
  cmp -s packaging/requirements.txt "$tools/done" && return
  python3 -m venv --clear "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r packaging/requirements.txt
  cp packaging/requirements.txt "$tools/done"
}
# Runs a command without a network, where permitted; it must not need one anywhere.
isolated() {
  if unshare -rn true 2>/dev/null; then unshare -rn "$@"; else "$@"; fi
}
consumer() { # consumer PREFIX BUILD: the programs of examples/cmake_consumer, built and run
  cmake -S examples/cmake_consumer -B "$2" -DCMAKE_PREFIX_PATH="$1"
  cmake --build "$2"
  "$2/hello_c" | diff examples/expected/c-hello.txt -
  "$2/hello_c_static" | diff examples/expected/c-hello.txt -
}
