add_executable(tokenize_bench ${CMAKE_CURRENT_LIST_DIR}/tokenize_bench.cpp)
target_link_libraries(tokenize_bench PRIVATE quipu_vocab)
