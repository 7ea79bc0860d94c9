#!/bin/sh
# Builds and runs every C test: run.sh INCLUDE LIBDIR
#   with gcc as C99 and C11, with clang where there is one, and everything again as C++17 with g++;
#   then once more under valgrind, with fewer threads and scenarios and without suppressions. The
#   programs that take long are built by all of them and run by gcc as C11.
# The last line is "N passed, N failed". NO_VALGRIND=1 leaves valgrind out, NO_LAWS=1 the laws of the
# file, which an instrumented library breaks.
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: run.sh INCLUDE LIBDIR"; exit 2; }
include=$(CDPATH='' cd "$1" && pwd) && libdir=$(CDPATH='' cd "$2" && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
jobs=$(nproc 2>/dev/null || echo 2)
warnings="-Wall -Wextra -Wpedantic -Werror"
# Command lines are texts here: relative paths have no blanks in them, wherever the checkout and the
# temporary folder are.
cd "$work" || exit 2
ln -s "$include" include
ln -s "$here" c_tests
# The programs need the SONAME, which a build folder may lack.
mkdir lib
cp "$libdir/libdlpack_rs.so" lib/libdlpack_rs.so || exit 2
ln -s libdlpack_rs.so "lib/$("$here/../crates/cdylib/soname.sh")"
export LD_RUN_PATH="$work/lib"
link="-Llib -ldlpack_rs -ldl -lpthread"
passed=0
failed=0

# count NAME STATUS FILE: adds up the last line of a program's output.
count() {
    line=$(tail -n 1 "$3")
    case $line in
    [0-9]*" passed, "[0-9]*" failed") ;;
    *) line="0 passed, 1 failed" ;;
    esac
    p=${line%% *}
    f=${line#*, }
    f=${f%% *}
    [ "$2" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    passed=$((passed + p))
    failed=$((failed + f))
    if [ "$f" -ne 0 ]; then
        echo "$1: exit status $2"
        tail -n 60 "$3"
    else
        case $1 in *catalogue | *sweep | *lifecycle) sed "s|^|$1: |" "$3" ;; esac
    fi
}

# These use C features that C++ lacks.
c_only="test_engine test_platform test_view"
programs="catalogue sweep threads"
for source in "$here"/test_*.c; do programs="$programs $(basename "$source" .c)"; done

# These run long inside the library through few functions: another compiler's calls of those add
# nothing.
run_once="test_elements test_engine test_platform test_pool test_racing"

is_c_only() { case " $c_only " in *" $1 "*) ;; *) return 1 ;; esac; }
is_run_once() { case " $run_once " in *" $1 "*) ;; *) return 1 ;; esac; }

# Whether it is one of the programs, or linked to one.
is_needed() { case " $programs harness lifecycle " in *" $1 "* | *" ${1%%_*} "*) ;; *) return 1 ;; esac; }

