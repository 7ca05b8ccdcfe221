// Weights for tests of the CPU kernels: rows in the file's bytes, every bit pattern of quants and integer
// scales, block scales of moderate size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/element_type.h"

namespace quipu::test {

inline std::vector<ElementType> decodable_types() {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& type : all_element_types()) {
    if (type.decodable) types.push_back(type.type);
  }
  return types;
}

/// Calls `visit` with an empty block of the type.
template <typename Visit>
auto with_block(ElementType type, Visit visit) {
  switch (type) {
    case ElementType::q4_1: return visit(BlockQ4_1{});
    case ElementType::q5_0: return visit(BlockQ5_0{});
    case ElementType::q5_1: return visit(BlockQ5_1{});
    case ElementType::q8_0: return visit(BlockQ8_0{});
    case ElementType::iq4_nl: return visit(BlockIQ4_NL{});
    case ElementType::q2_k: return visit(BlockQ2_K{});
    case ElementType::q3_k: return visit(BlockQ3_K{});
    case ElementType::q4_k: return visit(BlockQ4_K{});
    case ElementType::q5_k: return visit(BlockQ5_K{});
    case ElementType::q6_k: return visit(BlockQ6_K{});
    case ElementType::iq4_xs: return visit(BlockIQ4_XS{});
    case ElementType::mxfp4: return visit(BlockMXFP4{});
    case ElementType::nvfp4: return visit(BlockNVFP4{});
    default: return visit(BlockQ4_0{});
  }
}

inline std::vector<std::byte> random_bytes(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Puts halves that `next` gives where a row of blocks has its scales.
template <typename Next>
void set_scales(ElementType type, std::span<std::byte> rows, Next next) {
  with_block(type, [&]<typename Block>(Block) {
    for (std::size_t at = 0; at < rows.size(); at += sizeof(Block)) {
      Block block = load_block<Block>(rows.data() + at);
      if constexpr (requires { block.d; }) block.d = next();
      if constexpr (requires { block.m; }) block.m = next();
      if constexpr (requires { block.dmin; }) block.dmin = next();
      std::memcpy(rows.data() + at, &block, sizeof block);
    }
  });
}

/// Scales near one for the types that have codes of floats as scales.
inline void moderate_codes(ElementType type, std::span<std::byte> rows, std::mt19937& random) {
  const std::size_t block_bytes = info(type).block_bytes;
  for (std::size_t at = 0; at < rows.size(); at += block_bytes) {
    if (type == ElementType::mxfp4) rows[at] = static_cast<std::byte>(120 + random() % 4);
    for (std::size_t i = 0; type == ElementType::nvfp4 && i < 4; ++i) {
      rows[at + i] = static_cast<std::byte>(random() % 48);
    }
  }
}

/// `n_rows` rows of `n_cols` elements, as a file holds them.
inline std::vector<std::byte> random_weights(ElementType type, std::size_t n_rows, std::size_t n_cols,
                                             std::uint32_t seed) {
  std::vector<std::byte> rows = random_bytes(n_rows * row_bytes(type, n_cols), seed);
  std::mt19937 random(seed + 1);
  std::normal_distribution<float> normal;
  if (info(type).block_elements > 1) {
    set_scales(type, rows, [&] { return f32_to_f16(0.01f * normal(random)); });
    moderate_codes(type, rows, random);
    return rows;
  }
  for (std::size_t i = 0; i < n_rows * n_cols; ++i) {
    const float value = normal(random);
    const std::uint16_t half = type == ElementType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
    if (type == ElementType::f32) {
      std::memcpy(rows.data() + 4 * i, &value, 4);
    } else {
      std::memcpy(rows.data() + 2 * i, &half, 2);
    }
  }
  return rows;
}

/// Widths worth trying: whole blocks, also odd ones for floats and no multiples of 256 for blocks of 32.
inline std::vector<std::size_t> interesting_widths(ElementType type) {
  switch (info(type).block_elements) {
    case 1: return {1, 2, 15, 16, 17, 255, 256, 257, 333};
    case 32: return {32, 96, 288, 1056};
    case 64: return {64, 128, 320, 1088};
    default: return {256, 768, 1280};
  }
}

}  // namespace quipu::test
