// A tensor as the file's table describes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/element_type.h"

namespace quipu::gguf {

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::uint64_t> dims;  ///< 1 to 4, innermost first, as in the file
  std::uint64_t n_elements = 0;
  std::uint64_t bytes = 0;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  ///< of the data, from the start of the shard's file
};

}  // namespace quipu::gguf
