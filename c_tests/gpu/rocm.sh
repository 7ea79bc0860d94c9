#!/bin/sh
# The device layer on a real AMD GPU: rocm.sh test|build|rehearse
#   test      the catalogue's rows, the threads and what is recorded for tensors: the same programs as
#             on the stand-ins
#   build     only builds, into target/rocm
#   rehearse  the same on the stand-in of HIP 6, to try this script where there is no GPU
# Without cargo and gcc what an earlier `rocm.sh build` left in target/rocm is used: so it also runs
# on a machine that has nothing but a driver and Python.
# Closes with "N passed, N failed", or "not run: ..." and exit status 3.
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
here=c_tests/gpu
out=target/rocm
programs="catalogue_d threads ready"
passed=0
failed=0
mkdir -p "$out/lib"

build() {
    if command -v cargo >/dev/null; then
        make -s build || exit 1
        # Copies that are no links: they may be carried to another machine.
        cp -L target/lib/libdlpack_rs.so "$out/lib/libdlpack_rs.so"
        ln -sf libdlpack_rs.so "$out/lib/$(basename "$(ls -d target/lib/libdlpack_rs.so.* | tail -n 1)")"
    fi
    [ -e "$out/lib/libdlpack_rs.so" ] || { echo "$out/lib/libdlpack_rs.so is missing: install cargo, or carry target/rocm here"; exit 1; }
    for name in $programs; do
        if command -v gcc >/dev/null; then
            gcc -std=gnu11 -g -O1 -Iinclude -Ic_tests "$here/$name.c" "$here/gpu.c" c_tests/harness.c \
                c_tests/inject.c -o "$out/$name" -L"$out/lib" -Wl,-rpath,'$ORIGIN/lib' -ldlpack_rs -lpthread -ldl || exit 1
        fi
        [ -x "$out/$name" ] || { echo "$out/$name is missing: apt-get install gcc, or rocm.sh build elsewhere"; exit 1; }
    done
}

# Whether there is a runtime with a device; says which, or why not.
probe() {
    "${PYTHON:-python3}" - "$1" <<'PROBE'
import ctypes, sys
for name in ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"):
    try:
        hip = ctypes.CDLL(name)
        break
    except OSError:
        pass
else:
    sys.exit("not run: no AMD runtime here (libamdhip64.so.7, .6, .5)")
count = ctypes.c_int()
code = hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count))
if code or count.value == 0:
    sys.exit(f"not run: {name} answers {code}, {count.value} devices")
if hasattr(hip, "standin_ctl") and sys.argv[1] != "rehearse":
    sys.exit(f"not run: {name} is the stand-in")
version = ctypes.c_int()
hip.hipRuntimeGetVersion(ctypes.byref(version))
print(f"{name}, version {version.value}: {count.value} device(s)")
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

case $1 in
build) build; exit ;;
test) ;;
rehearse)
    c_tests/standin/build.sh "$out/standin" || exit 1
    LD_LIBRARY_PATH=$root/$out/standin/hip6
    export LD_LIBRARY_PATH
    ;;
*) echo "usage: rocm.sh test|build|rehearse"; exit 2 ;;
esac
probe "$1" || exit 3
build
step "catalogue_d on the runtime" "$out/catalogue_d" rocm --list
step "threads on the runtime" "$out/threads" rocm 200
step "tensors that are recorded as ready" "$out/ready" rocm
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
