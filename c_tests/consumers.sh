#!/usr/bin/env bash
# Tests every way to find the library. Each row configures, builds and runs real programs:
#   {build tree, install tree, relocated prefix, DESTDIR} x {Ninja, Unix Makefiles} with
#   find_package, the same four trees with pkg-config, add_subdirectory with both generators;
#   each in C and C++, shared and static. Then checks for package managers.
# One line a row; ends with `N passed, N failed`. A failed row's output comes before its line.
set -uo pipefail
root=$(CDPATH='' cd "$(dirname "$0")/.." && pwd) || exit 1
missing=
for tool in cargo:cargo cmake:cmake ninja:ninja-build make:make pkg-config:pkg-config gcc:gcc \
    g++:g++ readelf:binutils; do
  command -v "${tool%:*}" >/dev/null || missing="$missing ${tool#*:}"
done
[ -z "$missing" ] || { echo "consumers.sh: missing tools: apt-get install$missing"; exit 1; }

# make takes a blank in a target for the end of a word.
case ${TMPDIR:-} in *[[:blank:]]*) export TMPDIR=/tmp ;; esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH DESTDIR CARGO_TARGET_DIR
passed=0 failed=0
row() { # row NAME COMMAND...: in a subshell that stops at the first failure
  local name=$1; shift
  (set -e; "$@") >"$work/log" 2>&1 # not as a condition: that would switch `set -e` off
  if [ $? -eq 0 ]; then # shellcheck disable=SC2181
    passed=$((passed + 1)); echo "pass  $name"
  else
    failed=$((failed + 1)); tail -n 25 "$work/log"; echo "FAIL  $name"
  fi
}
fails() { if "$@"; then echo "should have failed: $*"; return 1; fi; } # `set -e` ignores `!`
# Built once, for all rows, and for the other tests that need the library without the Python module.
cargo_dir=("-DDLPACK_RS_CARGO_TARGET_DIR=$root/target" "-DDLPACK_RS_CARGO=$(command -v cargo)")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
soname=$("$root/crates/cdylib/soname.sh")

# ---- the trees --------------------------------------------------------------------------------
make_trees() {
  cmake -S "$root" -B "$work/build" -G Ninja "${cargo_dir[@]}"
  cmake --build "$work/build"
  cmake --install "$work/build" --prefix "$work/installed"
  DESTDIR=$work/destdir cmake --install "$work/build" --prefix /opt/dlrs
  cmake --install "$work/build" --prefix "$work/first"
  mv "$work/first" "$work/moved"
}
# Not through row(): when this fails every row would.
(set -e; make_trees) >"$work/log" 2>&1
if [ $? -ne 0 ]; then # shellcheck disable=SC2181
  cat "$work/log"; echo "consumers: 0 passed, 1 failed (the library does not build)"; exit 1
fi
declare -A prefix=([build]=$work/build/stage [install]=$work/installed
  [relocated]=$work/moved [destdir]=$work/destdir/opt/dlrs)

