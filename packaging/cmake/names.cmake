# What cargo makes, and what it is called where it is installed.
#   DLPACK_RS_SHARED   the file that holds the code; DLPACK_RS_LINKS are symbolic links to it
#   DLPACK_RS_SONAME   what the program asks the loader for
#   DLPACK_RS_IMPLIB   the import library (Windows)
#   DLPACK_RS_STATIC   the static library; DLPACK_RS_STATIC_LIBS is what it needs besides,
#                      DLPACK_RS_STATIC_OPTIONS what the linker is told
set(DLPACK_RS_IMPLIB "")
set(DLPACK_RS_LINKS "")
set(DLPACK_RS_SONAME "")
set(DLPACK_RS_STATIC_LIBS "")
set(DLPACK_RS_STATIC_OPTIONS "")
set(DLPACK_RS_STATIC "libdlpack_rs.a")
set(DLPACK_RS_SHARED_DIR "${DLPACK_RS_LIBDIR}")
if(WIN32)
  set(DLPACK_RS_SHARED_DIR "${DLPACK_RS_BINDIR}")
  set(DLPACK_RS_CARGO_SHARED "dlpack_rs.dll")
  set(DLPACK_RS_SHARED "dlpack_rs.dll")
  if(MSVC)
    set(DLPACK_RS_IMPLIB "dlpack_rs.dll.lib")
    set(DLPACK_RS_STATIC "dlpack_rs.lib")
  else()
    set(DLPACK_RS_IMPLIB "libdlpack_rs.dll.a")
    if(NOT DLPACK_RS_STATIC_EXPORTS) # PE has no hidden symbols
      set(DLPACK_RS_STATIC_OPTIONS "-Wl,--exclude-libs,${DLPACK_RS_STATIC}")
    endif()
  endif()
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(DLPACK_RS_CARGO_SHARED "libdlpack_rs.so")
  set(DLPACK_RS_SHARED "libdlpack_rs.so.${PROJECT_VERSION}")
  set(DLPACK_RS_SONAME "libdlpack_rs.so.${PROJECT_VERSION_MAJOR}") # as build.rs sets it
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    string(APPEND DLPACK_RS_SONAME ".${PROJECT_VERSION_MINOR}")
  endif()
  set(DLPACK_RS_LINKS "${DLPACK_RS_SONAME}" "libdlpack_rs.so")
  if(_dlrs_wheel) # which holds no links: one file, by the name that programs ask for
    set(DLPACK_RS_SHARED "${DLPACK_RS_SONAME}")
    set(DLPACK_RS_LINKS "")
  endif()
  # What `cargo rustc -p dlpack_rs_cdylib -- --print native-static-libs` says;
  # c_tests/consumers.sh compares.
  set(DLPACK_RS_STATIC_LIBS c m rt pthread)
else()
  # build.rs gives the library its name, and makes it stay loaded, on these two only.
  message(FATAL_ERROR "libdlpack_rs is packaged for Linux and Windows, not for "
    "${CMAKE_SYSTEM_NAME}. There, `cargo build --release -p dlpack_rs_cdylib` makes a library "
    "without an installed name, which may be unloaded.")
endif()
