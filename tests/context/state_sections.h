// Where the sections of a saved state begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "context/state/state_format.h"

namespace quipu::test {

/// Of the state and each section: its beginning, its fields, its content's end, and its end.
inline std::vector<std::size_t> boundaries(std::span<const std::byte> bytes) {
  std::vector<std::size_t> result{0, 8, 12, 16, 20, 24, 32};
  std::size_t offset = kStateHeaderBytes;
  while (offset < bytes.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + offset + 8, sizeof(length));
    for (const std::size_t inner : {std::size_t{0}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
      result.push_back(offset + inner);
    }
    result.push_back(offset + 16 + length);
    offset += kStateSectionBytes + length;
  }
  return result;
}

}  // namespace quipu::test
