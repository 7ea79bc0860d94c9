#!/bin/sh
# The laws that the release library's file can prove: laws.sh INCLUDE LIBDIR
# DLRS_FEATURES are those it was built with, where they are not all.
# Prints a line per law that fails, and closes with "N passed, N failed".
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
include=$1
lib=$2/libdlpack_rs.so
[ -f "$lib" ] && [ -f "$include/exports.txt" ] || { echo "usage: laws.sh INCLUDE LIBDIR"; exit 2; }
# Kilobytes of the stripped library, with and without the Python module, and of its core: its size,
# plus the few per cent by which Rust's versions differ. The aims, 320 and 120, are missed.
case $(nm -D --defined-only "$lib") in
*' PyInit_'*) limit_kb=565 module=PyInit__dlpack_rs ;;
*) limit_kb=496 module='' ;;
esac
case ${DLRS_FEATURES-all} in
'') limit_kb=232 ;;
esac
calls=$(mktemp) || exit 2
trap 'rm -f "$calls"' EXIT
passed=0
failed=0

law() { # law NAME TEST...: when it fails, each line of the test's output is shown
    name=$1
    shift
    if said=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\n' "$said" | sed "s|^|FAIL  law, $name: |"
    fi
}

symbols() { nm -D "$lib" | awk -v kind="$1" 'index(kind, $(NF - 1)) { sub(/@.*/, "", $NF); print $NF }' | LC_ALL=C sort -u; }

no_tls() { ! readelf -lW "$lib" | grep -w TLS; }
# Core's formatting of integers keeps a panic in some versions of Rust: crates/core/src/integer_text.rs.
no_core_integers() { ! nm "$lib" 2>&1 | grep pad_integral; }
no_abort() { ! nm -D "$lib" | grep -wE 'abort|__assert_fail|_Unwind_[A-Za-z]*|__tls_get_addr'; }
# Exceptions as documented in build.rs; linkers differ in what they add.
no_frames() { ! readelf -SW "$lib" | grep eh_frame; }
no_python() { ! symbols U | grep -E '^_?Py'; }
# The compiler makes calloc of malloc and memset where it sees both.
imported() { symbols U | sed 's/^calloc$/malloc/' | LC_ALL=C sort -u; }
imports() {
    [ -z "${DLRS_FEATURES+set}" ] || { ! imported | LC_ALL=C comm -13 "$here/imports.txt" - | grep .; return; }
    imported | LC_ALL=C diff "$here/imports.txt" -
}
# The only names that may be undefined: the C start-up files reference them.
weak() { ! symbols w | grep -vxE '_ITM_(de)?registerTMCloneTable|__cxa_finalize|__gmon_start__'; }
# Functions that Python calls are not part of the interface.
exports() {
    nm -D --defined-only "$lib" | awk -v module="$module" '$NF != module { print $NF }' |
        LC_ALL=C sort >"$calls"
    "$here/../crates/cdylib/exports.sh" | diff - "$calls"
}
soname() {
    version() { awk -v name="DLRS_VERSION_$1" '$2 == name { print $3; exit }' "$include/dlpack_rs.h"; }
    name=libdlpack_rs.so.$(version MAJOR)
    [ "$(version MAJOR)" != 0 ] || name=$name.$(version MINOR)
    readelf -dW "$lib" | grep -qF "[$name]"
}
nodelete() { readelf -dW "$lib" | grep FLAGS_1 | grep -qw NODELETE; }
bound_now() { readelf -dW "$lib" | grep FLAGS_1 | grep -qw NOW && readelf -lW "$lib" | grep -q GNU_RELRO; }
stack() { readelf -lW "$lib" | grep GNU_STACK | grep -qw RW; }
needs() { ! readelf -dW "$lib" | grep NEEDED | grep -vE '\[lib(c|pthread|dl|m)\.so|\[ld-linux'; }
stripped_kb() {
    copy=$(mktemp) || return 1
    strip -o "$copy" "$lib"
    bytes=$(wc -c <"$copy")
    rm -f "$copy"
}
small() { [ "$bytes" -le $((limit_kb * 1024)) ] || { echo "$bytes bytes, not $limit_kb KB"; return 1; }; }
# A program calls each exported function, instead of only naming it in a comment.
called() {
    cat "$here"/test_*.c "$here"/catalogue_*.c | gcc -fpreprocessed -E -P -xc - | grep -oE '\bdlrs_[a-z0-9_]+\(' |
        tr -d '(' | LC_ALL=C sort -u >"$calls"
    ! env -u DLRS_FEATURES "$here/../crates/cdylib/exports.sh" | LC_ALL=C comm -13 "$calls" - | sed 's/^/not called in test_*.c, catalogue_*.c: /' | grep .
}

law "no thread-local storage" no_tls
law "no abort, no unwinding" no_abort
law "no integers formatted by core" no_core_integers
law "no frames for exceptions to unwind" no_frames
law "nothing of Python" no_python
law "imports are those of imports.txt" imports
law "weak imports are the C start-up's" weak
law "exports are those of exports.txt" exports
law "SONAME carries the version of the interface" soname
law "stays loaded (nodelete)" nodelete
law "bound at load, then read-only" bound_now
law "no executable stack" stack
law "needs the C library only" needs
stripped_kb
law "at most $limit_kb KB" small
law "every export has a test" called
echo "stripped: $bytes bytes"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
