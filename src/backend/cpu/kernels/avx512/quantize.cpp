// Quantization of activations; the rule is in kernels/activation.h.
#include <immintrin.h>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// The largest magnitude of 16 * n floats as bits: infinities and NaN come out above every number.
template <int n>
std::uint32_t largest_magnitude(const float* x) {
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  __m512i largest = _mm512_setzero_si512();
  for (int i = 0; i < n; ++i) {
    largest = _mm512_max_epu32(largest, _mm512_and_si512(_mm512_loadu_si512(x + 16 * i), mask));
  }
  return _mm512_reduce_max_epu32(largest);
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

/// 16 floats to int8, as int32. Not a number times zero is masked to zero by the conversion's caller.
__m512i quantize_16(const float* x, __mmask16 keep, __m512 inverse) {
  return _mm512_maskz_cvt_roundps_epi32(keep, _mm512_mul_ps(_mm512_loadu_ps(x), inverse),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

void store_16(__m512i quants, std::int8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(quants));
}

void quantize_32(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 32; ++i, x += 32) {
    const Scale scale = scale_of(largest_magnitude<2>(x));
    const __mmask16 keep = scale.inverse > 0.0f ? 0xffff : 0;
    const __m512 inverse = _mm512_set1_ps(scale.inverse);
    const __m512i first = quantize_16(x, keep, inverse);
    const __m512i second = quantize_16(x + 16, keep, inverse);
    ActivationBlock32 block;
    store_16(first, block.quants);
    store_16(second, block.quants + 16);
    block.scale = scale.scale;
    block.half_sum = _mm512_reduce_add_epi32(first);
    block.sum = block.half_sum + _mm512_reduce_add_epi32(second);
    __builtin_memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

void quantize_256(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 256; ++i, x += 256) {
    const Scale scale = scale_of(largest_magnitude<16>(x));
    const __mmask16 keep = scale.inverse > 0.0f ? 0xffff : 0;
    const __m512 inverse = _mm512_set1_ps(scale.inverse);
    ActivationBlock256 block{};
    for (int run = 0; run < 16; ++run) {
      const __m512i quants = quantize_16(x + 16 * run, keep, inverse);
      store_16(quants, block.quants + 16 * run);
      const int sum = _mm512_reduce_add_epi32(quants);
      block.sums16[run] = static_cast<std::int16_t>(sum);
      block.zero_shares[run] = -32 * sum;
    }
    for (int run = 0; run < 8; ++run) {
      block.sums32[run] = static_cast<std::int16_t>(block.sums16[2 * run] + block.sums16[2 * run + 1]);
    }
    block.scale = scale.scale;
    __builtin_memcpy(out + i * sizeof block, &block, sizeof block);
  }
}

/// To nearest even by integers: the instruction that converts to bfloat16 would turn subnormal numbers into
/// zero.
__m256i to_bf16(__m512i bits) {
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __mmask16 is_nan =
      _mm512_cmpgt_epu32_mask(magnitude, _mm512_set1_epi32(static_cast<int>(kInfinityBits)));
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan, quiet));
}

void quantize_bf16(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t k = 0; k < n_cols; k += 16) {
    const std::size_t n = n_cols - k < 16 ? n_cols - k : 16;
    const auto keep = static_cast<__mmask16>((1u << n) - 1);
    const auto written = static_cast<__mmask16>((1u << (n + n % 2)) - 1);
    const __m256i halves = to_bf16(_mm512_maskz_loadu_epi32(keep, x + k));
    _mm256_mask_storeu_epi16(out + k * sizeof(std::uint16_t), written, halves);
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

}  // namespace quipu::cpu::avx512
