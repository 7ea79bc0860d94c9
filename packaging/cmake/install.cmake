# The stage, file by file, into the prefix. `cmake --install <build> --component Runtime` installs
# what programs need to run, without the names that only debuggers read; Development is the rest.
set(_dlrs_file "${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}")
install(PROGRAMS "${DLPACK_RS_STAGE}/${_dlrs_file}" DESTINATION "${DLPACK_RS_SHARED_DIR}"
  COMPONENT Runtime)
if(CMAKE_STRIP AND DLPACK_RS_SONAME)
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_dlrs_file}\")" COMPONENT Runtime)
endif()
if(DLPACK_RS_SONAME)
  install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${DLPACK_RS_SONAME}"
    DESTINATION "${DLPACK_RS_LIBDIR}" COMPONENT Runtime)
endif()
if(DLPACK_RS_INSTALL STREQUAL "RUNTIME")
  return()
endif()

list(TRANSFORM _dlrs_headers PREPEND "${_dlrs_include}/" OUTPUT_VARIABLE _dlrs_files)
install(FILES ${_dlrs_files} DESTINATION "${DLPACK_RS_INCLUDEDIR}/dlpack" COMPONENT Development)
install(DIRECTORY "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/cmake"
  "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/pkgconfig" DESTINATION "${DLPACK_RS_LIBDIR}"
  COMPONENT Development)
install(DIRECTORY "${DLPACK_RS_STAGE}/share/dlpack_rs" DESTINATION share COMPONENT Development)
install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${DLPACK_RS_STATIC}"
  DESTINATION "${DLPACK_RS_LIBDIR}" COMPONENT Development)
foreach(_dlrs_file IN LISTS DLPACK_RS_LINKS DLPACK_RS_IMPLIB)
  if(NOT _dlrs_file STREQUAL DLPACK_RS_SONAME)
    install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${_dlrs_file}"
      DESTINATION "${DLPACK_RS_LIBDIR}" COMPONENT Development)
  endif()
endforeach()
foreach(_dlrs_file IN ITEMS LICENSE NOTICE)
  install(FILES "${PROJECT_SOURCE_DIR}/${_dlrs_file}" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT Runtime)
endforeach()
foreach(_dlrs_file IN ITEMS README.md CHANGELOG.md)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${_dlrs_file}")
    install(FILES "${PROJECT_SOURCE_DIR}/${_dlrs_file}" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
      COMPONENT Development)
  endif()
endforeach()

# Removes what the last installation of this build tree wrote, in DESTDIR where that is set.
add_custom_target(dlpack_rs_uninstall
  COMMAND "${CMAKE_COMMAND}" "-DMANIFESTS=${CMAKE_BINARY_DIR}"
    -P "${PROJECT_SOURCE_DIR}/packaging/cmake/uninstall.cmake" VERBATIM)
