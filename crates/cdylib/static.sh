#!/bin/sh
# Makes the distributed static library from cargo's: static.sh CARGO'S OUT
#
# Rust adds its run-time support to every static library: integers of 128 bits, and a copy of half
# of libm (fmod, cbrt, fma ...), which overrides the C library's in programs that link it, or
# conflicts with it. So the library is linked into one object, with the parts that it needs, and
# every symbol except those that exports.sh prints (for DLRS_FEATURES) becomes local. The others are
# hidden: a shared library that links this one does not export them. VISIBILITY=default leaves them
# visible, for libraries that re-export the interface.
#
# stay_loaded.c is added.
#
# CC, OBJCOPY, AR name the tools (CC with its options); ELF and PE.
set -eu
[ $# -eq 2 ] || { echo "usage: static.sh CARGO'S OUT"; exit 2; }
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
cc=${CC:-cc} objcopy=${OBJCOPY:-objcopy} ar=${AR:-ar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exports=$work/exports.txt
"$here/exports.sh" >"$exports"

# An object that references every function with this visibility: the linker keeps the stricter of
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
# An unchanged library is not rewritten, so that its users are not relinked.
if [ -L "$2" ] || ! cmp -s "$work/new.a" "$2"; then
    cp "$work/new.a" "$2.new"
    mv "$2.new" "$2"
fi
