foreach(name attention attention_plan dispatch kv_storage row_ops)
  quipu_test(${name} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${name}_test.cpp DEPENDS quipu_backend)
endforeach()
