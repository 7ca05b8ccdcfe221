# Build options and the flags that every target shares.
include(CMakeDependentOption)

option(QUIPU_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(QUIPU_BUILD_BENCH "Build the micro-benchmarks" OFF)
option(QUIPU_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(QUIPU_WERROR "Treat warnings as errors" OFF)
set(QUIPU_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(zstd IMPORTED_TARGET libzstd)  # without it, no compressed states
pkg_check_modules(libedit IMPORTED_TARGET libedit)  # without it, no line editing in `quipu chat`
find_package(CLI11 REQUIRED)

add_library(quipu_flags INTERFACE)
# -ffp-contract=off: a fused multiply-add happens where the code says so and nowhere else, so that the
# order and rounding of every sum is the same in each build (docs/architecture.md, "Determinism").
target_compile_options(quipu_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
if(QUIPU_WERROR)
  target_compile_options(quipu_flags INTERFACE -Werror)
endif()
if(QUIPU_SANITIZE)
  target_compile_options(quipu_flags INTERFACE -fsanitize=${QUIPU_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all)
  target_link_options(quipu_flags INTERFACE -fsanitize=${QUIPU_SANITIZE})
endif()
target_link_libraries(quipu_flags INTERFACE Threads::Threads)
