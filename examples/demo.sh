#!/usr/bin/env bash
# The library at work: built in release mode, found by a C and C++ project with CMake, and used from
# Python. Everything goes below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
quiet() { "$@" >target/demo.log 2>&1 || { cat target/demo.log; exit 1; }; }
mkdir -p target

echo "== Building the release library"
quiet make build
ls -l "$(realpath target/lib/libdlpack_rs.so)" | awk '{print "   " $NF ": " $5 " bytes"}'

echo "== A C and C++ project that finds it with CMake (examples/cmake_consumer)"
quiet cmake -S . -B target/cmake -DDLPACK_RS_CARGO_TARGET_DIR="$PWD/target"
quiet cmake --build target/cmake
quiet cmake -S examples/cmake_consumer -B target/demo -Ddlpack_rs_DIR="$PWD/target/cmake" \
  -Ddlpack_DIR="$PWD/target/cmake/stage/lib/cmake/dlpack"
quiet cmake --build target/demo
echo "-- hello_c, shared library"
target/demo/hello_c
echo "-- hello_cpp, static library"
target/demo/hello_cpp

if [ -x examples/python/demo.sh ]; then
  echo "== Python (examples/python)"
  examples/python/demo.sh
fi
