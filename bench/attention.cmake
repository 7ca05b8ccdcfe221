add_executable(attention_bench ${CMAKE_CURRENT_LIST_DIR}/attention_bench.cpp)
target_link_libraries(attention_bench PRIVATE quipu_backend benchmark::benchmark benchmark::benchmark_main)
