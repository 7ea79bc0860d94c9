#!/usr/bin/env bash
# A demonstration of the library: built in release mode, found by a C and C++ project with CMake,
# and used from Python. Everything is written below target/. Only the first needs just Rust and a C
# compiler; missing programs for the others are named, and these are left out.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
quiet() { "$@" >target/demo.log 2>&1 || { cat target/demo.log; exit 1; }; }
has() { command -v "$1" >/dev/null; }
left_out() { echo "   left out: $1 not installed"; }
mkdir -p target

echo "== Building the release library"
quiet make build
ls -l "$(realpath target/lib/libdlpack_rs.so)" | awk '{print "   " $NF ": " $5 " bytes"}'

echo "== A C program (examples/c/hello.c)"
gcc examples/c/hello.c -Itarget/include -Ltarget/lib -ldlpack_rs -Wl,-rpath,"$PWD/target/lib" \
  -o target/hello
target/hello

echo "== A C and C++ project that finds it with CMake (examples/cmake_consumer)"
if has cmake && has make && has g++; then
  # The result of make build: without the Python module it would be built once more.
  quiet cmake -S . -B target/cmake -DDLPACK_RS_CARGO_TARGET_DIR="$PWD/target/module" \
    -DDLPACK_RS_CARGO_FLAGS=--features=module
  quiet cmake --build target/cmake
  quiet cmake -S examples/cmake_consumer -B target/demo -Ddlpack_rs_DIR="$PWD/target/cmake" \
    -Ddlpack_DIR="$PWD/target/cmake/stage/lib/cmake/dlpack"
  quiet cmake --build target/demo
  echo "-- hello_c, shared library"
  target/demo/hello_c
  echo "-- hello_cpp, static library"
  target/demo/hello_cpp
else
  left_out "cmake, make or g++"
fi

echo "== Python (examples/python)"
if python3 -c 'import venv, ensurepip' 2>/dev/null; then
  examples/python/demo.sh
else
  left_out "python3-venv"
fi
