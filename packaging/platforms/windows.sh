#!/usr/bin/env bash
# The library for Windows and the C and C++ tests with it, run by wine. Wine is not Windows: a pass
# here applies to wine's loader, threads and C run-time only. Each test program is linked,
# delay-loaded, and loaded by LoadLibrary. Where Windows needs another version of a file of
# c_tests/, c_tests/windows/ has one of the same name. Then the same programs with the DLL for MSVC,
# as far as it is available without Microsoft's tools. One line a row; ends with
# `windows: N passed, N failed`.
. "$(dirname "$0")/common.sh"

triple=x86_64-pc-windows-gnu gnu=x86_64-w64-mingw32
out=$target_dir/windows
export WINEPREFIX=${WINEPREFIX:-$target_dir/wine} WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
# A separate folder, because cargo locks it.
target_dir=$out/cargo CARGO_TARGET_DIR=$out/cargo

# In the program's folder, with its DLLs. Once in some 3,000 times wine 8.0 ends with status 1
# before the program's start, without output (also with one that only prints a line): such a run is
# repeated, twice at most, and reported at the end. Our programs all print something.
in_wine() {
  local try status said=$out/said.txt
  for try in 1 2 3; do
    status=0
    (CDPATH='' cd "$(dirname "$1")" && "$wine" "$@") >"$said" || status=$?
    if [ $status -ne 1 ] || [ -s "$said" ]; then break; fi
    echo "wine did not start $(basename "$1") ($try of 3 times)" | tee -a "$out/again.txt" >&2
  done
  cat "$said"
  return $status
}
run_program() { # run_program NAME EXE [CASES]: so many of random layouts, or all
  case $1 in
    lifecycle) in_wine "$2" dlpack_rs.dll copy.dll ;;
    test_engine) in_wine "$2" "${3:-4000}" ;; # stacks grow there: small layouts will do
    *) in_wine "$2" ;;
  esac
}

make_library() {
  build $triple $gnu-gcc
  cp "$target_dir/$triple/release/dlpack_rs.dll" "$target_dir/$triple/release/libdlpack_rs.dll.a" \
    "$out/"
  CC=$gnu-gcc OBJCOPY=$gnu-objcopy AR=$gnu-ar crates/cdylib/static.sh \
    "$target_dir/$triple/release/libdlpack_rs.a" "$out/libdlpack_rs.a"
  cp "$out/dlpack_rs.dll" "$out/copy.dll"
}
# The list of exports in the format that dlltool, lib.exe and llvm-lib read.
make_def() {
  { echo "LIBRARY dlpack_rs.dll"; echo EXPORTS; crates/cdylib/exports.sh | sed 's/^/  /'; } \
    >"$out/dlpack_rs.def"
  $gnu-dlltool -d "$out/dlpack_rs.def" -D dlpack_rs.dll -y "$out/libdlpack_rs_delay.a"
}
exported() { # exported DLL
  $gnu-objdump -p "$1" | sed -n '/Ordinal\/Name Pointer/,/^$/s/.*\] //p' |
    grep -v '^Table$' | sort | diff <(crates/cdylib/exports.sh) -
}
# Law 6: exactly these names; no thread-local storage; no code runs at load time.
lean() { # lean DLL
  $gnu-objdump -p "$1" >"$out/headers.txt"
  sed -n 's/^\t[0-9a-f]\+\t \+[0-9]\+ \+\([A-Za-z_]\w*\).*/\1/p' "$out/headers.txt" |
    LC_ALL=C sort >"$out/imports.txt"
  # Some compilers need only some of them.
  LC_ALL=C comm -13 c_tests/windows/imports.txt "$out/imports.txt" | tee "$out/unexpected.txt"
  [ ! -s "$out/unexpected.txt" ]
  grep -E '^AddressOfEntryPoint\s+0+$' "$out/headers.txt"
  grep -E '^Entry 9 0+ 0+ Thread' "$out/headers.txt"
  grep HIGH_ENTROPY_VA "$out/headers.txt"
  grep DYNAMIC_BASE "$out/headers.txt"
  grep NX_COMPAT "$out/headers.txt"
}
imports_marked() { # dlpack_rs.h marks functions for import, and leaves dlpack.h's macro alone
  local preprocess="$gnu-gcc -E -Iinclude -include dlpack_rs.h -xc /dev/null"
  $preprocess | grep -cE 'dllimport.*dlrs_version\(void\)'
  $preprocess -dM | grep '^#define DLPACK_DLL __declspec(dllimport)'
  if grep -n DLPACK_DLL include/dlpack_rs.h; then return 1; fi
  if $preprocess -DDLRS_STATIC | grep -E 'dllimport.*dlrs_'; then return 1; fi
}

