#!/bin/sh
# What the library declares of the drivers (tests/gpu/declarations.py), and the stand-ins' functions,
# compiled against the vendors' own headers, which must agree with every signature:
#   headers.sh WORK [HIP_INCLUDE...]
# NVIDIA's come from PyPI wheels, AMD's from Debian's libamdhip64-dev, from /opt/rocm, and from the
# wheel of triton where $PYTHON has it; none are kept. Folders of other versions of HIP can be named.
# Closes with "N passed, N failed".
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
work=$1
python=${PYTHON:-python3}
passed=0
failed=0
[ -n "$work" ] || { echo "usage: headers.sh WORK [HIP_INCLUDE...]"; exit 2; }
shift
mkdir -p "$work"
agree() { # agree NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "agrees with $name: $(tail -n 1 "$work/log")"
    else
        failed=$((failed + 1))
        echo "differs from $name:"
        head -n 20 "$work/log"
    fi
}
standin() { # standin FLAGS...
    gcc -fsyntax-only -std=gnu11 -Wall -Wextra -Wno-deprecated-declarations -DVENDOR_HEADERS "$@" && echo "the stand-in"
}
hip() { # hip INCLUDE
    number() { grep -oE "define HIP_VERSION_$1 [0-9]+" "$include/hip/hip_version.h" | grep -oE "[0-9]+$"; }
    include=$1
    major=$(number MAJOR)
    name="HIP $major.$(number MINOR)"
    agree "$name" "$python" "$here/../../tests/gpu/declarations.py" hip "$include"
    # Some come without the compiler's header.
    [ -f "$include/hip/hiprtc.h" ] || { echo "$name: no hiprtc.h, the stand-in is not compared"; return; }
    agree "$name" standin "-I$include" "-DSTANDIN_HIP=$major" -D__HIP_PLATFORM_AMD__ "$here/driver.c"
}
for wheel in nvidia-cuda-runtime-cu11 nvidia-cuda-runtime-cu12 nvidia-cuda-runtime; do
    folder=$work/$wheel
    [ -d "$folder" ] || "$python" -m pip install -q --no-deps --target "$folder" "$wheel" >/dev/null 2>&1
    header=$(find "$folder/" -name cuda.h 2>/dev/null | head -n 1)
    [ -n "$header" ] || { echo "$wheel: cuda.h could not be had (pip)"; failed=$((failed + 1)); continue; }
    include=$(dirname "$header")
    agree "$wheel" "$python" "$here/../../tests/gpu/declarations.py" cuda "$include"
    agree "$wheel" standin "-I$include" "$here/driver.c"
done
debian=$work/hip
if [ ! -d "$debian" ]; then
    mkdir -p "$debian"
    (cd "$debian" && apt-get download -q libamdhip64-dev >/dev/null 2>&1 && dpkg-deb -x libamdhip64-dev*.deb .)
fi
triton=$("$python" -c 'import importlib.util as u; print(u.find_spec("triton").submodule_search_locations[0])' 2>/dev/null)
for include in "$debian/usr/include" /opt/rocm/include "$triton/backends/amd/include" "$@"; do
    if [ -f "$include/hip/hip_runtime_api.h" ]; then hip "$include"; fi
done
[ -d "$debian/usr" ] || { echo "hip_runtime_api.h could not be had (apt-get download libamdhip64-dev)"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
