# Headers, CMake packages and the pkg-config file, in the stage.
set(_dlrs_include "${DLPACK_RS_STAGE}/${DLPACK_RS_INCLUDEDIR}/dlpack")
set(_dlrs_cmakedir "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/cmake")

file(GLOB _dlrs_headers RELATIVE "${PROJECT_SOURCE_DIR}/include" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/include/*.h" "${PROJECT_SOURCE_DIR}/include/*.hpp")
set(DLPACK_RS_DLPACK_DIR "") # an include folder with upstream's dlpack.h, when it is not ours
if(NOT DLPACK_RS_INSTALL_DLPACK_H)
  list(REMOVE_ITEM _dlrs_headers dlpack.h)
  file(REMOVE "${_dlrs_include}/dlpack.h")
  file(REMOVE_RECURSE "${_dlrs_cmakedir}/dlpack")
  find_path(DLPACK_RS_SYSTEM_DLPACK dlpack/dlpack.h DOC "Include folder of upstream's DLPack")
  set(_dlrs_found "")
  if(DLPACK_RS_SYSTEM_DLPACK)
    file(STRINGS "${DLPACK_RS_SYSTEM_DLPACK}/dlpack/dlpack.h" _dlrs_found
      REGEX "^#define DLPACK_MAJOR_VERSION 1$")
  endif()
  if(NOT _dlrs_found)
    message(FATAL_ERROR "DLPACK_RS_INSTALL_DLPACK_H is OFF, but no dlpack/dlpack.h of DLPack 1.x was "
      "found (Debian 12's libdlpack-dev is 0.6, too old). Set DLPACK_RS_SYSTEM_DLPACK to the folder "
      "that holds dlpack/dlpack.h, or switch the option on.")
  endif()
  set(DLPACK_RS_DLPACK_DIR "${DLPACK_RS_SYSTEM_DLPACK}/dlpack")
endif()
foreach(_dlrs_header IN LISTS _dlrs_headers)
  configure_file("include/${_dlrs_header}" "${_dlrs_include}/${_dlrs_header}" COPYONLY)
endforeach()

# The conformance kit for C, as sources: it is compiled with the library that it judges, by the same
# compiler and under the same sanitizers, and is no part of a program that is shipped.
file(GLOB _dlrs_kit RELATIVE "${PROJECT_SOURCE_DIR}/conform" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/conform/*.[ch]" "${PROJECT_SOURCE_DIR}/conform/*.cmake")
foreach(_dlrs_file IN LISTS _dlrs_kit)
  configure_file("conform/${_dlrs_file}"
    "${DLPACK_RS_STAGE}/share/dlpack_rs/conform/${_dlrs_file}" COPYONLY)
endforeach()

set(_dlrs_include_dirs "\${_dlrs_prefix}/${DLPACK_RS_INCLUDEDIR}")
list(APPEND _dlrs_include_dirs ${DLPACK_RS_DLPACK_DIR})
# From <libdir>/cmake/dlpack_rs and <libdir>/pkgconfig up to the prefix.
file(RELATIVE_PATH DLPACK_RS_UP "/${DLPACK_RS_LIBDIR}/cmake/dlpack_rs" "/")
file(RELATIVE_PATH DLPACK_RS_PC_UP "/${DLPACK_RS_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" DLPACK_RS_UP "${DLPACK_RS_UP}")
string(REGEX REPLACE "/$" "" DLPACK_RS_PC_UP "${DLPACK_RS_PC_UP}")
foreach(_dlrs_file IN ITEMS dlpack_rsConfig dlpack_rsTargets)
  configure_file("packaging/cmake/${_dlrs_file}.cmake.in"
    "${_dlrs_cmakedir}/dlpack_rs/${_dlrs_file}.cmake" @ONLY)
endforeach()
# A range says itself what is compatible.
function(_dlrs_version_file package version compatible)
  set(file "${_dlrs_cmakedir}/${package}/${package}ConfigVersion.cmake")
  write_basic_package_version_file("${file}" VERSION "${version}" COMPATIBILITY AnyNewerVersion)
  file(READ "${file}" range)
  write_basic_package_version_file("${file}" VERSION "${version}" COMPATIBILITY ${compatible})
  file(READ "${file}" one)
  file(WRITE "${file}"
    "if(PACKAGE_FIND_VERSION_RANGE)\n${range}\nelse()\n${one}\nendif()\n")
endfunction()
foreach(_dlrs_file IN ITEMS dlpack_rsLayout.cmake layout_check.c)
  configure_file("packaging/cmake/${_dlrs_file}" "${_dlrs_cmakedir}/dlpack_rs/${_dlrs_file}" COPYONLY)
endforeach()
set(_dlrs_compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(_dlrs_compatible SameMinorVersion)
endif()
_dlrs_version_file(dlpack_rs "${PROJECT_VERSION}" ${_dlrs_compatible})

# Upstream's package name, for projects that only want dlpack.h.
if(DLPACK_RS_INSTALL_DLPACK_H)
  file(STRINGS include/dlpack.h _dlrs_lines REGEX "^#define DLPACK_M[AJINOR]+_VERSION [0-9]+$")
  string(REGEX MATCHALL "[0-9]+" _dlrs_numbers "${_dlrs_lines}")
  list(JOIN _dlrs_numbers "." _dlrs_dlpack_version)
  configure_file(packaging/cmake/dlpackConfig.cmake.in "${_dlrs_cmakedir}/dlpack/dlpackConfig.cmake" @ONLY)
  _dlrs_version_file(dlpack "${_dlrs_dlpack_version}" SameMajorVersion)
endif()

# In a .pc file a backslash precedes a blank.
foreach(_dlrs_dir IN ITEMS LIBDIR INCLUDEDIR DLPACK_DIR)
  string(REPLACE " " "\\ " _dlrs_pc_${_dlrs_dir} "${DLPACK_RS_${_dlrs_dir}}")
endforeach()
set(_dlrs_pc_libs "")
foreach(_dlrs_option IN LISTS DLPACK_RS_STATIC_OPTIONS)
  string(APPEND _dlrs_pc_libs " ${_dlrs_option}")
endforeach()
foreach(_dlrs_lib IN LISTS DLPACK_RS_STATIC_LIBS)
  string(APPEND _dlrs_pc_libs " -l${_dlrs_lib}")
endforeach()
set(_dlrs_pc_cflags "")
if(DLPACK_RS_DLPACK_DIR)
  set(_dlrs_pc_cflags " -I${_dlrs_pc_DLPACK_DIR}")
endif()
foreach(_dlrs_definition IN LISTS _dlrs_definitions)
  string(APPEND _dlrs_pc_cflags " -D${_dlrs_definition}")
endforeach()
configure_file(packaging/cmake/dlpack_rs.pc.in
  "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/pkgconfig/dlpack_rs.pc" @ONLY)

# find_package(dlpack_rs) with dlpack_rs_DIR or CMAKE_PREFIX_PATH set to the build tree itself.
foreach(_dlrs_file IN ITEMS Config ConfigVersion)
  file(WRITE "${PROJECT_BINARY_DIR}/dlpack_rs${_dlrs_file}.cmake"
    "include(\"${_dlrs_cmakedir}/dlpack_rs/dlpack_rs${_dlrs_file}.cmake\")\n")
endforeach()
