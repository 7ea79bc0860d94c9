#!/bin/sh
# The device layer on a real GPU: device.sh cuda|rocm test|sanitize|bench [ARGUMENTS]|build|rehearse
#                                 device.sh cuda|rocm lease SECONDS [rehearse]
#   test      the catalogue's rows, the threads and events recorded for tensors, the same programs as
#             on the stand-ins; torch, CuPy and JAX; CUDA: a trace of driver calls, with which the
#             stand-in must agree
#   sanitize  CUDA: the catalogue's rows under compute-sanitizer, those of kernels with all its tools
#   bench     benches/gpu.py, which writes benches/results/gpu and docs/benchmarks-gpu.md
#   build     only builds, into target/cuda or target/rocm
#   rehearse  test and a short bench on the stand-in, to try this script without a GPU
#   lease     what a card is used for that is lent for SECONDS (lease.py), after an earlier `build`;
#             $PYTHON is all that it needs
# Without cargo and gcc an earlier `build` in target/cuda or target/rocm is used, so that a machine
# with only a driver and Python suffices.
# Closes with "N passed, N failed", or "not run: ..." and exit status 3.
if [ "$2" = lease ]; then
    exec "${PYTHON:-python3}" -B "${0%/*}/lease.py" "$1" "${3:-0}" ${4:+"$4"}
fi
root=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
here=c_tests/gpu
vendor=$1
action=$2
case $vendor in
cuda) drivers="libcuda.so.1" face=cuda ;;
rocm) drivers="libamdhip64.so.7 libamdhip64.so.6 libamdhip64.so.5 libamdhip64.so" face=hip6 ;;
esac
case $vendor-$action in
cuda-test | cuda-sanitize | cuda-bench | cuda-build | cuda-rehearse) ;;
rocm-test | rocm-bench | rocm-build | rocm-rehearse) ;;
*) echo "usage: device.sh cuda|rocm test|sanitize|bench [ARGUMENTS]|build|rehearse|lease SECONDS"; exit 2 ;;
esac
shift 2
out=target/$vendor
programs="catalogue_d threads ready"
passed=0
failed=0
python=${PYTHON:-python3}
mkdir -p "$out/lib"

has() { command -v "$1" >/dev/null; }
build() {
    if has cargo; then
        make -s build || exit 1
        # Copies instead of links, so that they can be moved to another machine.
        cp -L target/lib/libdlpack_rs.so "$out/lib/libdlpack_rs.so"
        ln -sf libdlpack_rs.so "$out/lib/$(crates/cdylib/soname.sh)"
    fi
    [ -e "$out/lib/libdlpack_rs.so" ] || { echo "$out/lib/libdlpack_rs.so is missing: install cargo, or carry $out here"; exit 1; }
    if has gcc; then
        for name in $programs; do
            gcc -std=gnu11 -g -O1 -Iinclude -Ic_tests "$here/$name.c" "$here/gpu.c" c_tests/harness.c \
                c_tests/inject.c -o "$out/$name" -L"$out/lib" -Wl,-rpath,'$ORIGIN/lib' -ldlpack_rs -lpthread -ldl || exit 1
        done
        gcc -std=gnu11 -g -O1 c_tests/standin/trace.c -o "$out/trace" -lpthread -ldl || exit 1
        if has g++; then c_tests/standin/build.sh "$out/standin" || exit 1; fi
    fi
    for name in $programs trace; do
        [ -x "$out/$name" ] || { echo "$out/$name is missing: apt-get install gcc, or device.sh $vendor build elsewhere"; exit 1; }
    done
    # The compared program that only nvcc compiles.
    if [ "$vendor" = cuda ] && has nvcc; then
        # shellcheck disable=SC2086 # several words
        nvcc -O3 -std=c++17 ${NVCC_FLAGS:--arch=native} -shared -Xcompiler -fPIC benches/cccl.cu -o "$out/libcccl.so" >"$out/log" 2>&1 ||
            { echo "not run: CCCL, nvcc does not compile benches/cccl.cu (NVCC_FLAGS=-arch=sm_90 elsewhere)"; tail -n 5 "$out/log"; }
    fi
}

