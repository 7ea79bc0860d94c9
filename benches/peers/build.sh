#!/bin/sh
# Builds target/peers/release/libdlpack_rs_peers.so: without HPTT where that fails.
set -eu
CDPATH='' cd "$(dirname "$0")"
build() {
    "${CARGO:-cargo}" build --release --locked --quiet --target-dir ../../target/peers "$@"
}
[ -e ../../target/peers/release/libdlpack_rs_peers.so ] ||
    echo "benches/peers: is built for the first time; HPTT takes some minutes" >&2
build || {
    echo "benches/peers: failed; HPTT needs cmake and a C++ compiler: once more without it" >&2
    build --no-default-features
}
