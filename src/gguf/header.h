// Parsing one GGUF file, from the magic number to the end of the tensor table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/byte_cursor.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace quipu::gguf {

struct Header {
  std::uint32_t version = 0;
  std::uint32_t alignment = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  ///< offsets absolute, ranges checked against the file's size; shard 0
};

/// Everything but repeated tensor names is checked: those are for whoever joins the shards. Memory stays
/// within a few times the bytes parsed. Throws as Reader::open does.
Header parse_header(ByteCursor& cursor, const std::string& origin);

}  // namespace quipu::gguf
