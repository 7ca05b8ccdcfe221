// The reference of activation quantization; the rule is in kernels/activation.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/instruction_sets.h"
#include "base/half.h"

namespace quipu::cpu::scalar {
namespace {

/// Fills `quants` and returns the scale.
float quantize_block(const float* x, std::size_t n, std::int8_t* quants) {
  std::fill_n(quants, n, std::int8_t{0});
  float amax = 0.0f;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    amax = std::max(amax, std::fabs(x[i]));
  }
  if (amax < kActivationTiny) return 0.0f;
  const float inverse = 127.0f / amax;
  for (std::size_t i = 0; i < n; ++i) quants[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
  return amax / 127.0f;
}

std::int32_t sum_of(const std::int8_t* quants, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += quants[i];
  return sum;
}

void quantize_32(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 32; ++i) {
    ActivationBlock32 block;
    block.scale = quantize_block(x + 32 * i, 32, block.quants);
    block.sum = sum_of(block.quants, 32);
    block.half_sum = sum_of(block.quants, 16);
    std::memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

void quantize_256(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 256; ++i) {
    ActivationBlock256 block{};
    block.scale = quantize_block(x + 256 * i, 256, block.quants);
    for (std::size_t run = 0; run < 16; ++run) {
      const std::int32_t sum = sum_of(block.quants + 16 * run, 16);
      block.sums16[run] = static_cast<std::int16_t>(sum);
      block.zero_shares[run] = -32 * sum;
    }
    for (std::size_t run = 0; run < 8; ++run) {
      block.sums32[run] = static_cast<std::int16_t>(sum_of(block.quants + 32 * run, 32));
    }
    std::memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

void quantize_bf16(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t k = 0; k < n_cols + n_cols % 2; ++k) {
    const std::uint16_t bits = k < n_cols ? f32_to_bf16(x[k]) : std::uint16_t{0};
    std::memcpy(out + k * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

QuantizeKernel quantize_kernel(ActivationFormat format) {
  switch (format) {
    case ActivationFormat::f32: return nullptr;
    case ActivationFormat::bf16: return quantize_bf16;
    case ActivationFormat::q8_32: return quantize_32;
    case ActivationFormat::q8_256: return quantize_256;
  }
  return nullptr;
}

}  // namespace quipu::cpu::scalar
