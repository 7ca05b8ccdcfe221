// The bytes of a quantized input row. Rows start at multiples of 64 bytes (activation_row_bytes is one);
// blocks are in ascending k. Only plain structs here: vector code includes this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace quipu::cpu {

/// f32: [n_cols] floats. bf16: [n_cols rounded up to 2] bfloat16, rounded to nearest even.
/// q8_32: ActivationBlock32 for each 32 columns. q8_256: ActivationBlock256 for each 256.
///
/// A block of n: scale = amax / 127, quants = round to nearest even(x * (127 / amax)), in [-127, 127].
///  - amax below kActivationTiny: scale and quants are 0.
///  - an infinity or NaN in the block: scale is NaN and quants are 0, so that every output of the row is NaN.
inline constexpr float kActivationTiny = 0x1p-100f;

struct ActivationBlock32 {
  std::int8_t quants[32];
  float scale;
  std::int32_t sum;       ///< of the quants
  std::int32_t half_sum;  ///< of the first 16
};
static_assert(sizeof(ActivationBlock32) == 44);

struct ActivationBlock256 {
  std::int8_t quants[256];
  std::int32_t zero_shares[16];  ///< -32 times the sum of each 16 quants: the share of a zero point of 32
  std::int16_t sums32[8];        ///< of each 32 quants
  std::int16_t sums16[16];       ///< of each 16 quants
  float scale;
  std::int32_t unused[3];
};
static_assert(sizeof(ActivationBlock256) == 384);

/// The format that products with weights of a decodable type take.
ActivationFormat activation_format(ElementType weight_type);

/// Columns per block: rows have whole blocks.
std::size_t activation_block(ActivationFormat format);

/// Bytes of a row, a multiple of 64.
std::size_t activation_row_bytes(ActivationFormat format, std::size_t n_cols);

/// The i-th block of a row, by copy.
ActivationBlock32 activation_block32(const std::byte* row, std::size_t i);
ActivationBlock256 activation_block256(const std::byte* row, std::size_t i);

}  // namespace quipu::cpu
