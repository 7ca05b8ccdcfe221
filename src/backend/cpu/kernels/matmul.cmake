# Matrix products: packing, activations, and one folder for each instruction set.
target_sources(quipu_backend PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/../packed_matrix.cpp
  ${CMAKE_CURRENT_LIST_DIR}/activation.cpp
  ${CMAKE_CURRENT_LIST_DIR}/panel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scalar/quantize.cpp)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(matmul_avx512
    ${CMAKE_CURRENT_LIST_DIR}/avx512/matmul_float.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/matmul_k.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/matmul_legacy.cpp
    ${CMAKE_CURRENT_LIST_DIR}/avx512/quantize.cpp)
  target_sources(quipu_backend PRIVATE ${CMAKE_CURRENT_LIST_DIR}/avx512/matmul.cpp ${matmul_avx512})
  # These files keep to themselves (unnamed namespaces, headers of plain data): nothing inline that other files
  # share may be compiled for AVX-512.
  # GCC's own intrinsics headers set off its warnings about uninitialized values.
  set_source_files_properties(${matmul_avx512} TARGET_DIRECTORY quipu_backend PROPERTIES COMPILE_OPTIONS
    "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx512bf16;-mavx2;-mfma;-mf16c;-mbmi2;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
endif()
