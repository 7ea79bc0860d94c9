#!/bin/sh
# The conformance kit for C, conform/: run.sh INCLUDE LIBDIR
#   Its sources compile without warnings as C99, C11, C++11 and C++17; the faults that it finds
#   (faults.c) as C and as C++; this library passes it without a violation, through the program that
#   loads a shared library; the program's options; its rules are those of the Python kit.
# The last line is "N passed, N failed".
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: run.sh INCLUDE LIBDIR"; exit 2; }
include=$(CDPATH='' cd "$1" && pwd) && libdir=$(CDPATH='' cd "$2" && pwd) || exit 2
root=$(CDPATH='' cd "$here/../.." && pwd)
kit=$root/conform
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
# Relative, so that no blank is in it, wherever the checkout and the temporary folder are.
cd "$work" || exit 2
ln -s "$include" include
ln -s "$kit" kit
flags="-g -O1 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -Ikit"
passed=0
failed=0
row() { # row NAME COMMAND...
    name=$1
    shift
    [ -e "$work/log" ] && mv "$work/log" "$work/said"
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        tail -n 30 "$work/log"
    fi
}

# compile COMPILER...: the kit's objects, in a separate folder
compile() {
    mkdir -p "$work/$standard"
    for source in "$kit"/*.c "$here/mini.c" "$here/faults.c"; do
        "$@" $flags -c "$source" -o "$work/$standard/$(basename "$source" .c).o" || return 1
    done
    rm "$work/$standard/main.o"
}
faults() {
    "$1" "$work/$standard"/*.o -o "$work/$standard/faults" -lpthread && "$work/$standard/faults"
}
for standard in c99 c11 c++11 c++17; do
    case $standard in
    c99 | c11) row "$standard" compile gcc "-std=$standard" ;;
    *) row "$standard" compile g++ -x c++ "-std=$standard" ;;
    esac
done
command -v clang >/dev/null && standard="clang" && row clang compile clang -std=c11
standard="c99"
row "faults are found, C" faults gcc
cat "$work/log"
standard=c++17
row "faults are found, C++" faults g++

# The program, and this library as a shared library.
for sanitizer in address,undefined thread; do
    row "$sanitizer: built" gcc -std=c99 $flags "-fsanitize=$sanitizer" -fno-sanitize-recover=all \
        -DDLRS_CONFORM_LINKED "$kit"/*.c "$here/mini.c" -o "$work/sanitized" -lpthread
    row "$sanitizer: nothing found" "$work/sanitized"
done
row "the program is built" gcc -std=c99 $flags "$kit"/*.c -o "$work/dlpack_rs-conform" \
    -ldl -lpthread
mkdir "$work/lib"
cp "$libdir/libdlpack_rs.so" "$work/lib/libdlpack_rs.so"
ln -s libdlpack_rs.so "$work/lib/$("$root/crates/cdylib/soname.sh")"
row "this library as a subject" gcc -std=c99 $flags -fPIC -shared "$here/ours.c" \
    -o "$work/libours.so" "-L$work/lib" -ldlpack_rs "-Wl,-rpath,$work/lib"
row "mini as a subject" gcc -std=c99 $flags -fPIC -shared "$here/mini.c" \
    -o "$work/libmini.so" -lpthread
row "a program that is linked with its subject" gcc -std=c99 $flags -DDLRS_CONFORM_LINKED \
    "$kit"/*.c "$here/mini.c" -o "$work/linked" -lpthread
conform() { "$work/dlpack_rs-conform" "$@"; }
exits() { # exits STATUS COMMAND...
    wanted=$1
    shift
    "$@"
    found=$?
    [ "$found" -eq "$wanted" ] || { echo "exit status $found, not $wanted"; return 1; }
}
row "this library keeps every rule" exits 0 conform "$work/libours.so"
cat "$work/log"
row "a library without faults" exits 0 conform "$work/libmini.so" --seconds 60
row "linked" exits 0 "$work/linked" --select "P1*,C01"
export MINI_FAULT="frees twice"
row "violations: 1" exits 1 conform "$work/libmini.so" --select C01
row "named" grep -q "^fail  C01 MUST   .*: the deleter ran 2 times" "$work/said"
printf 'C01 it counts twice\n' >"$work/known.txt"
row "known ones: 0" exits 0 conform "$work/libmini.so" --select C01 --known "$work/known.txt"
printf 'C01\nP12\n' >"$work/known.txt"
row "gone ones: 1" exits 1 conform "$work/libmini.so" --select C01,P12 --known "$work/known.txt"
row "say so" grep -q "P12 is known, and passes" "$work/said"
printf '# a comment\n\n  C01#\nP01 of the Python kit\n' >"$work/known.txt"
row "comments" exits 0 conform "$work/libmini.so" --select C01 --known "$work/known.txt"
printf 'C1\n' >"$work/known.txt"
row "no identifier: 2" exits 2 conform "$work/libmini.so" --select C01 --known "$work/known.txt"
export MINI_FAULT="dies of ndim"
row "a crash" exits 1 conform "$work/libmini.so" --select C38
row "is named" grep -q "^crash C38 ROBUST .*signal 6" "$work/said"
unset MINI_FAULT
row "no library: 2" exits 2 conform "$work/no_such.so"
row "no subject: 2" exits 2 conform "$work/lib/libdlpack_rs.so"
row "no argument: 2" exits 2 conform
row "no such option: 2" exits 2 conform "$work/libmini.so" --no-such
row "no such rule: 2" exits 2 conform "$work/libmini.so" --select Q01
row "no such file: 2" exits 2 conform "$work/libmini.so" --known "$work/no_such"
row "--help" exits 0 conform --help
row "--list" exits 0 conform --list --select X01
row "has the source" grep -q "https://github.com/dmlc/dlpack" "$work/said"
if command -v ctest >/dev/null; then
    mkdir "$work/cmake"
    cat >"$work/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(mine C)
enable_testing()
include(../kit/dlpack_rs_conform.cmake)
dlpack_rs_conform_test(good SOURCES "$here/mini.c")
dlpack_rs_conform_test(bad SOURCES "$here/mini.c" OPTIONS --select C01)
set_tests_properties(bad PROPERTIES ENVIRONMENT "MINI_FAULT=frees twice")
END
    row "CMake" cmake -S cmake -B cmake/build "-DDLRS_CONFORM_INCLUDE=$include"
    row "builds it" cmake --build cmake/build
    row "ctest" exits 8 ctest --test-dir cmake/build
    row "a fault fails there, and no fault does not" grep -q "^50% tests passed, 1 tests failed out of 2" said
fi
json() {
    conform "$work/libmini.so" --json --select "P1*" >"$work/json" && python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
assert found["library"] == "mini 1" and len(found["checks"]) > 5, found
assert {"id", "severity", "source", "rule", "outcome", "text", "known"} == set(found["checks"][0])
' "$work/json"
}
row "--json" json
export MINI_FAULT="prints"
row "a library that prints" json
unset MINI_FAULT
row "its rules are those of the Python kit" env DLPACK_RS_LIBRARY="$libdir/libdlpack_rs.so" \
    python3 -B "$root/python/generate_conform.py" --check
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
