#!/bin/sh
# The device layer on a real NVIDIA GPU: cuda.sh test|sanitize|bench [--quick]|build
#   test      the catalogue's rows and the threads, the same programs as on the stand-ins; torch,
#             CuPy and JAX; a trace of driver calls, with which the stand-in must agree (written to
#             c_tests/standin/trace_cuda.txt when there is none yet)
#   sanitize  the catalogue's rows under compute-sanitizer, those of kernels by all its tools
#   bench     benches/gpu.py, which writes benches/results/cuda and docs/benchmarks-cuda.md
#   build     only builds, into target/cuda
# Without cargo and gcc the library and programs of an earlier `cuda.sh build` in target/cuda are
# used: so it also runs on a machine that has nothing but a driver.
# Closes with "N passed, N failed", or "not run: ..." and exit status 3.
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
here=c_tests/gpu
out=target/cuda
passed=0
failed=0
python=${PYTHON:-python3}
mkdir -p "$out"

build() {
    if command -v cargo >/dev/null; then
        make -s build || exit 1
        # A copy that is no link: it may be carried to another machine.
        mkdir -p "$out/lib"
        cp -L target/lib/libdlpack_rs.so "$out/lib/libdlpack_rs.so"
        ln -sf libdlpack_rs.so "$out/lib/$(basename "$(ls -d target/lib/libdlpack_rs.so.* | head -n 1)")"
    fi
    [ -e "$out/lib/libdlpack_rs.so" ] || { echo "$out/lib/libdlpack_rs.so is missing: install cargo, or carry target/cuda here"; exit 1; }
    if command -v gcc >/dev/null; then
        for name in catalogue_d threads ready; do
            gcc -std=gnu11 -g -O1 -Iinclude -Ic_tests "$here/$name.c" "$here/gpu.c" c_tests/harness.c \
                c_tests/inject.c -o "$out/$name" -L"$out/lib" -Wl,-rpath,'$ORIGIN/lib' -ldlpack_rs -lpthread -ldl || exit 1
        done
        gcc -std=gnu11 -g -O1 c_tests/standin/trace.c -o "$out/trace" -lpthread -ldl || exit 1
        if command -v g++ >/dev/null; then c_tests/standin/build.sh "$out/standin" || exit 1; fi
    fi
    for name in catalogue_d threads ready trace; do
        [ -x "$out/$name" ] || { echo "$out/$name is missing: apt-get install gcc, or cuda.sh build elsewhere"; exit 1; }
    done
}

# Whether there is a driver with a device; says which, or why not.
probe() {
    "$python" - <<'PROBE'
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(f"no NVIDIA driver here: not run ({error})")
count = ctypes.c_int()
code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
if code or count.value == 0:
    sys.exit(f"no NVIDIA driver here: not run (cuInit answers {code}, {count.value} devices)")
if hasattr(cuda, "standin_ctl"):
    sys.exit("no NVIDIA driver here: not run (libcuda.so.1 is the stand-in)")
name = ctypes.create_string_buffer(100)
cuda.cuDeviceGetName(name, 100, 0)
print(f"{count.value} device(s), the first: {name.value.decode()}")
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
    "$out/trace" libcuda.so.1 src/device/gpu/kernels.ptx >"$out/trace_cuda.txt" || { echo "0 passed, 1 failed"; return 1; }
    tail -n 1 "$out/trace_cuda.txt"
    if [ ! -e "$file" ]; then
        cp "$out/trace_cuda.txt" "$file"
        echo "recorded: $file; commit it"
    fi
    cmp -s "$file" "$out/trace_cuda.txt" || echo "$out/trace_cuda.txt differs from $file"
    c_tests/standin/conform.sh "$out/trace" "$out/standin/cuda/libcuda.so.1" "$out/trace_cuda.txt"
}

python_module() {
    PYTHONPATH=$root/python DLPACK_RS_LIBRARY=$root/$out/lib/libdlpack_rs.so "$python" -B tests/gpu/cuda_python.py
}

# The Python that has torch and CuPy; else a virtual environment that sees what the machine has, to
# which they are added where pip can.
environment() {
    venv=$root/target/venv-cuda
    "$python" -c 'import numpy, torch, cupy' 2>/dev/null && return
    "$python" -m venv --system-site-packages "$venv" 2>/dev/null || { mkdir -p "$venv/bin"; ln -sf "$(command -v "$python")" "$venv/bin/python"; }
    cupy=$("$python" -c 'import ctypes; v = ctypes.c_int(); ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)); print(f"cupy-cuda{v.value // 1000}x")')
    python=$venv/bin/python
    for need in numpy torch "cupy:$cupy"; do
        "$python" -c "import ${need%%:*}" 2>/dev/null && continue
        "$python" -m pip install -q --disable-pip-version-check "${need#*:}" >/dev/null 2>&1 ||
            echo "not run: ${need%%:*} is not installed, and pip cannot install ${need#*:}"
    done
}

case $1 in
build) build; exit ;;
test | sanitize | bench) ;;
*) echo "usage: cuda.sh test|sanitize|bench [--quick]|build"; exit 2 ;;
esac
probe || exit 3
build
if [ "$1" = bench ]; then
    shift
    environment
    exec "$python" -B benches/gpu.py "$@"
fi
if [ "$1" = test ]; then
    environment
    step "catalogue_d on the driver" "$out/catalogue_d" cuda --list
    step "threads on the driver" "$out/threads" cuda 200
    step "tensors that are recorded as ready" "$out/ready" cuda
    step "torch, CuPy and JAX" python_module
    step "the stand-in next to the driver" trace
else
    command -v compute-sanitizer >/dev/null || { echo "not run: compute-sanitizer is not installed"; exit 3; }
    export GPU_ROW_SECONDS=1200
    watch() {
        tool=$1
        shift
        step "compute-sanitizer $tool $*" compute-sanitizer --tool "$tool" --report-api-errors no --target-processes all --error-exitcode 9 \
            "$out/catalogue_d" cuda --list "$@"
    }
    # What the driver refuses is asked on purpose, and checked by the rows themselves.
    for tool in memcheck racecheck initcheck synccheck; do watch $tool D11; done
    watch memcheck
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
