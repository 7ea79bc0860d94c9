#!/bin/sh
# The GPU backend on the stand-in drivers: gpu/run.sh INCLUDE LIBDIR OUT [FLAGS...]
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || { echo "usage: run.sh INCLUDE LIBDIR OUT"; exit 2; }
include=$1
lib=$(cd "$2" && pwd)
mkdir -p "$3"
out=$(cd "$3" && pwd)
shift 3
"$here/../standin/build.sh" "$out/standin" || exit 2
${CC:-gcc} -std=c11 -g -O2 -Wall -Wextra -Werror -I "$include" -I "$here/../../include" "$@" \
    "$here/test_gpu_backend.c" "$here/../harness.c" "$here/../inject.c" -o "$out/test_gpu_backend" \
    -L "$lib" -Wl,-rpath,"$lib" -ldlpack_rs -lpthread -ldl || exit 2
status=0
for face in cuda:cuda/libcuda.so.1 rocm:hip5/libamdhip64.so.5 rocm:hip6/libamdhip64.so.6 \
    rocm:hip7/libamdhip64.so.7; do
    driver=$out/standin/${face#*:}
    echo "test_gpu_backend, $(basename "$driver")"
    LD_LIBRARY_PATH=$(dirname "$driver") timeout 300 "$out/test_gpu_backend" "${face%%:*}" "$driver" || status=1
done
exit $status
