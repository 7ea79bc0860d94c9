#!/bin/sh
# Makes the static library that is shipped of the one that cargo makes: static.sh CARGO'S OUT
#
# Rust puts its run-time support into every static library: integers of 128 bits, and a copy of
# half of libm (fmod, cbrt, fma ...), which takes the place of the C library's in the programs that
# link it, or clashes with it. So all is linked into one object, with what it needs of that, and
# every name but those that exports.sh prints (for DLRS_FEATURES) becomes local. These are hidden: a shared
# library that links this one does not export them again. VISIBILITY=default leaves them visible, for
# building a library that passes the interface on.
#
# stay_loaded.c is added.
#
# CC, OBJCOPY, AR name the tools (CC with its options); ELF and PE.
set -eu
[ $# -eq 2 ] || { echo "usage: static.sh CARGO'S OUT"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc} objcopy=${OBJCOPY:-objcopy} ar=${AR:-ar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exports=$work/exports.txt
"$here/exports.sh" >"$exports"

# An object that needs every function, and sees it so: the linker keeps the stricter visibility of
# the two.
{
    echo "#if defined(__ELF__)"
    echo "#pragma GCC visibility push(${VISIBILITY:-hidden})"
    echo "#endif"
    sed 's/.*/extern const char &[];/' "$exports"
    echo 'extern const char *const dlrs_needed[] __attribute__((section(".dlrs_needed")));'
    echo 'const char *const dlrs_needed[] = {'
    sed 's/$/,/' "$exports"
    echo '};'
} >"$work/needed.c"
# shellcheck disable=SC2086 # a compiler and its options
{
    $cc -c -fno-lto "$work/needed.c" -o "$work/needed.o"
    $cc -c -fno-lto -fPIC -O2 "$here/stay_loaded.c" -o "$work/stay_loaded.o"
    $cc -r -nostdlib "$work/needed.o" "$work/stay_loaded.o" "$1" -o "$work/all.o"
}
"$objcopy" --remove-section=.dlrs_needed --remove-section=.rel.dlrs_needed \
    --remove-section=.rela.dlrs_needed --remove-section=.llvmbc --remove-section=.llvmcmd \
    --keep-global-symbols="$exports" "$work/all.o" "$work/dlpack_rs.o"
(cd "$work" && "$ar" rcsD new.a dlpack_rs.o)
# Left as it is when nothing has changed, so that nothing is linked again.
if [ -L "$2" ] || ! cmp -s "$work/new.a" "$2"; then
    cp "$work/new.a" "$2.new"
    mv "$2.new" "$2"
fi
