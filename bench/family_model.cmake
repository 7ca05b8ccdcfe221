add_executable(family_model ${CMAKE_CURRENT_LIST_DIR}/family_model.cpp)
target_link_libraries(family_model PRIVATE quipu_model)
