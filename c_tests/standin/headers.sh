#!/bin/sh
# Compiles the stand-ins' functions against the vendors' own headers, which must agree with every
# signature: headers.sh WORK. NVIDIA's come from PyPI wheels, AMD's from Debian's libamdhip64-dev;
# neither is kept. Closes with "N passed, N failed".
here=$(cd "$(dirname "$0")" && pwd)
work=$1
passed=0
failed=0
[ -n "$work" ] || { echo "usage: headers.sh WORK"; exit 2; }
mkdir -p "$work"
agree() { # agree NAME FLAGS...
    name=$1
    shift
    if gcc -fsyntax-only -std=gnu11 -Wall -Wextra -Wno-deprecated-declarations -DVENDOR_HEADERS "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "agrees with $name"
    else
        failed=$((failed + 1))
        echo "differs from $name:"
        head -n 20 "$work/log"
    fi
}
for wheel in nvidia-cuda-runtime-cu11 nvidia-cuda-runtime-cu12 nvidia-cuda-runtime; do
    folder=$work/$wheel
    [ -d "$folder" ] || ${PYTHON:-python3} -m pip install -q --no-deps --target "$folder" "$wheel" >/dev/null 2>&1
    header=$(find "$folder" -name cuda.h 2>/dev/null | head -n 1)
    [ -n "$header" ] || { echo "$wheel: cuda.h could not be had (pip)"; failed=$((failed + 1)); continue; }
    agree "$wheel" "-I$(dirname "$header")" "$here/cuda.c"
done
hip=$work/hip
if [ ! -d "$hip" ]; then
    mkdir -p "$hip"
    (cd "$hip" && apt-get download -q libamdhip64-dev >/dev/null 2>&1 && dpkg-deb -x libamdhip64-dev*.deb .)
fi
if [ -f "$hip/usr/include/hip/hip_runtime_api.h" ]; then
    agree "libamdhip64-dev" "-I$hip/usr/include" -DSTANDIN_HIP=5 "$here/hip.c"
else
    echo "hip_runtime_api.h could not be had (apt-get download libamdhip64-dev)"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
