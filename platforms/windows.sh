#!/usr/bin/env bash
# The library for Windows and the C and C++ tests with it, run by wine. Wine is not Windows: what
# passes here has been seen to work with wine's loader, threads and C run-time only. Each test
# program is linked, delay-loaded, and loaded by LoadLibrary. For a file of c_tests/ that Windows
# needs otherwise, c_tests/windows/ has one of the same name. One line a row; ends with
# `windows: N passed, N failed`.
. "$(dirname "$0")/common.sh"

triple=x86_64-pc-windows-gnu gnu=x86_64-w64-mingw32
out=$target_dir/windows
export WINEPREFIX=${WINEPREFIX:-$target_dir/wine} WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="

in_wine() { (cd "$out" && "$wine" "$@"); }

make_library() {
  build $triple $gnu-gcc
  mkdir -p "$out"
  cp "$target_dir/$triple/release/dlpack_rs.dll" "$target_dir/$triple/release/libdlpack_rs.dll.a" \
    "$target_dir/$triple/release/libdlpack_rs.a" "$out/"
  cp "$out/dlpack_rs.dll" "$out/copy.dll"
}
# The list of exports in the form that dlltool, lib.exe and llvm-lib read.
make_def() {
  { echo "LIBRARY dlpack_rs.dll"; echo EXPORTS; sed 's/^/  /' include/exports.txt; } \
    >"$out/dlpack_rs.def"
  $gnu-dlltool -d "$out/dlpack_rs.def" -D dlpack_rs.dll -y "$out/libdlpack_rs_delay.a"
}
exported() {
  $gnu-objdump -p "$out/dlpack_rs.dll" | sed -n '/Ordinal\/Name Pointer/,/^$/s/.*\] //p' |
    grep -v '^Table$' | sort | diff include/exports.txt -
}
# Law 6: these names and no others; no thread-local storage; nothing runs when it is loaded.
lean() {
  $gnu-objdump -p "$out/dlpack_rs.dll" >"$out/headers.txt"
  sed -n 's/^\t[0-9a-f]\+\t \+[0-9]\+ \+\([A-Za-z_]\w*\).*/\1/p' "$out/headers.txt" | sort \
    >"$out/imports.txt"
  printf '%s\n' CloseHandle CreateThread GetActiveProcessorCount GetCurrentProcess \
    GetModuleHandleExW GetProcAddress GetProcessAffinityMask LoadLibraryExW LoadLibraryW \
    WaitForSingleObject calloc free malloc memcmp memcpy memmove memset | sort |
    comm -13 - "$out/imports.txt" >"$out/unexpected.txt"
  cat "$out/imports.txt"
  [ ! -s "$out/unexpected.txt" ]
  grep -E '^AddressOfEntryPoint\s+0+$' "$out/headers.txt"
  grep -E '^Entry 9 0+ 0+ Thread' "$out/headers.txt"
  grep HIGH_ENTROPY_VA "$out/headers.txt"
  grep DYNAMIC_BASE "$out/headers.txt"
  grep NX_COMPAT "$out/headers.txt"
}
layouts() { # every offset, as constants, seen by the target's C and C++
  local header
  for header in dlpack.h dlpack_rs.h; do
    $gnu-gcc -std=c11 -Wall -Wextra -Werror -pedantic -fsyntax-only -include stddef.h \
      -include stdint.h -Iinclude -DHEADER="\"$header\"" c_tests/headers/layout.c
    $gnu-g++ -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -include stddef.h \
      -include stdint.h -Iinclude -DHEADER="\"$header\"" c_tests/headers/layout.c
  done
}
imports_marked() { # dlpack_rs.h marks functions for import, and leaves dlpack.h's macro alone
  local preprocess="$gnu-gcc -E -Iinclude -include dlpack_rs.h -xc /dev/null"
  $preprocess | grep -cE 'dllimport.*dlrs_version\(void\)'
  $preprocess -dM | grep '^#define DLPACK_DLL __declspec(dllimport)'
  if grep -n DLPACK_DLL include/dlpack_rs.h; then return 1; fi
  if $preprocess -DDLRS_STATIC | grep -E 'dllimport.*dlrs_'; then return 1; fi
}

