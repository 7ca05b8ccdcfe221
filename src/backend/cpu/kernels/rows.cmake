# Operations on rows, attention, and the tables of kernels with their choice.
target_sources(quipu_backend PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dispatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kv_layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/row_ops.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/table.cpp)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(rows_avx512
    ${CMAKE_CURRENT_LIST_DIR}/avx512/attention.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/attention_scores.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/attention_values.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/encode_blocks.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/row_ops.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/store_cell.cpp)
  target_sources(quipu_backend PRIVATE ${rows_avx512} ${CMAKE_CURRENT_LIST_DIR}/avx512/table.cpp)
  # As in matmul.cmake: nothing inline that other files share is compiled here.
  set_source_files_properties(${rows_avx512} TARGET_DIRECTORY quipu_backend PROPERTIES COMPILE_OPTIONS
    "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx2;-mfma;-mf16c;-mbmi2;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/dispatch.cpp TARGET_DIRECTORY quipu_backend
    PROPERTIES COMPILE_DEFINITIONS QUIPU_AVX512_KERNELS)
endif()
