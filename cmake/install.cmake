# The stage, file by file, into the prefix: what programs need to run, without the names that only
# debuggers read; then what they are compiled with.
set(_dlrs_file "${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}")
install(PROGRAMS "${DLPACK_RS_STAGE}/${_dlrs_file}" DESTINATION "${DLPACK_RS_SHARED_DIR}")
if(CMAKE_STRIP)
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_dlrs_file}\")")
endif()
if(DLPACK_RS_SONAME)
  install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${DLPACK_RS_SONAME}"
    DESTINATION "${DLPACK_RS_LIBDIR}")
endif()
if(DLPACK_RS_INSTALL STREQUAL "RUNTIME")
  return()
endif()

list(TRANSFORM _dlrs_headers PREPEND "${_dlrs_include}/" OUTPUT_VARIABLE _dlrs_files)
install(FILES ${_dlrs_files} DESTINATION "${DLPACK_RS_INCLUDEDIR}/dlpack")
install(DIRECTORY "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/cmake"
  "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/pkgconfig" DESTINATION "${DLPACK_RS_LIBDIR}")
install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${DLPACK_RS_STATIC}"
  DESTINATION "${DLPACK_RS_LIBDIR}")
foreach(_dlrs_file IN LISTS DLPACK_RS_LINKS DLPACK_RS_IMPLIB)
  install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${_dlrs_file}"
    DESTINATION "${DLPACK_RS_LIBDIR}")
endforeach()
foreach(_dlrs_file IN ITEMS LICENSE README.md CHANGELOG.md)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${_dlrs_file}")
    install(FILES "${PROJECT_SOURCE_DIR}/${_dlrs_file}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
  endif()
endforeach()
