#!/bin/sh
# Random operations on four threads for so long: run.sh INCLUDE LIBDIR SECONDS [SEED [THREADS]]
# The last line is "N passed, N failed"; soak.c documents the operations and measurements.
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || { echo "usage: run.sh INCLUDE LIBDIR SECONDS [SEED [THREADS]]"; exit 2; }
include=$(CDPATH='' cd "$1" && pwd) && libdir=$(CDPATH='' cd "$2" && pwd) || exit 2
shift 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
# A copy, which a later build does not replace; and the programs need the SONAME.
cp "$libdir/libdlpack_rs.so" "$work/libdlpack_rs.so" || exit 2
ln -s libdlpack_rs.so "$work/$("$here/../../crates/cdylib/soname.sh")"
${CC:-gcc} -std=gnu11 -g -O2 -Wall -Wextra -Wpedantic -Werror "-I$include" "-I$here/.." \
    "$here/soak.c" "$here/../harness.c" "$here/../inject.c" -o "$work/soak" \
    "-L$work" "-Wl,-rpath,$work" -ldlpack_rs -lpthread -ldl || exit 1
"$work/soak" "$@"
