# The parts of the Python wheel that are not Python; pyproject.toml puts them into the package.
# One file: a wheel cannot hold the links beside it.
install(PROGRAMS "${DLPACK_RS_STAGE}/${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}"
  DESTINATION . RENAME "${DLPACK_RS_CARGO_SHARED}" COMPONENT dlpack_rs_python)
list(TRANSFORM _dlrs_headers PREPEND "${_dlrs_include}/" OUTPUT_VARIABLE _dlrs_files)
install(FILES ${_dlrs_files} DESTINATION include/dlpack COMPONENT dlpack_rs_python)
