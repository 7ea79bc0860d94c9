# dlpack_rs_build: calls cargo at every build. Cargo knows best what changed; when nothing did, the
# call costs some hundredths of a second and no file is touched, so nothing is linked again.
find_program(DLPACK_RS_CARGO cargo HINTS ENV CARGO_HOME "$ENV{HOME}/.cargo" PATH_SUFFIXES bin
  DOC "Rust's build tool")
set(_dlrs_get_rust "Install Rust ${_dlrs_rust_version} or newer: from https://rustup.rs, or on "
  "Debian and Ubuntu the packages rustc-web and cargo-web (or cargo, where it is new enough); then "
  "delete CMakeCache.txt, or pass -DDLPACK_RS_CARGO=/path/to/cargo.")
string(CONCAT _dlrs_get_rust ${_dlrs_get_rust})
if(NOT DLPACK_RS_CARGO)
  message(FATAL_ERROR "libdlpack_rs is written in Rust and cargo was not found. ${_dlrs_get_rust}")
endif()
execute_process(COMMAND "${DLPACK_RS_CARGO}" --version --verbose
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

# The target is always named: one out of cargo's configuration or CARGO_BUILD_TARGET would put the
# library elsewhere, and an older one would be taken for it.
set(_dlrs_target "${DLPACK_RS_CARGO_TARGET}")
if(NOT _dlrs_target)
  string(REGEX MATCH "host: ([^\r\n]+)" _dlrs_match "${_dlrs_cargo_says}")
  set(_dlrs_target "${CMAKE_MATCH_1}")
endif()
if(NOT _dlrs_target)
  message(FATAL_ERROR "${DLPACK_RS_CARGO} does not say what it builds for: set "
    "DLPACK_RS_CARGO_TARGET to the Rust target triple, such as x86_64-unknown-linux-gnu.")
endif()
if(DLPACK_RS_CARGO_FLAGS MATCHES "(^|;)--(profile|target|target-dir|artifact-dir|out-dir)(=|;|$)")
  message(FATAL_ERROR "DLPACK_RS_CARGO_FLAGS has --${CMAKE_MATCH_2}, which changes where the "
    "library is put; set DLPACK_RS_CARGO_TARGET or DLPACK_RS_CARGO_TARGET_DIR instead.")
endif()
set(_dlrs_cargo_out "${DLPACK_RS_CARGO_TARGET_DIR}/${_dlrs_target}/release")
set(_dlrs_cargo_args build --release --locked --package dlpack_rs_cdylib
  --target-dir "${DLPACK_RS_CARGO_TARGET_DIR}" --target "${_dlrs_target}")
string(REGEX MATCHALL "[^ ,;]+" _dlrs_features "${DLPACK_RS_FEATURES}")
foreach(_dlrs_feature IN LISTS _dlrs_features)
  if(NOT _dlrs_feature IN_LIST _dlrs_all_features)
    list(JOIN _dlrs_all_features " " _dlrs_feature_names)
    message(FATAL_ERROR "DLPACK_RS_FEATURES has ${_dlrs_feature}, which is none of: "
      "${_dlrs_feature_names}")
  endif()
endforeach()
# What the header then does not declare, for the users of the library.
set(_dlrs_definitions "")
foreach(_dlrs_feature IN LISTS _dlrs_all_features)
  if(NOT _dlrs_feature IN_LIST _dlrs_features)
    string(TOUPPER "DLRS_NO_${_dlrs_feature}" _dlrs_definition)
    list(APPEND _dlrs_definitions ${_dlrs_definition})
  endif()
endforeach()
list(JOIN _dlrs_features " " _dlrs_feature_names)
if(_dlrs_definitions)
  list(APPEND _dlrs_cargo_args --no-default-features "--features=${_dlrs_feature_names}")
endif()
if(_dlrs_wheel) # whose library is Python's extension module as well
  list(APPEND _dlrs_cargo_args --features module)
endif()
set(_dlrs_cargo_env "")
set(_dlrs_cc "${CMAKE_C_COMPILER}")
if(DLPACK_RS_CARGO_TARGET AND NOT MSVC) # whose linker is none that links for itself
  string(TOUPPER "${_dlrs_target}" _dlrs_name)
  string(MAKE_C_IDENTIFIER "${_dlrs_name}" _dlrs_name)
  set(_dlrs_cargo_env "CARGO_TARGET_${_dlrs_name}_LINKER=${CMAKE_C_COMPILER}")
  # What this compiler must be told to be one for the target.
  set(_dlrs_flags "")
  if(CMAKE_C_COMPILER_TARGET)
    list(APPEND _dlrs_flags "${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET}")
  endif()
  if(CMAKE_SYSROOT)
    list(APPEND _dlrs_flags "${CMAKE_C_COMPILE_OPTIONS_SYSROOT}${CMAKE_SYSROOT}")
  endif()
  foreach(_dlrs_flag IN LISTS _dlrs_flags)
    list(APPEND _dlrs_cargo_args --config
      "target.${_dlrs_target}.rustflags=['-Clink-arg=${_dlrs_flag}']")
    string(APPEND _dlrs_cc " ${_dlrs_flag}")
  endforeach()
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
if(MSVC OR CMAKE_HOST_WIN32) # without a shell and these tools
  _dlrs_stage("${DLPACK_RS_STATIC}" "${_dlrs_libdir}/${DLPACK_RS_STATIC}")
else()
  set(_dlrs_visibility hidden)
  if(DLPACK_RS_STATIC_EXPORTS)
    set(_dlrs_visibility default)
  endif()
  list(APPEND _dlrs_commands COMMAND "${CMAKE_COMMAND}" -E env "CC=${_dlrs_cc}"
    "OBJCOPY=${CMAKE_OBJCOPY}" "AR=${CMAKE_AR}" VISIBILITY=${_dlrs_visibility}
    "DLRS_FEATURES=${_dlrs_feature_names}"
    sh "${PROJECT_SOURCE_DIR}/crates/cdylib/static.sh" "${_dlrs_cargo_out}/${DLPACK_RS_STATIC}"
    "${_dlrs_libdir}/${DLPACK_RS_STATIC}")
  list(APPEND _dlrs_staged "${_dlrs_libdir}/${DLPACK_RS_STATIC}")
endif()
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
