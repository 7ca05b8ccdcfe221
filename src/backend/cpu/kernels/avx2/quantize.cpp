// Quantization of activations; the rule is in kernels/activation.h.
#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/avx2/lanes.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// The largest magnitude of n floats (n a multiple of 8) as bits: infinities and NaN come out above every
/// number.
std::uint32_t largest_magnitude(const float* x, std::size_t n) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i));
    largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, mask));
  }
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  const __m128i two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1))));
}

struct Scale {
  float scale;
  float inverse;  ///< 0 where all quants are 0
};

Scale scale_of(std::uint32_t magnitude) {
  if (magnitude >= kInfinityBits) return {__builtin_nanf(""), 0.0f};
  const float amax = __builtin_bit_cast(float, magnitude);
  if (amax < kActivationTiny) return {0.0f, 0.0f};
  return {amax / 127.0f, 127.0f / amax};
}

__m256i quantize_8(const float* x, __m256 inverse) {
  const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x), inverse);
  return _mm256_cvtps_epi32(_mm256_round_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// 16 floats to int8; returns their sum. All zero where the inverse is, whatever the floats are.
std::int32_t quantize_16(const float* x, float inverse, std::int8_t* to) {
  __m256i shorts = _mm256_setzero_si256();
  if (inverse > 0.0f) {
    const __m256 factor = _mm256_set1_ps(inverse);
    shorts = _mm256_packs_epi32(quantize_8(x, factor), quantize_8(x + kWidth, factor));
    shorts = _mm256_permute4x64_epi64(shorts, 0xd8);
  }
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  return sum_of(_mm256_madd_epi16(shorts, _mm256_set1_epi16(1)));
}

void quantize_32(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 32; ++i, x += 32) {
    const Scale scale = scale_of(largest_magnitude(x, 32));
    ActivationBlock32 block;
    block.scale = scale.scale;
    block.half_sum = quantize_16(x, scale.inverse, block.quants);
    block.sum = block.half_sum + quantize_16(x + 16, scale.inverse, block.quants + 16);
    __builtin_memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

void quantize_256(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 256; ++i, x += 256) {
    const Scale scale = scale_of(largest_magnitude(x, 256));
    ActivationBlock256 block{};
    for (std::size_t run = 0; run < 16; ++run) {
      const std::int32_t sum = quantize_16(x + 16 * run, scale.inverse, block.quants + 16 * run);
      block.sums16[run] = static_cast<std::int16_t>(sum);
      block.zero_shares[run] = -32 * sum;
    }
    for (std::size_t run = 0; run < 8; ++run) {
      block.sums32[run] = static_cast<std::int16_t>(block.sums16[2 * run] + block.sums16[2 * run + 1]);
    }
    block.scale = scale.scale;
    __builtin_memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

/// To nearest even by integers, as f32_to_bf16() of base/half.h; 8 numbers.
__m128i to_bf16(__m256i bits) {
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(static_cast<int>(kInfinityBits)));
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i brains = _mm256_blendv_epi8(rounded, quiet, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(brains), _mm256_extracti128_si256(brains, 1));
}

void quantize_bf16(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t k = 0; k < n_cols; k += kWidth) {
    const std::size_t n = n_cols - k < kWidth ? n_cols - k : kWidth;
    const __m128i brains = to_bf16(_mm256_castps_si256(load_first(x + k, n)));
    __builtin_memcpy(out + k * sizeof(std::uint16_t), &brains, (n + n % 2) * sizeof(std::uint16_t));
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

}  // namespace quipu::cpu::avx2