# build COMPILER STANDARD LANGUAGE: all programs into $work/COMPILER-STANDARD/
build() {
    out=$1-$2
    mkdir "$out"
    # The hooks are C in every build.
    gcc -c -g -std=c11 $warnings c_tests/inject.c -o "$out/inject.o" || return 1
    for source in c_tests/*.c; do
        name=$(basename "$source" .c)
        [ "$name" = inject ] && continue
        [ "$3" = c++ ] && is_c_only "$name" && continue
        is_needed "$name" || continue
        echo "$1 -x $3 -c -g -O1 -std=$2 $warnings -Iinclude -Ic_tests $source -o $out/$name.o"
    done | xargs -P "$jobs" -I{} sh -c '{}' || return 1
    for name in $programs; do
        [ "$3" = c++ ] && is_c_only "$name" && continue
        case $name in
        catalogue) objects=$(ls "$out"/catalogue*.o) ;;
        *) objects=$out/$name.o ;;
        esac
        echo $1 $objects "$out/harness.o" "$out/inject.o" $link -o "$out/$name"
    done | xargs -P "$jobs" -I{} sh -c '{}' || return 1
    "$1" "$out/lifecycle.o" -ldl -lpthread -o "$out/lifecycle" || return 1
}

limit=${STEP_SECONDS:-300}
run_all() { # run_all BUILD
    for name in $programs; do
        [ -x "$1/$name" ] || continue
        [ "$1" != gcc-c11 ] && is_run_once "$name" && continue
        MALLOC_PERTURB_=165 timeout "$limit" "$1/$name" >log 2>&1
        count "$1 $name" $? log
    done
    cp lib/libdlpack_rs.so copy.so
    timeout "$limit" "$1/lifecycle" lib/libdlpack_rs.so ./copy.so >log 2>&1
    count "$1 lifecycle" $? log
}

for combination in "gcc c99 c" "gcc c11 c" "clang c11 c" "g++ c++17 c++"; do
    # ONLY names the programs to run, then with one compiler.
    [ -z "${ONLY:-}" ] || { programs=$ONLY; [ "$combination" = "gcc c11 c" ] || continue; }
    set -- $combination
    command -v "$1" >/dev/null || { echo "$1: not here"; continue; }
    if build "$@" >build.log 2>&1; then
        run_all "$1-$2"
    else
        echo "$combination: does not build"
        cat build.log
        failed=$((failed + 1))
    fi
done

# Exceptions need C++.
if command -v g++ >/dev/null; then
    if g++ -g -std=c++17 $warnings -Iinclude -Ic_tests c_tests/throw.cpp gcc-c11/harness.o \
        gcc-c11/inject.o $link -o throw 2>log; then
        timeout "$limit" ./throw >log 2>&1
        count throw $? log
    else
        cat log
        failed=$((failed + 1))
    fi
fi

if [ "${NO_LAWS:-0}" = 0 ]; then
    "$here/laws.sh" "$include" "$libdir" >log 2>&1
    count laws $? log
    grep '^stripped' log
fi

# The program's allocator hooks stay in place: they forward to the one that valgrind watches.
if [ "${NO_VALGRIND:-0}" = 0 ] && command -v valgrind >/dev/null; then
    for name in $programs lifecycle; do
        case $name in
        sweep) arguments=3 ;;
        threads) arguments=100 ;;
        test_engine) arguments=100 ;;
        test_pool) arguments=1000 ;;
        test_setters) arguments=50 ;;
        test_elements) arguments=100 ;; # far tensors are near: valgrind has not so many addresses
        test_platform) continue ;; # minutes: it walks as much memory as an address space has
        lifecycle) arguments="lib/libdlpack_rs.so ./copy.so 1000" ;;
        *) arguments= ;;
        esac
        echo "$name $arguments"
    done >list
    xargs -P "$jobs" -I{} sh -c '
        set -- {}
        name=$1
        shift
        kinds=all
        # The library and the loader data about it are never freed; each table of a backend
        # that was ever set is kept, and test_growth sets one of every size.
        case $name in lifecycle | test_growth) kinds=definite,indirect,possible ;; esac
        # A handler repairs faults there, and resumes with the registers at the fault.
        exact=
        [ "$name" = test_workers ] && exact=--vex-iropt-register-updates=allregs-at-mem-access
        timeout "${STEP_SECONDS:-900}" valgrind -q $exact --leak-check=full \
            --track-origins=yes --error-exitcode=9 --errors-for-leak-kinds=$kinds \
            --soname-synonyms=somalloc=nouserintercepts \
            --log-file=$name.%p.errors gcc-c11/$name "$@" >$name.log 2>&1
        echo $? >$name.status' <list
    for name in $programs lifecycle; do
        [ -f "$name.status" ] || continue
        status=$(cat "$name.status")
        cat "$name".*.errors | head -n 60
        count "valgrind $name" "${status:-1}" "$name.log"
    done
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