flags=(-O1 -Wall -Werror -D__USE_MINGW_ANSI_STDIO=1 -Ic_tests/windows -Iinclude "-I$tests")
compile_parts() {
  local part own
  for part in $(parts); do
    own=c_tests/windows/$(basename "$part")
    [ ! -e "$own" ] || part=$own
    $gnu-gcc -std=gnu11 "${flags[@]}" -c "$part" -o "$out/$(basename "$part" .c).o"
  done
  rm -f "$out/libparts.a"
  (cd "$out" && $gnu-ar rcs libparts.a $(parts | sed 's|.*/\(.*\)\.c|\1.o|'))
  # LoadLibrary: the program fills in the addresses that the linker would have.
  { echo '#define WIN32_LEAN_AND_MEAN'
    echo '#include <windows.h>'
    crates/cdylib/exports.sh | sed 's/.*/void *__imp_&;/'
    echo 'static void *need(HMODULE m, const char *name) {'
    echo '  void *found = (void *)GetProcAddress(m, name);'
    echo '  if (found == NULL) ExitProcess(99);'
    echo '  return found;'
    echo '}'
    echo '__attribute__((constructor)) static void load(void) {'
    echo '  HMODULE m = LoadLibraryA("dlpack_rs.dll");'
    echo '  if (m == NULL) ExitProcess(98);'
    crates/cdylib/exports.sh | sed 's/.*/  __imp_& = need(m, "&");/'
    echo '}'; } >"$out/loader.c"
  $gnu-gcc -O1 -c "$out/loader.c" -o "$out/loader.o"
}
wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
uses_dll() { $gnu-objdump -p "$1" | grep -F 'DLL Name: dlpack_rs.dll'; }
program() { # program MODE SOURCE: compiled once, as `linked`, which comes first
  local name compiler=$gnu-gcc standard=gnu11 library wrapped=$wrap cases=
  name=$(basename "$2"); name=${name%.*}
  local exe=$out/$name-$1.exe object=$out/$name-program.o
  case $1 in
    linked) library=$out/libdlpack_rs.dll.a ;;
    # The same library: only the lookup of its functions differs.
    delayed) library="$out/libdlpack_rs_delay.a -ldelayimp" cases=400 ;;
    loaded) library=$out/loader.o cases=400 ;;
  esac
  # C++ allocates in a separate library.
  case $2 in *.cpp) compiler=$gnu-g++ standard=c++17 wrapped= ;; esac
  grep -qF harness.h "$2" || wrapped=
  [ "$1" != linked ] || $compiler -std=$standard "${flags[@]}" -c "$2" -o "$object"
  # shellcheck disable=SC2086
  $compiler "$object" -o "$exe" ${wrapped:+$wrapped} -L"$out" -lparts $library -static -lpthread
  case $1 in
    linked) uses_dll "$exe" ;;
    *) if uses_dll "$exe"; then return 1; fi ;;
  esac
  run_program "$name" "$exe" $cases
}
static_program() { # the static library, and no DLL beside it: the code is the DLL's
  $gnu-gcc -std=gnu11 "${flags[@]}" -DDLRS_STATIC "$1" "$tests/harness.c" -o "$out/static.exe" $wrap \
    -L"$out" -lparts "$out/libdlpack_rs.a" -static -lpthread
  if uses_dll "$out/static.exe"; then return 1; fi
  in_wine "$out/static.exe" 400
}
lifecycle() { # loads the library itself
  mkdir -p "$out/planted"
  $gnu-gcc -shared -xc /dev/null -o "$out/planted/nvcuda.dll"
  $gnu-gcc -std=gnu11 "${flags[@]}" c_tests/windows/lifecycle.c -o "$out/lifecycle.exe"
  run_program lifecycle "$out/lifecycle.exe"
}

