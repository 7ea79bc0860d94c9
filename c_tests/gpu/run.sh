#!/bin/sh
# The device layer on the stand-in drivers: run.sh INCLUDE LIBDIR [OUT] [FLAGS...]
#   the stand-in itself; the catalogue's rows D and what of K concerns devices; the
#   order of streams, batches, and what is recorded for tensors, in C and C++; the sweep of failing driver calls; threads;
#   drivers that are missing, broken, or lack a function; the catalogue, batches and the sweep once more under valgrind (not with NO_VALGRIND=1).
# FAULTS_STEP=N sweeps every N-th code only, FAULTS_STEP=1 all of them everywhere.
# FACES="cuda hip6" runs on these stand-ins, and nothing after them. The last line is "N passed, N failed".
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { echo "usage: run.sh INCLUDE LIBDIR [OUT] [FLAGS...]"; exit 2; }
include=$(CDPATH='' cd "$1" && pwd) && lib=$(CDPATH='' cd "$2" && pwd) || exit 2
if [ -n "$3" ]; then
    mkdir -p "$3"
    out=$(CDPATH='' cd "$3" && pwd)
    shift 3
else
    shift 2
    out=$(mktemp -d) || exit 2
    trap 'rm -rf "$out"' EXIT
fi
standins=$out/standin
passed=0
failed=0
mkdir -p "$out/lib"
cp "$lib/libdlpack_rs.so" "$out/lib/libdlpack_rs.so" || exit 2
ln -sf libdlpack_rs.so "$out/lib/$("$here/../../crates/cdylib/soname.sh")"

step() { # step NAME COMMAND...: adds up the closing line; shows the rest when something failed
    name=$1
    shift
    timeout "${STEP_SECONDS:-600}" "$@" >"$out/log" 2>&1
    status=$?
    line=$(tail -n 1 "$out/log")
    case $line in
    [0-9]*" passed, "[0-9]*" failed"*) ;;
    *) line="0 passed, 1 failed" ;;
    esac
    p=${line%% *}
    f=${line#*, }
    f=${f%% *}
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    passed=$((passed + p))
    failed=$((failed + f))
    if [ "$f" -ne 0 ]; then
        echo "$name: exit status $status"
        tail -n 40 "$out/log"
    else
        grep -E '^(not run|[0-9]+ (points|rows|scenarios))' "$out/log" | sed "s|^|$name: |"
    fi
}

"$here/../standin/build.sh" "$standins" || exit 1
compile() { # compile PROGRAM SOURCE...
    program=$1
    shift
    ${CC:-gcc} -std=gnu11 -g -O1 -Wall -Wextra -Werror -I "$include" -I "$here/.." "$@" -o "$out/$program" \
        -L "$out/lib" -Wl,-rpath,"$out/lib" -ldlpack_rs -lpthread -ldl
}
compile test_standin "$here/../standin/test_standin.c" || exit 1
compile catalogue_d "$here"/catalogue_*.c "$here/gpu.c" "$here/../harness.c" "$here/../inject.c" "$@" || exit 1
for name in loading faults threads order ready batch batch_faults; do
    compile $name "$here/$name.c" "$here/gpu.c" "$here/../harness.c" "$here/../inject.c" "$@" || exit 1
done
for name in gpu ../harness ../inject; do ${CC:-gcc} -std=gnu11 -g -O1 -I "$include" -I "$here/.." -c "$here/$name.c" -o "$out/$(basename $name).o" || exit 1; done
${CXX:-g++} -std=c++17 -g -O1 -Wall -Wextra -Werror -I "$include" -I "$here/.." "$here/ready_hpp.cpp" "$out/gpu.o" "$out/harness.o" \
    "$out/inject.o" "$@" -o "$out/ready_hpp" -L "$out/lib" -Wl,-rpath,"$out/lib" -ldlpack_rs -lpthread -ldl || exit 1

on() { # on FACE COMMAND...: with its stand-in as the driver
    folder=$standins/$1
    shift
    LD_LIBRARY_PATH=$folder "$@"
}
vendor() { case $1 in cuda) echo cuda ;; *) echo rocm ;; esac; }

step test_standin "$out/test_standin" "$standins/cuda/libcuda.so.1"
for face in ${FACES:-cuda hip5 hip6 hip7}; do
    export LD_LIBRARY_PATH="$standins/$face"
    step "catalogue_d $face" "$out/catalogue_d" "$(vendor $face)"
    step "order $face" "$out/order" "$(vendor $face)"
    step "ready $face" "$out/ready" "$(vendor $face)"
    step "batch $face" "$out/batch" "$(vendor $face)"
    step "batch_faults $face" "$out/batch_faults" "$(vendor $face)"
    step "ready_hpp $face" "$out/ready_hpp" "$(vendor $face)"
    # The codes mean the same to all: each code of each call for one face, some of each call's for the others.
    case $face in cuda) some=1 ;; hip6) some=3 ;; *) some=7 ;; esac
    step "faults $face" "$out/faults" "$(vendor $face)" "${FAULTS_STEP:-$some}"
    step "threads $face" "$out/threads" "$(vendor $face)"
    unset LD_LIBRARY_PATH
done
step loading "$out/loading" "$standins"
if [ -n "${FACES:-}" ]; then
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
fi

# Z07: the library works without each driver function, one at a time.
sources=$here/../../crates/gpu/src
for symbol in $(grep -ohE '"(cu[A-Z]|hip[A-Z]|hiprtc[A-Z])[A-Za-z0-9_]+"' "$sources"/*.rs | tr -d '"' | sort -u); do
    case $symbol in cu*) face=cuda ;; *) face=hip6 ;; esac
    nm -D "$standins/$face"/lib* | grep -qw "T $symbol" || continue
    mkdir -p "$out/drop"
    rm -rf "$out/drop"/*
    "$here/../standin/build.sh" --drop "$standins" $face "$symbol" "$out/drop" || exit 1
    step "without $symbol" "$out/loading" "$standins" dropped "$(vendor $face)" "$symbol" "$out/drop"
    dropped=$((${dropped:-0} + 1))
done
echo "$dropped functions were missing once"

# What the stand-in answers, as a real driver did (make test-cuda).
${CC:-gcc} -std=gnu11 -g "$here/../standin/trace.c" -o "$out/trace" -lpthread -ldl || exit 1
step "trace" "$out/trace" "$standins/cuda/libcuda.so.1" "$sources/kernels.ptx" "$here/../standin/trace_cuda.txt"

if [ "${NO_VALGRIND:-0}" = 0 ] && command -v valgrind >/dev/null; then
    export LD_LIBRARY_PATH="$standins/cuda"
    step "valgrind catalogue_d" valgrind -q --error-exitcode=9 --soname-synonyms=somalloc=nouserintercepts \
        "$out/catalogue_d" cuda
    step "valgrind batch" valgrind -q --error-exitcode=9 --soname-synonyms=somalloc=nouserintercepts \
        "$out/batch" cuda "among others"
    step "valgrind faults" valgrind -q --error-exitcode=9 --soname-synonyms=somalloc=nouserintercepts \
        "$out/faults" cuda 29
    unset LD_LIBRARY_PATH
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