# Whether there is a driver with a device; prints which, or the reason.
probe() {
    "$python" - "$vendor" "$action" $drivers <<'PROBE'
import ctypes, sys
vendor, action, *names = sys.argv[1:]
for file in names:
    try:
        driver = ctypes.CDLL(file)
        break
    except OSError as error:
        why = error
else:
    sys.exit(f"not run: no driver here ({why})")
init, count_of, version_of = {
    "cuda": ("cuInit", "cuDeviceGetCount", "cuDriverGetVersion"),
    "rocm": ("hipInit", "hipGetDeviceCount", "hipRuntimeGetVersion"),
}[vendor]
count, version = ctypes.c_int(), ctypes.c_int()
code = getattr(driver, init)(0) or getattr(driver, count_of)(ctypes.byref(count))
if code or count.value == 0:
    sys.exit(f"not run: {file} answers {code}, {count.value} devices")
if hasattr(driver, "standin_ctl") != (action == "rehearse"):
    sys.exit(f"not run: {file} is {'the stand-in' if action != 'rehearse' else 'a real driver'}")
getattr(driver, version_of)(ctypes.byref(version))
print(f"{file}, version {version.value}: {count.value} device(s)")
PROBE
}

step() { # step NAME COMMAND...: shows what it says, and adds up the closing line
    name=$1
    shift
    echo "==== $name"
    "$@" >"$out/log" 2>&1
    status=$?
    tail -n 100 "$out/log"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out/log" | tail -n 1)
    p=${line%% *}
    f=${line#*, }
    f=${f%% *}
    [ -n "$line" ] || { p=0; f=1; }
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    passed=$((passed + p))
    failed=$((failed + f))
}

trace() {
    file=c_tests/standin/trace_cuda.txt
    ptx=crates/gpu/src/kernels.ptx
    "$out/trace" libcuda.so.1 $ptx >"$out/trace_cuda.txt" || { echo "0 passed, 1 failed"; return 1; }
    cmp -s "$file" "$out/trace_cuda.txt" || echo "$out/trace_cuda.txt differs from $file"
    "$out/trace" "$out/standin/cuda/libcuda.so.1" $ptx "$out/trace_cuda.txt"
}

frameworks() {
    "$python" -B python/generate_abi.py
    PYTHONPATH=$root/python DLPACK_RS_LIBRARY=$root/$out/lib/libdlpack_rs.so "$python" -B tests/gpu/frameworks.py "$vendor"
}

# The Python that has torch and CuPy; else a virtual environment with the system's packages, into
# which pip installs them where it can. PyPI has none for ROCm: AMD's packages are used if present.
environment() {
    venv=$root/target/venv-$vendor
    "$python" -c 'import numpy, torch, cupy' 2>/dev/null && return
    "$python" -m venv --system-site-packages "$venv" 2>/dev/null || { mkdir -p "$venv/bin"; ln -sf "$(command -v "$python")" "$venv/bin/python"; }
    needs=numpy
    if [ "$vendor" = cuda ]; then
        needs="$needs torch cupy:$("$python" -c 'import ctypes; v = ctypes.c_int(); ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)); print(f"cupy-cuda{v.value // 1000}x")')"
    fi
    python=$venv/bin/python
    for need in $needs; do
        "$python" -c "import ${need%%:*}" 2>/dev/null && continue
        "$python" -m pip install -q --disable-pip-version-check "${need#*:}" >/dev/null 2>&1 ||
            echo "not run: ${need%%:*} is not installed, and pip cannot install ${need#*:}"
    done
}

bench() { "$python" -B benches/gpu.py --vendor "$vendor" "$@"; }
rehearsed() { bench --quick --no-peers && echo "1 passed, 0 failed"; }

if [ "$action" = build ]; then
    build
    exit
fi
if [ "$action" = rehearse ]; then
    LD_LIBRARY_PATH=$root/$out/standin/$face
    export LD_LIBRARY_PATH
    build
    probe || exit 3
else
    probe || exit 3
    build
fi
case $action in
bench)
    environment
    bench "$@"
    exit
    ;;
sanitize)
    has compute-sanitizer || { echo "not run: compute-sanitizer is not installed"; exit 3; }
    export GPU_ROW_SECONDS=1200
    watch() {
        tool=$1
        shift
        step "compute-sanitizer $tool $*" compute-sanitizer --tool "$tool" --report-api-errors no --target-processes all --error-exitcode 9 \
            "$out/catalogue_d" cuda --list "$@"
    }
    # Rejected driver calls are deliberate, and the rows check them.
    for tool in memcheck racecheck initcheck synccheck; do watch $tool D11; done
    watch memcheck
    ;;
*)
    step "catalogue_d on the driver" "$out/catalogue_d" "$vendor" --list
    step "threads on the driver" "$out/threads" "$vendor" 200
    step "tensors that are recorded as ready" "$out/ready" "$vendor"
    if [ "$vendor" = cuda ]; then step "the stand-in next to the driver" trace; fi
    if [ "$action" = rehearse ]; then
        step "copies, timed" rehearsed
    else
        environment
        step "torch, CuPy and JAX" frameworks
    fi
    ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
