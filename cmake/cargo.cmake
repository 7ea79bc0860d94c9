# dlpack_rs_build: calls cargo at every build. Cargo knows best what changed; when nothing did, the
# call costs some hundredths of a second and no file is touched, so nothing is linked again.
find_program(DLPACK_RS_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin"
  DOC "Rust's build tool")
set(_dlrs_get_rust "Install Rust ${_dlrs_rust_version} or newer: from https://rustup.rs, or on "
  "Debian and Ubuntu the packages rustc-web and cargo-web (or cargo, where it is new enough); then "
  "delete CMakeCache.txt, or pass -DDLPACK_RS_CARGO=/path/to/cargo.")
string(CONCAT _dlrs_get_rust ${_dlrs_get_rust})
if(NOT DLPACK_RS_CARGO)
  message(FATAL_ERROR "libdlpack_rs is written in Rust and cargo was not found. ${_dlrs_get_rust}")
endif()
execute_process(COMMAND "${DLPACK_RS_CARGO}" --version
  OUTPUT_VARIABLE _dlrs_cargo_says ERROR_VARIABLE _dlrs_cargo_says RESULT_VARIABLE _dlrs_failed
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
string(REGEX MATCH "cargo ([0-9]+\\.[0-9]+\\.[0-9]+)" _dlrs_match "${_dlrs_cargo_says}")
set(_dlrs_cargo_version "${CMAKE_MATCH_1}")
if(_dlrs_failed OR NOT _dlrs_match)
  message(FATAL_ERROR "${DLPACK_RS_CARGO} does not run: ${_dlrs_cargo_says}\n${_dlrs_get_rust}")
elseif(_dlrs_cargo_version VERSION_LESS _dlrs_rust_version)
  message(FATAL_ERROR "${DLPACK_RS_CARGO} is ${_dlrs_cargo_version}, too old. ${_dlrs_get_rust}")
endif()
if(CMAKE_CROSSCOMPILING AND NOT DLPACK_RS_CARGO_TARGET)
  message(FATAL_ERROR "Cross-compiling for ${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}: set "
    "DLPACK_RS_CARGO_TARGET to the Rust target triple, such as aarch64-unknown-linux-gnu.")
endif()

set(_dlrs_cargo_out "${DLPACK_RS_CARGO_TARGET_DIR}/release")
set(_dlrs_cargo_args build --release --locked --package dlpack_rs_cdylib
  --target-dir "${DLPACK_RS_CARGO_TARGET_DIR}")
set(_dlrs_cargo_env "")
if(DLPACK_RS_CARGO_TARGET)
  set(_dlrs_cargo_out "${DLPACK_RS_CARGO_TARGET_DIR}/${DLPACK_RS_CARGO_TARGET}/release")
  list(APPEND _dlrs_cargo_args --target "${DLPACK_RS_CARGO_TARGET}")
  string(TOUPPER "${DLPACK_RS_CARGO_TARGET}" _dlrs_name)
  string(MAKE_C_IDENTIFIER "${_dlrs_name}" _dlrs_name)
  set(_dlrs_cargo_env "CARGO_TARGET_${_dlrs_name}_LINKER=${CMAKE_C_COMPILER}")
endif()

# (what cargo makes, where it goes in the stage)
set(_dlrs_commands "")
set(_dlrs_staged "")
set(_dlrs_libdir "${DLPACK_RS_STAGE}/${DLPACK_RS_LIBDIR}")
macro(_dlrs_stage from to)
  list(APPEND _dlrs_commands
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${_dlrs_cargo_out}/${from}" "${to}")
  list(APPEND _dlrs_staged "${to}")
endmacro()
_dlrs_stage("${DLPACK_RS_CARGO_SHARED}"
  "${DLPACK_RS_STAGE}/${DLPACK_RS_SHARED_DIR}/${DLPACK_RS_SHARED}")
_dlrs_stage("${DLPACK_RS_STATIC}" "${_dlrs_libdir}/${DLPACK_RS_STATIC}")
if(DLPACK_RS_IMPLIB)
  _dlrs_stage("${DLPACK_RS_IMPLIB}" "${_dlrs_libdir}/${DLPACK_RS_IMPLIB}")
endif()

file(MAKE_DIRECTORY "${_dlrs_libdir}" "${DLPACK_RS_STAGE}/${DLPACK_RS_SHARED_DIR}")
foreach(_dlrs_link IN LISTS DLPACK_RS_LINKS)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E create_symlink
    "${DLPACK_RS_SHARED}" "${_dlrs_libdir}/${_dlrs_link}")
endforeach()

add_custom_target(dlpack_rs_build ALL
  COMMAND "${CMAKE_COMMAND}" -E env ${_dlrs_cargo_env}
    "${DLPACK_RS_CARGO}" ${_dlrs_cargo_args} ${DLPACK_RS_CARGO_FLAGS}
  ${_dlrs_commands}
  BYPRODUCTS ${_dlrs_staged}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  COMMENT "cargo build libdlpack_rs ${PROJECT_VERSION}"
  VERBATIM USES_TERMINAL)
