#!/bin/sh
# Prints the library's SONAME: it contains the interface's version, which is the major one and,
# before 1.0, also the minor one. (build.rs and packaging/cmake/names.cmake compute the same.)
sed -n 's/^version = "\(0\.[0-9]*\|[1-9][0-9]*\)\..*/libdlpack_rs.so.\1/p' \
    "$(dirname "$0")/../../Cargo.toml" | head -n 1
