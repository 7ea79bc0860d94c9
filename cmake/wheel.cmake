# The parts of the Python wheel that are not Python; pyproject.toml puts them into the package.
# One file: a wheel cannot hold the links beside it.
install(PROGRAMS "${DLPACK_RS_STAGE}/${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}"
  DESTINATION . RENAME "${DLPACK_RS_CARGO_SHARED}" COMPONENT dlpack_rs_python)
install(DIRECTORY "${DLPACK_RS_STAGE}/${DLPACK_RS_INCLUDEDIR}/dlpack"
  DESTINATION include COMPONENT dlpack_rs_python)
