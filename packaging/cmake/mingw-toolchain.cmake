# Cross-compiling for 64-bit Windows with mingw-w64 (Debian: gcc-mingw-w64-x86-64):
#   cmake -S . -B build -DCMAKE_TOOLCHAIN_FILE=packaging/cmake/mingw-toolchain.cmake
# For projects that use the library and for the library itself, which cargo must then build for
# the Rust target below: install it (rustup target add x86_64-pc-windows-gnu), or hand cargo the
# sources of `core`, as packaging/platforms/windows.sh does:
#   RUSTC_BOOTSTRAP=1 cmake ... "-DDLPACK_RS_CARGO_FLAGS=-Zbuild-std=core"
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(DLPACK_RS_CARGO_TARGET x86_64-pc-windows-gnu CACHE STRING "Rust target of libdlpack_rs")

# Programs of this machine; headers, libraries and packages of the target, or of CMAKE_PREFIX_PATH.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# One file a program: the toolchain's own DLLs need not lie beside it.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)

# Test programs run in wine, where there is one.
find_program(DLPACK_RS_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(DLPACK_RS_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${DLPACK_RS_WINE}")
endif()
