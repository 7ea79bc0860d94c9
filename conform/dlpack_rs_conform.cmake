# dlpack_rs_conform_test(NAME SOURCES subject.c... [LIBRARIES library...] [OPTIONS --known file...])
# A program of the kit and the sources, which define dlrs_conform_get_subject, as a test of ctest.
find_path(DLRS_CONFORM_INCLUDE dlpack_rs_conform.h NO_CMAKE_FIND_ROOT_PATH
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../include/dlpack" "${CMAKE_CURRENT_LIST_DIR}/../include")
function(dlpack_rs_conform_test name)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "SOURCES;LIBRARIES;OPTIONS")
  find_package(Threads REQUIRED)
  file(GLOB kit "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/*.c")
  add_executable(${name} ${kit} ${of_SOURCES})
  target_compile_definitions(${name} PRIVATE DLRS_CONFORM_LINKED)
  target_include_directories(${name} PRIVATE "${DLRS_CONFORM_INCLUDE}")
  target_link_libraries(${name} PRIVATE ${of_LIBRARIES} Threads::Threads)
  add_test(NAME ${name} COMMAND ${name} ${of_OPTIONS})
endfunction()
