// The rules on names, shapes, sizes and alignment that reading and writing share. All arithmetic is checked;
// a broken
// rule is an Error with the code that the caller passes, and names the file (`origin`) and the key or tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "quipu/error.h"

namespace quipu::gguf {

inline constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF" in a little-endian file
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::uint32_t kDefaultAlignment = 32;
inline constexpr std::uint32_t kLeastAlignment = 8;  // the format asks for a multiple of 8
inline constexpr std::size_t kMaxDims = 4;
inline constexpr std::uint64_t kMaxKeyBytes = 65535;

/// What `general.alignment` says, or the default.
std::uint32_t alignment_of(const Metadata& metadata, ErrorCode code);

struct TensorSize {
  std::uint64_t n_elements;
  std::uint64_t bytes;
};

/// 1 to 4 dimensions, none of them 0, whole blocks in the innermost, everything within a signed 64-bit
/// number.
TensorSize tensor_size(ElementType type, std::span<const std::uint64_t> dims, ErrorCode code,
                       std::string_view origin, std::string_view name);

/// Checks that the tensors' data, at absolute offsets, lies inside a file of `file_bytes` and that no two
/// share a byte. A file that ends inside the padding behind its last tensor has been cut short and is refused
/// too.
void check_ranges(std::span<const TensorInfo> tensors, std::uint32_t alignment, std::uint64_t file_bytes,
                  std::string_view origin);

}  // namespace quipu::gguf
