# Matrix products, operations on rows and attention, for each instruction set, and the choice between them.
target_sources(quipu_backend PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/../packed_matrix.cpp
  ${CMAKE_CURRENT_LIST_DIR}/activation.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dispatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kv_layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pack_panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/roofline.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/quantize.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/row_ops.cpp)

# quipu_kernels(OPTIONS FILES...): files of a folder for an instruction set. They keep to themselves (unnamed
# namespaces, headers of plain data): nothing inline that other files share may be compiled for it.
# GCC's own intrinsics headers set off its warnings about uninitialized values.
function(quipu_kernels options)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_LIST_DIR}/ OUTPUT_VARIABLE files)
  target_sources(quipu_backend PRIVATE ${files})
  set_source_files_properties(${files} TARGET_DIRECTORY quipu_backend PROPERTIES COMPILE_OPTIONS
    "${options};$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c)  # what base/cpu_features.h calls AVX2, and no more
  set(avx512 ${avx2} -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
  quipu_kernels("${avx2}"
    avx2/attention.cpp avx2/attention_scores.cpp avx2/attention_values.cpp avx2/encode_blocks.cpp avx2/matmul.cpp
    avx2/matmul_float.cpp avx2/quantize.cpp avx2/row_ops.cpp avx2/store_cell.cpp)
  quipu_kernels("${avx2};-mavxvnni" avx2/matmul_vnni.cpp)
  quipu_kernels("${avx2};-mavx512vl;-mavx512vnni" avx2/matmul_evex_vnni.cpp)
  quipu_kernels("${avx512}"
    avx512/attention.cpp avx512/attention_scores.cpp avx512/attention_values.cpp avx512/encode_blocks.cpp
    avx512/matmul.cpp avx512/matmul_k.cpp avx512/matmul_legacy.cpp avx512/quantize.cpp avx512/row_ops.cpp
    avx512/store_cell.cpp)
  quipu_kernels("${avx512};-mavx512bf16" avx512/matmul_float.cpp)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/dispatch.cpp TARGET_DIRECTORY quipu_backend
    PROPERTIES COMPILE_DEFINITIONS QUIPU_X86_KERNELS)
endif()
