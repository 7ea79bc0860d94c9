#!/usr/bin/env bash
# Tests the wheel that wheel.sh has built: the laws of its library, then the package itself in a new
# environment that knows neither this checkout nor Rust. Prints how long an import takes.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
here=$PWD/target/wheel
wheel=$(ls "$here"/*.whl)
python=$(examples/python/venv.sh)
rm -rf "$here/unpacked" "$here/venv"
"$python" -m zipfile -e "$wheel" "$here/unpacked"
# The one file, by its SONAME; the laws look for the name that linkers do.
soname=$(crates/cdylib/soname.sh)
mkdir "$here/unpacked/lib"
ln -s "$here/unpacked/dlpack_rs/lib/$soname" "$here/unpacked/lib/libdlpack_rs.so"
c_tests/laws.sh include "$here/unpacked/lib" | tee "$here/laws"
root=$PWD

"$python" -m venv "$here/venv"
clean() { env -i PATH=/usr/bin:/bin HOME="$here/venv" "$@"; }
clean "$here/venv/bin/python" -m pip install --quiet --no-index --no-deps "$wheel"
"$here/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  -r examples/python/requirements.txt -r tests/python/requirements.txt

# What links against it: C and C++ by the compiler, both by CMake, with the wheel alone, and run in a
# folder of their own.
build=$here/linked
rm -rf "$build"
mkdir "$build"
cp examples/c/hello.c examples/cpp/hello.cpp "$build"
say() { (cd "$build" && clean "$here/venv/bin/python" -m dlpack_rs "$1"); }
linked() { # linked NAME PROGRAM EXPECTED: prints what it should, with the wheel's library
  "$2" | diff "$root/examples/expected/$3" -
  [ "$(ldd "$2" | sed -n "s/.*$soname => \(.*\) (.*/\1/p")" = "$(say library)" ]
  echo "pass  $1"
}
# shellcheck disable=SC2046 # several arguments
gcc -Wall -Werror "$build/hello.c" $(say cflags) $(say libs) -o "$build/hello_c"
linked "hello.c, linked against the wheel" "$build/hello_c" c-hello.txt
# shellcheck disable=SC2046
g++ -std=c++17 -Wall -Werror "$build/hello.cpp" $(say cflags) $(say libs) -o "$build/hello_cpp"
linked "hello.cpp, linked against the wheel" "$build/hello_cpp" cpp-hello.txt
cat >"$build/CMakeLists.txt" <<'E2'
cmake_minimum_required(VERSION 3.16)
project(linked LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(dlpack_rs 0.1 REQUIRED COMPONENTS shared)
add_executable(hello_c hello.c)
add_executable(hello_cpp hello.cpp)
target_link_libraries(hello_c PRIVATE dlpack_rs::dlpack_rs)
target_link_libraries(hello_cpp PRIVATE dlpack_rs::dlpack_rs)
E2
cmake -S "$build" -B "$build/b" -Ddlpack_rs_DIR="$(say cmakedir)" >"$build/log"
cmake --build "$build/b" >"$build/log"
linked "hello.c, found by CMake in the wheel" "$build/b/hello_c" c-hello.txt
linked "hello.cpp, found by CMake in the wheel" "$build/b/hello_cpp" cpp-hello.txt

cp tests/python/test_package.py tests/python/fakes.py tests/python/pyabi.py "$here/venv/"
cd "$here/venv"
clean bin/python -B -c '
import os, sys, dlpack_rs, numpy
assert dlpack_rs.__file__.startswith(sys.prefix), dlpack_rs.__file__
array = numpy.arange(6.0).reshape(2, 3)
tensor = dlpack_rs.from_dlpack(array)
back = numpy.from_dlpack(tensor)
assert tensor.data_ptr == array.ctypes.data == back.ctypes.data and (back == array).all()'
# Processor time: what else the machine does counts little.
clean bin/python - <<'E2'
import resource, subprocess, sys

def milliseconds(code):
    times = []
    for _ in range(30):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times) * 1000

bare = milliseconds("pass")
print(f"import dlpack_rs: {milliseconds('import dlpack_rs') - bare:.1f} ms over a bare interpreter "
      f"({bare:.1f} ms); with dlpack_rs.abi: {milliseconds('import dlpack_rs.abi') - bare:.1f} ms")
E2
clean bin/python -B -m pytest -q -p no:cacheprovider --noconftest --tb=short test_package.py |
  tee pytest.log
cat >smoke.py <<'E2'
import sys, dlpack_rs
tensor = dlpack_rs.empty((2, 3), "int16")
tensor.memoryview().cast("B")[:] = bytes(range(12))
again = dlpack_rs.from_dlpack(tensor)
assert again.data_ptr == tensor.data_ptr and again.tolist()[1][2] == 11 * 256 + 10
assert dlpack_rs.inspect(again).valid == "strictly"
assert "6 elements in 6 places" in again.layout() and "<svg" in again._repr_html_()
print("wheel: works on Python", sys.version.split()[0])
E2
pythons=0
for python in "$HOME"/.pyenv/versions/*/bin/python /usr/bin/python3.*[0-9]; do
  [ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
  clean "PYTHONPATH=$here/unpacked" "$python" -B smoke.py
  pythons=$((pythons + 1))
done
laws=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$here/laws")
echo "wheel: $((laws + 5 + pythons + $(sed -n 's/^\([0-9]*\) passed.*/\1/p' pytest.log))) passed, 0 failed"
