add_executable(matmul_bench ${CMAKE_CURRENT_LIST_DIR}/matmul_bench.cpp)
target_link_libraries(matmul_bench PRIVATE quipu_backend benchmark::benchmark)
