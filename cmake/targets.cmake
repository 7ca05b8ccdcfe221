# quipu_layer(NAME SOURCES ... [DEPENDS ...]): one static library per layer, target quipu_NAME. DEPENDS names
# only layers below (docs/architecture.md) and outside libraries; it is public, so a layer that needs
# another's headers links it.
function(quipu_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(quipu_${name} STATIC ${arg_SOURCES})
  target_include_directories(quipu_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(quipu_${name} PUBLIC quipu_flags ${arg_DEPENDS})
endfunction()

# quipu_test(NAME SOURCES ... [DEPENDS ...] [LABELS ...] [TIMEOUT seconds]): a GoogleTest program NAME_test, one CTest entry.
function(quipu_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name}_test PRIVATE QUIPU_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name}_test PRIVATE ${arg_DEPENDS} GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  if(arg_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()
