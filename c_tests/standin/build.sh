#!/bin/sh
# Builds the stand-in drivers: build.sh OUT [FLAGS...]
#   OUT/cuda/libcuda.so.1   OUT/hip5/libamdhip64.so.5   OUT/hip6/...6   OUT/hip7/...7
# and their objects in OUT/objects, from which `drop` links a driver that lacks one function:
#   build.sh --drop OUT FACE SYMBOL FOLDER
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
face_name() { # what the library of a face is called
    case $1 in
    cuda) echo libcuda.so.1 ;;
    hip*) echo "libamdhip64.so.${1#hip}" ;;
    esac
}
link_face() { # link_face OBJECTS FACE FOLDER FLAGS...
    objects=$1
    face=$2
    folder=$3
    shift 3
    mkdir -p "$folder"
    ${CXX:-g++} -shared -o "$folder/$(face_name "$face")" "$objects/$face.o" "$objects/core.o" \
        "$objects/memory.o" "$objects/queue.o" "$objects/streams.o" "$objects/kernels.o" "$objects/ptx.o" \
        "-Wl,-soname,$(face_name "$face")" "$@" -lpthread
}
if [ "$1" = --drop ]; then
    mkdir -p "$5"
    echo "{ global: *; local: $4; };" >"$5/drop.map"
    link_face "$2/objects" "$3" "$5" "-Wl,--version-script=$5/drop.map" $(cat "$2/objects/flags")
    exit
fi
[ $# -ge 1 ] || { echo "usage: build.sh OUT [FLAGS...]"; exit 2; }
out=$1
shift
objects=$out/objects
mkdir -p "$objects" || exit 2
echo "$@" >"$objects/flags"
flags="-g -O1 -Wall -Wextra -Wpedantic -Werror -fPIC -fvisibility=hidden $*"
for name in core memory queue streams kernels; do
    ${CC:-gcc} -std=gnu11 $flags -c "$here/$name.c" -o "$objects/$name.o" || exit 1
done
for face in cuda hip5 hip6 hip7; do
    ${CC:-gcc} -std=gnu11 $flags "-DSTANDIN_HIP=$(echo "$face" | sed 's/cuda/0/; s/hip//')" \
        "-DPTX=\"$here/../../crates/gpu/src/kernels.ptx\"" -c "$here/driver.c" -o "$objects/$face.o" || exit 1
done
${CXX:-g++} -std=c++17 -g -O2 -ftree-vectorize -fPIC -fvisibility=hidden "$@" -c "$here/ptx.cpp" -o "$objects/ptx.o" || exit 1
for face in cuda hip5 hip6 hip7; do
    link_face "$objects" $face "$out/$face" "$@" || exit 1
done