flags=(-O2 -Wall -Werror -D__USE_MINGW_ANSI_STDIO=1 -Ic_tests/windows -Iinclude "-I$tests")
compile_parts() {
  local part own
  for part in $(parts); do
    own=c_tests/windows/$(basename "$part")
    [ ! -e "$own" ] || part=$own
    $gnu-gcc -std=gnu11 "${flags[@]}" -c "$part" -o "$out/$(basename "$part" .c).o"
  done
  rm -f "$out/libparts.a"
  (cd "$out" && $gnu-ar rcs libparts.a $(parts | sed 's|.*/\(.*\)\.c|\1.o|'))
  # LoadLibrary: what the linker would have filled in is filled in by hand.
  { echo '#define WIN32_LEAN_AND_MEAN'
    echo '#include <windows.h>'
    sed 's/.*/void *__imp_&;/' include/exports.txt
    echo 'static void *need(HMODULE m, const char *name) {'
    echo '  void *found = (void *)GetProcAddress(m, name);'
    echo '  if (found == NULL) ExitProcess(99);'
    echo '  return found;'
    echo '}'
    echo '__attribute__((constructor)) static void load(void) {'
    echo '  HMODULE m = LoadLibraryA("dlpack_rs.dll");'
    echo '  if (m == NULL) ExitProcess(98);'
    sed 's/.*/  __imp_& = need(m, "&");/' include/exports.txt
    echo '}'; } >"$out/loader.c"
  $gnu-gcc -O1 -c "$out/loader.c" -o "$out/loader.o"
}
wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
uses_dll() { $gnu-objdump -p "$1" | grep -F 'DLL Name: dlpack_rs.dll'; }
program() { # program MODE SOURCE
  local name compiler=$gnu-gcc standard=gnu11 library wrapped=$wrap
  name=$(basename "$2"); name=${name%.*}
  local exe=$out/$name-$1.exe
  case $1 in
    linked) library=$out/libdlpack_rs.dll.a ;;
    delayed) library="$out/libdlpack_rs_delay.a -ldelayimp" ;;
    loaded) library=$out/loader.o ;;
  esac
  # C++ allocates in a library of its own.
  case $2 in *.cpp) compiler=$gnu-g++ standard=c++17 wrapped= ;; esac
  grep -qF harness.h "$2" || wrapped=
  # shellcheck disable=SC2086
  $compiler -std=$standard "${flags[@]}" "$2" -o "$exe" ${wrapped:+$wrapped} \
    -L"$out" -lparts $library -static -lpthread
  case $1 in
    linked) uses_dll "$exe" ;;
    *) if uses_dll "$exe"; then return 1; fi ;;
  esac
  # shellcheck disable=SC2046 # the arguments are words
  case $name in
    test_platform) in_wine "$exe" copy.dll ;;
    *) in_wine "$exe" $(arguments "$name") ;;
  esac
}
static_program() { # the static library, and no DLL beside it
  $gnu-gcc -std=gnu11 "${flags[@]}" -DDLRS_STATIC "$1" -o "$out/static.exe" -L"$out" \
    "$out/libdlpack_rs.a" -static
  if uses_dll "$out/static.exe"; then return 1; fi
  in_wine "$out/static.exe"
}
lifecycle() { # loads the library itself
  $gnu-gcc -std=gnu11 "${flags[@]}" c_tests/windows/lifecycle.c -o "$out/lifecycle.exe"
  in_wine "$out/lifecycle.exe" dlpack_rs.dll copy.dll
}

# Installed by CMake with the toolchain file, found by another project, run with the DLL beside it.
cmake_package() {
  local toolchain=-DCMAKE_TOOLCHAIN_FILE=$root/cmake/mingw-toolchain.cmake program name
  rm -rf "$out/cmake" "$out/package" "$out/consumer"
  cmake -S . -B "$out/cmake" -G Ninja "$toolchain" -DDLPACK_RS_CARGO="$cargo" \
    -DDLPACK_RS_CARGO_FLAGS=-Zbuild-std=core -DDLPACK_RS_CARGO_TARGET_DIR="$target_dir"
  cmake --build "$out/cmake"
  cmake --install "$out/cmake" --prefix "$out/package"
  cmake -S examples/cmake_consumer -B "$out/consumer" -G Ninja "$toolchain" \
    -DCMAKE_PREFIX_PATH="$out/package"
  cmake --build "$out/consumer"
  cp "$out/package/bin/dlpack_rs.dll" "$out/consumer/"
  for program in hello_c:c hello_c_static:c hello_cpp:cpp hello_cpp_shared:cpp; do
    name=${program%:*}
    in_wine "$out/consumer/$name.exe" | tr -d '\r' |
      diff "examples/expected/${program#*:}-hello.txt" -
  done
  uses_dll "$out/consumer/hello_c.exe"
  if uses_dll "$out/consumer/hello_c_static.exe"; then return 1; fi
}

# What can be said about Microsoft's compiler without it.
msvc_compiles() { build x86_64-pc-windows-msvc link.exe check; }
msvc_layouts() { # by clang's idea of its ABI
  local header
  for header in dlpack.h dlpack_rs.h; do
    clang --target=x86_64-pc-windows-msvc -ffreestanding -std=c11 -Wall -Wextra -Werror \
      -fsyntax-only -include stddef.h -include stdint.h -Iinclude -DHEADER="\"$header\"" \
      c_tests/headers/layout.c
    clang --target=x86_64-pc-windows-msvc -ffreestanding -x c++ -std=c++17 -Wall -Wextra -Werror \
      -fsyntax-only -include stddef.h -include stdint.h -Iinclude -DHEADER="\"$header\"" \
      c_tests/headers/layout.c
  done
}

find_rust
for wine in "${WINE:-}" wine64 /usr/lib/wine/wine64 wine; do
  [ -n "$wine" ] && command -v "$wine" >/dev/null && break
done
need $gnu-gcc:gcc-mingw-w64-x86-64 $gnu-g++:g++-mingw-w64-x86-64 "$wine:wine64 wine" \
  cmake:cmake ninja:ninja-build clang:clang
mkdir -p "$WINEPREFIX"
row "dlpack_rs.dll and its import library" make_library || { totals windows; exit 1; }
row ".def file and delay-load library" make_def
row "exports are the list" exported
row "imports, no TLS, no panic path, no start-up code" lean
row "layout tables, C and C++" layouts
row "dllimport, and DLPACK_DLL as upstream has it" imports_marked
row "parts of the C tests" compile_parts || { totals windows; exit 1; }
for source in $(programs) $(cxx_programs); do
  name=$(basename "$source")
  [ "$name" != lifecycle.c ] || continue
  for mode in linked delayed loaded; do
    row "$name, $mode" program $mode "$source"
  done
done
row "lifecycle.c, LoadLibrary and FreeLibrary" lifecycle
row "test_engine.c, static library" static_program "$tests/test_engine.c"
row "find_package with cmake/mingw-toolchain.cmake" cmake_package
row "MSVC: the sources compile" msvc_compiles
row "MSVC: layout tables by clang" msvc_layouts
echo "MSVC: linking and running: not run: needs Microsoft's linker and libraries"
totals windows