# ---- runs of the programs ---------------------------------------------------------------------
needs_library() { readelf -d "$1" | grep -F NEEDED | grep -F libdlpack_rs; }
run_programs() { # run_programs DIR LIBDIR: four programs; the shared ones must use that LIBDIR
  local dir=$1 libdir program
  libdir=$(realpath "$2")
  for program in hello_c hello_c_static; do
    "$dir/$program" | diff "$root/examples/expected/c-hello.txt" -
  done
  for program in hello_cpp hello_cpp_shared; do
    "$dir/$program" | diff "$root/examples/expected/cpp-hello.txt" -
  done
  for program in hello_c hello_cpp_shared; do
    needs_library "$dir/$program" | grep -F "[$soname]"
    ldd "$dir/$program" | grep -F "$soname => " # resolved at all
    [ "$(realpath "$(dirname "$(ldd "$dir/$program" | sed -n "s/.*$soname => \(.*\) (.*/\1/p")")")" \
      = "$libdir" ]
  done
  for program in hello_c_static hello_cpp; do
    fails needs_library "$dir/$program"
  done
}

find_package() { # TREE GENERATOR
  local dir=$work/cmake-$1-${2// /}
  cmake -S "$root/examples/cmake_consumer" -B "$dir" -G "$2" -DCMAKE_PREFIX_PATH="${prefix[$1]}"
  cmake --build "$dir"
  run_programs "$dir" "${prefix[$1]}/lib"
}
use_pkg_config() { # TREE
  local dir=$work/pkgconfig-$1
  mkdir "$dir"
  PKG_CONFIG_PATH=${prefix[$1]}/lib/pkgconfig \
    make -C "$root/examples/pkgconfig_consumer" OUT="$dir"
  run_programs "$dir" "${prefix[$1]}/lib"
}
add_subdirectory() { # GENERATOR
  local dir=$work/sub-${1// /}
  cmake -S "$root/examples/subdirectory_consumer" -B "$dir" -G "$1" "${cargo_dir[@]}"
  cmake --build "$dir"
  run_programs "$dir" "$dir/dlpack_rs/stage/lib"
  # A build without changes links nothing.
  local before; before=$(stat -c %Y.%y "$dir/hello_c" "$dir/hello_c_static")
  cmake --build "$dir"
  [ "$before" = "$(stat -c %Y.%y "$dir/hello_c" "$dir/hello_c_static")" ]
}

for tree in build install relocated destdir; do
  for generator in Ninja "Unix Makefiles"; do
    row "find_package, $tree tree, $generator" find_package "$tree" "$generator"
  done
  row "pkg-config, $tree tree" use_pkg_config "$tree"
done
for generator in Ninja "Unix Makefiles"; do
  row "add_subdirectory, $generator" add_subdirectory "$generator"
done

# ---- options and errors -----------------------------------------------------------------------
consumer() { cmake -S "$root/examples/cmake_consumer" -B "$work/$1" -G Ninja "${@:2}"; }
static_by_option() {
  consumer static -DCMAKE_PREFIX_PATH="$work/installed" -DDLPACK_RS_USE_STATIC=ON
  cmake --build "$work/static" --target hello_c
  "$work/static/hello_c" | diff "$root/examples/expected/c-hello.txt" -
  fails needs_library "$work/static/hello_c"
}
build_directory_itself() { # dlpack_rs_DIR may name the build tree
  consumer by_dir -Ddlpack_rs_DIR="$work/build" -Ddlpack_DIR="$work/build/stage/lib/cmake/dlpack"
}
versions() { # 0.x: another minor version is another interface; DLPack 1.x is one
  mkdir "$work/versions"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(v LANGUAGES NONE)' \
    'find_package(dlpack_rs ${WANT} CONFIG REQUIRED)' 'find_package(dlpack ${DL} CONFIG REQUIRED)' \
    >"$work/versions/CMakeLists.txt"
  local ask="cmake -S $work/versions -DCMAKE_PREFIX_PATH=$work/installed"
  $ask -B "$work/v1" -DWANT="$version" -DDL=1.3
  fails $ask -B "$work/v2" -DWANT=99.0 -DDL=1.3
  fails $ask -B "$work/v3" -DWANT="${version%.*}.9999" -DDL=1.3
  fails $ask -B "$work/v4" -DWANT="$version" -DDL=2.0
  # The message lists the accepted range.
  $ask -B "$work/v5" -DWANT="0.1...<1" -DDL="1.0...<2"
  $ask -B "$work/v6" -DWANT="0.0.1...$version" -DDL="0.8...2"
  fails $ask -B "$work/v7" -DWANT="0.0.1...<$version" -DDL=1.3
  fails $ask -B "$work/v8" -DWANT="99.0...100" -DDL=1.3
  [ "$(PKG_CONFIG_PATH=$work/installed/lib/pkgconfig pkg-config --modversion dlpack_rs)" = "$version" ]
}
old_policies() { # a project that was written for an old CMake
  mkdir "$work/old"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.1)' 'project(o C)' 'enable_testing()' \
    'find_package(dlpack_rs REQUIRED)' 'dlpack_rs_test_layout(layout HEADER dlpack/dlpack.h' \
    '  LINK_LIBRARIES dlpack_rs::dlpack_rs)' >"$work/old/CMakeLists.txt"
  # CMake 4 accepts no such old version without the last argument.
  cmake -S "$work/old" -B "$work/old/b" -DCMAKE_PREFIX_PATH="$work/installed" \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5
  (cd "$work/old/b" && ctest --output-on-failure)
}
components() { # what is missing is said in one sentence
  mkdir "$work/components"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(c LANGUAGES NONE)' \
    'find_package(dlpack_rs REQUIRED COMPONENTS shared print teleport)' \
    >"$work/components/CMakeLists.txt"
  fails cmake -S "$work/components" -B "$work/components/b" \
    -DCMAKE_PREFIX_PATH="$work/installed" 2>"$work/said"
  tr -s ' \n' '  ' <"$work/said" | grep -F "has no teleport here: it has the libraries that are"
}
system_dlpack() { # our dlpack.h left out: upstream's folder is found by CMake and pkg-config
  local folder="$work/system/in clude" # with a blank
  mkdir -p "$folder/dlpack"
  cp "$root/include/dlpack.h" "$folder/dlpack/"
  cmake -S "$root" -B "$work/without" -G Ninja "${cargo_dir[@]}" -DDLPACK_RS_INSTALL_DLPACK_H=OFF \
    -DDLPACK_RS_SYSTEM_DLPACK="$folder"
  cmake --build "$work/without"
  cmake --install "$work/without" --prefix "$work/bare"
  [ ! -e "$work/bare/include/dlpack/dlpack.h" ]
  [ ! -e "$work/bare/lib/cmake/dlpack" ]
  mkdir "$work/pkgconfig-bare"
  PKG_CONFIG_PATH=$work/bare/lib/pkgconfig \
    make -C "$root/examples/pkgconfig_consumer" OUT="$work/pkgconfig-bare"
  run_programs "$work/pkgconfig-bare" "$work/bare/lib"
  sed '/find_package(dlpack 1/,$d' "$root/examples/cmake_consumer/CMakeLists.txt" |
    sed "s|\.\./\([^ )]*\)|\"$root/examples/\1\"|" >"$work/system/CMakeLists.txt"
  cmake -S "$work/system" -B "$work/system/b" -G Ninja -DCMAKE_PREFIX_PATH="$work/bare"
  cmake --build "$work/system/b"
  run_programs "$work/system/b" "$work/bare/lib"
  # None found, or one that is too old: fails with a remedy.
  echo '#define DLPACK_VERSION 60' >"$folder/dlpack/dlpack.h"
  fails cmake -S "$root" -B "$work/old" -DDLPACK_RS_INSTALL_DLPACK_H=OFF \
    -DDLPACK_RS_SYSTEM_DLPACK="$folder" 2>"$work/said"
  grep -F libdlpack-dev "$work/said"
}
folders() { # folders LIBDIR INCLUDEDIR [CMAKE-ARGUMENT...]: a prefix with a blank, a strict umask
  local at=$work/folders to="$work/folders/to here" found flags
  rm -rf "$at"
  cmake -S "$root" -B "$at/b" -G Ninja "${cargo_dir[@]}" -DCMAKE_INSTALL_PREFIX="$to" \
    -DCMAKE_INSTALL_LIBDIR="${1/PREFIX/$to}" -DCMAKE_INSTALL_INCLUDEDIR="${2/PREFIX/$to}" "${@:3}"
  cmake --build "$at/b"
  (umask 077; cmake --install "$at/b")
  [ -z "$(find "$to" -type f ! -perm -444)" ] # folders follow the umask, as with any CMake project
  mv "$at/b" "$at/built" # from here on, only what is installed
  found=$(dirname "$(find "$to" -name dlpack_rsConfig.cmake)")
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(f LANGUAGES C)' \
    'find_package(dlpack_rs REQUIRED)' 'foreach(kind shared static)' \
    "add_executable(\${kind} \"$root/examples/c/hello.c\")" \
    'target_link_libraries(${kind} PRIVATE dlpack_rs::dlpack_rs_${kind})' \
    'endforeach()' >"$at/CMakeLists.txt"
  cmake -S "$at" -B "$at/c" -G Ninja -Ddlpack_rs_DIR="$found"
  cmake --build "$at/c"
  flags=$(PKG_CONFIG_PATH=$found/../../pkgconfig pkg-config --cflags --libs dlpack_rs)
  # pkg-config quotes for a shell.
  eval "gcc '$root/examples/c/hello.c' $flags -Wl,-rpath,'$found/../..' -o '$at/hello'"
  for program in "$at/c/shared" "$at/c/static" "$at/hello"; do
    "$program" | diff "$root/examples/expected/c-hello.txt" -
  done
}
own_dlpack_target() { # a project that has a dlpack::dlpack keeps its own
  mkdir "$work/own"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(own LANGUAGES NONE)' \
    'add_library(dlpack::dlpack INTERFACE IMPORTED)' 'find_package(dlpack REQUIRED)' \
    'get_target_property(found dlpack::dlpack INTERFACE_INCLUDE_DIRECTORIES)' \
    'if(found)' 'message(FATAL_ERROR "${found}")' 'endif()' >"$work/own/CMakeLists.txt"
  cmake -S "$work/own" -B "$work/own/b" -DCMAKE_PREFIX_PATH="$work/installed"
}
refuses() { # refuses TEXT CMAKE-ARGUMENT...
  local text=$1; shift
  rm -rf "$work/refused"
  fails cmake -S "$root" -B "$work/refused" -G Ninja "$@" 2>"$work/said"
  tr -s ' \n' '  ' <"$work/said" | tee "$work/flat"
  grep -qF "$text" "$work/flat"
}
found_cargo() {
  mkdir -p "$work/home/.cargo/bin" "$work/on_path"
  printf '#!/bin/sh\necho "cargo 1.99.0"; echo "host: here"\n' | tee "$work/on_path/cargo" \
    >"$work/home/.cargo/bin/cargo"
  chmod +x "$work/on_path/cargo" "$work/home/.cargo/bin/cargo"
  (unset CARGO_HOME; HOME=$work PATH=$work/on_path:$PATH cmake -S "$root" -B "$work/on" -G Ninja)
  grep -x "DLPACK_RS_CARGO:FILEPATH=$work/on_path/cargo" "$work/on/CMakeCache.txt"
  (unset CARGO_HOME; HOME=$work/home cmake -S "$root" -B "$work/in" -G Ninja)
  grep -x "DLPACK_RS_CARGO:FILEPATH=$work/home/.cargo/bin/cargo" "$work/in/CMakeCache.txt"
}
no_cargo() { # as if it were nowhere
  HOME=$work CARGO_HOME=$work refuses "cargo was not found. Install Rust" \
    -DCMAKE_C_COMPILER="$(command -v gcc)" -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
    -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF
}
fake_cargo() {
  printf '#!/bin/sh\necho "cargo 1.63.0"\n' >"$work/old-cargo"; chmod +x "$work/old-cargo"
  refuses "1.63.0, too old. Install Rust" -DDLPACK_RS_CARGO="$work/old-cargo"
}
cross_linker() { # the target reaches cargo, and the C compiler is its linker
  cat >"$work/cross-cargo" <<'SH'
#!/bin/sh
[ "$1" = --version ] && { echo "cargo 1.99.0"; exit; }
echo "$* LINKER=$CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"; exit 1
SH
  chmod +x "$work/cross-cargo"
  cmake -S "$root" -B "$work/cross" -G Ninja -DDLPACK_RS_CARGO="$work/cross-cargo" \
    -DDLPACK_RS_CARGO_TARGET=aarch64-unknown-linux-gnu -DDLPACK_RS_CARGO_FLAGS="--offline;-v"
  fails cmake --build "$work/cross" >"$work/said"
  grep -F -e "--target aarch64-unknown-linux-gnu --offline -v LINKER=/" "$work/said"
  # A clang for all targets, and the target's root, are passed to the linker too.
  cmake -S "$root" -B "$work/cross_root" -G Ninja -DDLPACK_RS_CARGO="$work/cross-cargo" \
    -DDLPACK_RS_CARGO_TARGET=aarch64-unknown-linux-gnu -DCMAKE_SYSROOT=/
  fails cmake --build "$work/cross_root" >"$work/said"
  grep -F -e "rustflags=['-Clink-arg=--sysroot=/'] LINKER=/" "$work/said"
}
# cargo's output folder for another target, or another profile, is not guessed.
other_target() { # CARGO_BUILD_TARGET, or build.target in cargo's configuration
  local host; host=$(cargo -vV | sed -n 's/^host: //p')
  local target=$work/copy/target/module # with the Python module, as `make build`
  mkdir -p "$target/release"
  # Without files that other tests may be writing at the moment.
  (cd "$root" && tar c --exclude={./target,./.git,./fuzz/corpus,./fuzz/artifacts} .) |
    tar x -C "$work/copy"
  # The sources are elsewhere now: the first library is an older one to the second.
  echo old >"$target/release/libdlpack_rs.so"
  echo old >"$target/release/libdlpack_rs.a"
  CARGO_BUILD_TARGET=$host make -C "$work/copy" build
  readelf -d "$work/copy/target/lib/libdlpack_rs.so" | grep -F "[$soname]"
  nm "$work/copy/target/lib/libdlpack_rs.a" | grep -F dlrs_version
  CARGO_BUILD_TARGET=none cmake -S "$work/copy" -B "$work/copy/b" -G Ninja \
    -DDLPACK_RS_CARGO_TARGET_DIR="$target" -DDLPACK_RS_CARGO_FLAGS=--features=module
  CARGO_BUILD_TARGET=none cmake --build "$work/copy/b"
  cmp "$work/copy/target/lib/libdlpack_rs.so" "$work/copy/b/stage/lib/libdlpack_rs.so"
}
quoted() { # a prefix and a DESTDIR with a blank
  make -n -C "$root" install PREFIX="/a b" DESTDIR="/c d" CARGO=true >"$work/said"
  grep -F -e '-DCMAKE_INSTALL_PREFIX="/a b"' "$work/said"
  grep -F 'DESTDIR="/c d" cmake' "$work/said"
}
embedded() { # in a project that scikit-build builds for a wheel: that one's files and no others
  mkdir -p "$work/embedding"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(e LANGUAGES C)' \
    "add_subdirectory(\"$root\" dlpack_rs)" 'add_library(ext MODULE ext.c)' \
    'target_link_libraries(ext PRIVATE dlpack_rs::dlpack_rs_static)' \
    'install(TARGETS ext LIBRARY DESTINATION ext)' >"$work/embedding/CMakeLists.txt"
  printf '#include <dlpack/dlpack_rs.h>\nint own(void) { return (int)dlrs_version(); }\n' \
    >"$work/embedding/ext.c"
  cmake -S "$work/embedding" -B "$work/embedding/b" -G Ninja -DSKBUILD=2 "${cargo_dir[@]}"
  cmake --build "$work/embedding/b"
  cmake --install "$work/embedding/b" --prefix "$work/embedding/installed"
  [ "$(CDPATH='' cd "$work/embedding/installed" && find . ! -type d)" = ./ext/libext.so ]
  fails sh -c "nm -D '$work/embedding/installed/ext/libext.so' | grep dlrs_"
}
subproject() { # installs what its programs need to run, and nothing else of ours
  mkdir -p "$work/subproject"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(s LANGUAGES C)' \
    'include(FetchContent)' "FetchContent_Declare(dlpack_rs SOURCE_DIR \"$root\")" \
    'FetchContent_MakeAvailable(dlpack_rs)' "add_executable(hello \"$root/examples/c/hello.c\")" \
    'target_link_libraries(hello PRIVATE dlpack_rs::dlpack_rs)' \
    'set_property(TARGET hello PROPERTY INSTALL_RPATH "$ORIGIN/../lib")' \
    'install(TARGETS hello RUNTIME DESTINATION bin)' >"$work/subproject/CMakeLists.txt"
  local b=$work/subproject/b to=$work/subproject/installed
  cmake -S "$work/subproject" -B "$b" -G Ninja "${cargo_dir[@]}"
  cmake --build "$b"
  cmake --install "$b" --prefix "$to"
  rm -r "$b"
  "$to/bin/hello" | diff "$root/examples/expected/c-hello.txt" -
  (cd "$to" && find . ! -type d | sort) | tee "$work/found"
  printf '%s\n' ./bin/hello "./lib/$soname" "./lib/libdlpack_rs.so.$version" | sort |
    diff - "$work/found"
}
overriding() { # FetchContent in place of find_package: the same variables and components
  mkdir -p "$work/overriding"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.24)' 'project(o LANGUAGES C)' \
    'include(FetchContent)' \
    "FetchContent_Declare(dlpack_rs SOURCE_DIR \"$root\" OVERRIDE_FIND_PACKAGE)" \
    'find_package(dlpack_rs REQUIRED COMPONENTS static print)' \
    'message(STATUS "has ${dlpack_rs_VERSION} ${dlpack_rs_FEATURES}")' \
    'find_package(dlpack_rs REQUIRED COMPONENTS ${WANT})' >"$work/overriding/CMakeLists.txt"
  local ask="cmake -S $work/overriding"
  $ask -B "$work/overriding/b" -DWANT=cuda | grep -F "has $version cuda;rocm;python"
  fails $ask -B "$work/overriding/c" -DWANT=teleport
}
readme() { # its program compiles as it stands there
  mkdir "$work/readme"
  sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '/^```/d' >"$work/readme/hello.c"
  grep -q 'int main' "$work/readme/hello.c"
  # shellcheck disable=SC2046 # several arguments
  gcc -Wall -Werror "$work/readme/hello.c" -o "$work/readme/hello" \
    $(PKG_CONFIG_PATH=$work/installed/lib/pkgconfig pkg-config --cflags --libs dlpack_rs)
  LD_LIBRARY_PATH=$work/installed/lib "$work/readme/hello" |
    diff "$root/examples/expected/c-hello.txt" -
}
static_exports() { # a shared library that hands the interface on
  cmake -S "$root" -B "$work/exporting" -G Ninja "${cargo_dir[@]}" -DDLPACK_RS_STATIC_EXPORTS=ON
  cmake --build "$work/exporting"
  gcc -shared -Wl,--whole-archive "$work/exporting/stage/lib/libdlpack_rs.a" \
    -Wl,--no-whole-archive -o "$work/exporting/all.so"
  nm -D --defined-only "$work/exporting/all.so" | awk '{ print $3 }' | sort |
    diff <("$root/crates/cdylib/exports.sh") -
}

laws() { "$root/c_tests/laws.sh" "$root/include" "$work/installed/lib"; }
from_python() { # no extension module; the C ABI, with Python's objects too
  env DLPACK_RS_LIBRARY="$work/installed/lib/libdlpack_rs.so" PYTHONPATH="$root/python" \
    python3 -B "$root/c_tests/without_module.py"
}

row "the laws of the library without the Python module" laws
row "Python without the module: dlpack_rs.abi, and a word on the rest" from_python
row "DLPACK_RS_USE_STATIC chooses the static library" static_by_option
row "dlpack_rs_DIR names the build tree" build_directory_itself
row "versions: what is compatible is found, the rest is refused" versions
row "a component that is missing: said" components
row "a project with the policies of an old CMake" old_policies
for feature in CUDA cuda2 -cuda all module "cast no"; do
  row "the feature \"$feature\": refused" refuses "which is none of: cuda rocm python" \
    "-DDLPACK_RS_FEATURES=$feature"
done
row "dlpack.h left to the system" system_dlpack
for libdir in lib "my lib" lib/../lib64 lib/x86_64-linux-gnu PREFIX/lib .; do
  row "installed in $libdir, from a prefix with a blank" folders "$libdir" include
done
for includedir in "my include" PREFIX/inc .; do
  row "headers in $includedir, from a prefix with a blank" folders "my lib" "$includedir"
done
for libdir in ../lib /elsewhere/lib; do
  row "a libdir outside the prefix: refused" refuses "INSTALL_LIBDIR must be below the prefix" \
    "-DCMAKE_INSTALL_LIBDIR=$libdir"
done
row "a project's own dlpack::dlpack stays" own_dlpack_target
row "cargo: rustup's in the home, then PATH's; not CARGO_HOME's where that is not set" found_cargo
row "no cargo: says what to install" no_cargo
row "cargo too old: says what to install" fake_cargo
row "cross-compiling without a target: says what to set" refuses "set DLPACK_RS_CARGO_TARGET" \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
row "cross-compiling: target, flags and linker reach cargo" cross_linker
row "a target out of cargo's configuration" other_target
row "a profile among cargo's flags: refused" refuses "DLPACK_RS_CARGO_FLAGS has --profile" \
  -DDLPACK_RS_CARGO_FLAGS="--profile=dev"
row "systems that are not packaged for: refused" refuses "Linux and Windows, not for FreeBSD" \
  -DCMAKE_SYSTEM_NAME=FreeBSD
row "make install: paths with blanks" quoted
row "within another project's wheel: none of our files" embedded
row "a subproject's installed program runs" subproject
row "FetchContent in place of find_package" overriding
row "the README's program, as it stands there" readme
row "DLPACK_RS_STATIC_EXPORTS: visible again" static_exports

# ---- installed files --------------------------------------------------------------------------
layout() {
  local headers
  mapfile -t headers < <(cd "$root/include" && printf '%s\n' *.h *.hpp)
  (cd "$work/destdir/opt/dlrs" && find . ! -type d ! -path './share/*' | sort) >"$work/found"
  printf '%s\n' "${headers[@]/#/./include/dlpack/}" \
    ./lib/cmake/dlpack_rs/{dlpack_rsLayout.cmake,layout_check.c} \
    ./lib/cmake/dlpack_rs/dlpack_rs{Config,ConfigVersion,Targets}.cmake \
    ./lib/cmake/dlpack/dlpack{Config,ConfigVersion}.cmake ./lib/pkgconfig/dlpack_rs.pc \
    ./lib/libdlpack_rs.{a,so} ./lib/"$soname" ./lib/libdlpack_rs.so."$version" |
    sort | diff - "$work/found"
}
names() { # a real file with the full version, links to it, and the SONAME in it
  cd "$work/installed/lib"
  [ ! -L "libdlpack_rs.so.$version" ]
  [ -x "libdlpack_rs.so.$version" ]
  [ "$(readlink "$soname")" = "libdlpack_rs.so.$version" ]
  [ -L libdlpack_rs.so ]
  [ "$(realpath libdlpack_rs.so)" = "$PWD/libdlpack_rs.so.$version" ]
  readelf -d libdlpack_rs.so | grep -F "soname: [$soname]"
}
stripped() { fails grep -w .symtab <(readelf -SW "$work/installed/lib/$soname"); }
no_paths() { # relocatable: no file says where it was built or installed
  fails grep -rIlF -e "$work" -e "$root" "$work/installed"
}
static_libs() { # Libs.private is what rustc says
  (cd "$root" && cargo rustc --release --locked -p dlpack_rs_cdylib --crate-type staticlib \
    --target-dir "$work/cargo" -- --print native-static-libs) 2>&1 | tee "$work/said"
  local said; said=$(sed -n 's/^note: native-static-libs: //p' "$work/said")
  echo "$said"
  [ -n "$said" ]
  grep -x "Libs.private: $said" "$work/installed/lib/pkgconfig/dlpack_rs.pc"
}
row "installed files are exactly these" layout
row "file names, links and SONAME" names
row "the installed library is stripped" stripped
row "no installed file names a build folder" no_paths
row "Libs.private is what rustc says" static_libs

echo "consumers: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