# Installed by CMake with the toolchain file, found by another project, run with the DLL beside it.
cmake_package() {
  local toolchain=-DCMAKE_TOOLCHAIN_FILE=$root/packaging/cmake/mingw-toolchain.cmake program name
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

# The checks for MSVC that are possible without it. Import libraries with exactly the imported names
# replace Microsoft's, LLVM's linker replaces theirs.
msvc=$out/msvc
import_library() { # import_library FILE DLL PATTERN
  { echo "LIBRARY $2"; echo EXPORTS; grep -E "$3" c_tests/windows/imports.txt; } >"$msvc/$1.def"
  $gnu-dlltool -d "$msvc/$1.def" -l "$msvc/$1.lib"
}
msvc_library() {
  local triple=x86_64-pc-windows-msvc
  mkdir -p "$msvc"
  import_library kernel32 KERNEL32.dll '^[A-Z]'
  import_library vcruntime VCRUNTIME140.dll '^mem'
  import_library ucrt ucrtbase.dll '^[a-ln-z]|^malloc'
  clang --target=$triple -c packaging/platforms/msvc_crt.c -o "$msvc/crt.obj"
  lld-link /lib "$msvc/crt.obj" "/out:$msvc/msvcrt.lib"
  cp "$msvc/msvcrt.lib" "$msvc/legacy_stdio_definitions.lib" # which the crate `libc` names
  CARGO_TARGET_X86_64_PC_WINDOWS_MSVC_RUSTFLAGS="-Lnative=$msvc" build $triple lld-link
  cp "$target_dir/$triple/release/dlpack_rs.dll" "$target_dir/$triple/release/dlpack_rs.dll.lib" \
    "$msvc/"
  cp "$msvc/dlpack_rs.dll" "$msvc/copy.dll"
}
msvc_program() { # msvc_program NAME EXE: one that was built above
  cp -r "$out/$2" "$out/planted" "$msvc/"
  run_program "$1" "$msvc/$2"
}

find_rust
for wine in "${WINE:-}" wine64 /usr/lib/wine/wine64 wine; do
  [ -n "$wine" ] && command -v "$wine" >/dev/null && break
done
for server in "${WINESERVER:-}" wineserver /usr/lib/wine/wineserver64; do
  [ -n "$server" ] && command -v "$server" >/dev/null && break
done
need $gnu-gcc:gcc-mingw-w64-x86-64 $gnu-g++:g++-mingw-w64-x86-64 "$wine:wine64 wine" "$server:wine" \
  cmake:cmake ninja:ninja-build clang:clang lld-link:lld
mkdir -p "$WINEPREFIX" "$out"
: >"$out/again.txt"
# One server for all programs: by default it stops and starts between them, and a program that calls
# it at that moment fails.
"$server" -p >/dev/null 2>&1 </dev/null
trap '"$server" -k' EXIT
row "wine starts" "$wine" wineboot --init
row "dlpack_rs.dll and its import library" make_library
$worked || { totals windows; exit 1; }
row ".def file and delay-load library" make_def
row "exports are the list" exported "$out/dlpack_rs.dll"
row "imports, no TLS, no panic path, no start-up code" lean "$out/dlpack_rs.dll"
row "layout tables, C and C++" layouts $gnu-gcc $gnu-g++
row "dllimport, and DLPACK_DLL as upstream has it" imports_marked
row "parts of the C tests" compile_parts
$worked || { totals windows; exit 1; }
for source in $(programs) $(cxx_programs); do
  name=$(basename "$source")
  [ "$name" != lifecycle.c ] || continue
  for mode in linked delayed loaded; do
    row "$name, $mode" program $mode "$source"
  done
done
row "lifecycle.c, LoadLibrary and FreeLibrary" lifecycle
row "test_engine.c, static library" static_program "$tests/test_engine.c"
row "find_package with packaging/cmake/mingw-toolchain.cmake" cmake_package
# By clang's idea of its ABI.
row "MSVC: layout tables by clang" layouts clang clang --target=x86_64-pc-windows-msvc -ffreestanding
row "MSVC: dlpack_rs.dll and its import library, by LLVM's linker" msvc_library
$worked || { totals windows; exit 1; }
row "MSVC: exports are the list" exported "$msvc/dlpack_rs.dll"
row "MSVC: imports, no TLS, no panic path, no start-up code" lean "$msvc/dlpack_rs.dll"
for source in $(programs) $(cxx_programs); do
  name=$(basename "$source"); name=${name%.*}
  exe=$name-linked.exe
  [ $name != lifecycle ] || exe=lifecycle.exe
  row "MSVC: $(basename "$source") with that DLL" msvc_program $name $exe
done
cat "$out/again.txt"
echo "MSVC: Microsoft's compiler, linker and C run-time: not run"
totals windows
