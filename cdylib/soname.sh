#!/bin/sh
# Prints the library's SONAME: it carries the version that the interface has, which is the major one
# and, before 1.0, the minor one too. (build.rs and cmake/names.cmake make the same of it.)
sed -n 's/^version = "\(0\.[0-9]*\|[1-9][0-9]*\)\..*/libdlpack_rs.so.\1/p' \
    "$(dirname "$0")/../Cargo.toml" | head -n 1
