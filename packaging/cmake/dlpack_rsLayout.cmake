# dlpack_rs_test_layout(NAME HEADER header [MINIMUM 0.6|...|1.4] [LANGUAGES C CXX]
#                       [LINK_LIBRARIES target...])
#
# Adds tests of the dlpack.h that this project uses: a file, or what `#include <header>` finds with
# the include folders of the targets. For each language standard that the compiler knows, the test
# NAME.c99, NAME.cxx17 ... compiles the static assertions of dlpack_rs_layout.h; the test NAME
# prints what differs from the library and calls dlrs_abi_check. Nothing is built before the tests
# run. A header older than MINIMUM (1.0) fails.
set(_dlrs_layout_dir "${CMAKE_CURRENT_LIST_DIR}")

function(dlpack_rs_test_layout name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;MINIMUM" "LANGUAGES;LINK_LIBRARIES")
  if(NOT arg_HEADER OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dlpack_rs_test_layout(NAME HEADER file [MINIMUM version] "
      "[LANGUAGES C CXX] [LINK_LIBRARIES target...]): HEADER is missing, or unknown: "
      "${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_MINIMUM)
    set(arg_MINIMUM 1.0)
  elseif(NOT arg_MINIMUM MATCHES "^[0-9]+\\.[0-9]+$")
    message(FATAL_ERROR "dlpack_rs_test_layout: MINIMUM is ${arg_MINIMUM}, not a version as 1.0")
  endif()
  string(REPLACE "." ";" numbers "${arg_MINIMUM}")
  list(GET numbers 0 major)
  list(GET numbers 1 minor)
  math(EXPR minimum "${major} * 100 + ${minor}")
  get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT arg_LANGUAGES)
    foreach(language IN ITEMS C CXX)
      if(language IN_LIST enabled)
        list(APPEND arg_LANGUAGES ${language})
      endif()
    endforeach()
  endif()

  # Whole paths: our own dlpack.h must not be found in place of the project's.
  get_filename_component(file "${arg_HEADER}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(include "<${arg_HEADER}>")
  if(EXISTS "${file}")
    set(include "\"${file}\"")
  endif()
  get_target_property(folders dlpack_rs::dlpack_rs_shared INTERFACE_INCLUDE_DIRECTORIES)
  list(GET folders 0 kit)
  set(kit "${kit}/dlpack/dlpack_rs_layout.h")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.layout")
  set(extension_C c)
  set(extension_CXX cpp)
  set(standards_C 99 11 17 23)
  set(standards_CXX 11 14 17 20 23 26)
  set(test "${CMAKE_COMMAND}" --build "${CMAKE_BINARY_DIR}" --config $<CONFIG> --target)

  foreach(language IN LISTS arg_LANGUAGES)
    set(source "${folder}/static.${extension_${language}}")
    file(WRITE "${source}.new"
      "#include ${include}\n#define DLRS_LAYOUT_MINIMUM ${minimum}\n#include \"${kit}\"\n")
    configure_file("${source}.new" "${source}" COPYONLY)
    foreach(standard IN LISTS standards_${language})
      if(NOT CMAKE_${language}${standard}_STANDARD_COMPILE_OPTION)
        continue()
      endif()
      string(TOLOWER "${name}.${language}${standard}" target)
      add_library("${target}" OBJECT EXCLUDE_FROM_ALL "${source}")
      target_link_libraries("${target}" PRIVATE ${arg_LINK_LIBRARIES})
      set_target_properties("${target}" PROPERTIES ${language}_STANDARD ${standard}
        ${language}_STANDARD_REQUIRED ON ${language}_EXTENSIONS OFF)
      add_test(NAME "${target}" COMMAND ${test} "${target}")
      set_tests_properties("${target}" PROPERTIES RESOURCE_LOCK dlpack_rs_layout_build)
    endforeach()
  endforeach()

  list(GET arg_LANGUAGES 0 language)
  set(source "${folder}/table.${extension_${language}}")
  file(WRITE "${source}.new" "#include ${include}\n#define DLRS_LAYOUT_MINIMUM ${minimum}\n"
    "#define DLRS_LAYOUT_DEFINE\n#include \"${kit}\"\n")
  configure_file("${source}.new" "${source}" COPYONLY)
  set(main "${folder}/check.${extension_${language}}")
  configure_file("${_dlrs_layout_dir}/layout_check.c" "${main}" COPYONLY)
  # Only the table's file sees the project's header, only the other one ours.
  add_library("${name}.table" OBJECT EXCLUDE_FROM_ALL "${source}")
  target_link_libraries("${name}.table" PRIVATE ${arg_LINK_LIBRARIES})
  add_executable("${name}" EXCLUDE_FROM_ALL "${main}" $<TARGET_OBJECTS:${name}.table>)
  target_link_libraries("${name}" PRIVATE dlpack_rs::dlpack_rs)
  if(CMAKE_CXX_COMPILER_LOADED)
    set_target_properties("${name}.table" "${name}" PROPERTIES CXX_STANDARD 11)
  endif()
  add_test(NAME "${name}.build" COMMAND ${test} "${name}")
  add_test(NAME "${name}" COMMAND "${name}")
  set_tests_properties("${name}.build" PROPERTIES RESOURCE_LOCK dlpack_rs_layout_build
    FIXTURES_SETUP "${name}.built")
  set_tests_properties("${name}" PROPERTIES FIXTURES_REQUIRED "${name}.built")
endfunction()
