add_executable(sampling_bench ${CMAKE_CURRENT_LIST_DIR}/sampling_bench.cpp)
target_link_libraries(sampling_bench PRIVATE quipu_api benchmark::benchmark benchmark::benchmark_main)
