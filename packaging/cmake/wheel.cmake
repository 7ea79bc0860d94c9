# The parts of the Python wheel that are not Python; pyproject.toml puts them into the package, which
# is then a prefix like any other: what links against the library finds it there.
install(PROGRAMS "${DLPACK_RS_STAGE}/${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}"
  DESTINATION "${DLPACK_RS_SHARED_DIR}" COMPONENT dlpack_rs_python)
if(DLPACK_RS_IMPLIB)
  install(FILES "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/${DLPACK_RS_IMPLIB}"
    DESTINATION "${DLPACK_RS_LIBDIR}" COMPONENT dlpack_rs_python)
endif()
list(TRANSFORM _dlrs_headers PREPEND "${_dlrs_include}/" OUTPUT_VARIABLE _dlrs_files)
install(FILES ${_dlrs_files} DESTINATION "${DLPACK_RS_INCLUDEDIR}/dlpack"
  COMPONENT dlpack_rs_python)
install(DIRECTORY "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}/cmake"
  DESTINATION "${DLPACK_RS_LIBDIR}" COMPONENT dlpack_rs_python)

# What dlpack_rs.abi knows of the headers, made of them.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/dlpack_rs.h)
find_package(Python REQUIRED COMPONENTS Interpreter)
execute_process(RESULT_VARIABLE _dlrs_failed
  COMMAND "${Python_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/python/generate_abi.py"
    "${CMAKE_CURRENT_BINARY_DIR}/abi")
if(_dlrs_failed)
  message(FATAL_ERROR "python/generate_abi.py: ${_dlrs_failed}")
endif()
install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/abi" DESTINATION . COMPONENT dlpack_rs_python)
