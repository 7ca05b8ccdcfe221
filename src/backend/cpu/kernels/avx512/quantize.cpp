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

/// 16 floats to int8, as int32. Not a number times zero is masked to zero.
__m512i quantize_16(const float* x, __mmask16 keep, __m512 inverse) {
  return _mm512_maskz_cvt_roundps_epi32(keep, _mm512_mul_ps(_mm512_loadu_ps(x), inverse),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// The quants of 64 floats, in order.
__m512i quantize_64(const float* x, __mmask16 keep, __m512 inverse) {
  const __m512i ab = _mm512_packs_epi32(quantize_16(x, keep, inverse), quantize_16(x + 16, keep, inverse));
  const __m512i cd =
      _mm512_packs_epi32(quantize_16(x + 32, keep, inverse), quantize_16(x + 48, keep, inverse));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd));
}

/// Sums of each four.
__m512i sums_of_4(__m512i quants) {
  return _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), quants);
}

/// Sums of each 16 of 256 quants, given those of each four.
__m512i sums_of_16(const __m512i (&fours)[4]) {
  const __m512i ab =
      _mm512_add_epi32(_mm512_unpacklo_epi32(fours[0], fours[1]), _mm512_unpackhi_epi32(fours[0], fours[1]));
  const __m512i cd =
      _mm512_add_epi32(_mm512_unpacklo_epi32(fours[2], fours[3]), _mm512_unpackhi_epi32(fours[2], fours[3]));
  const __m512i sums = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, sums);
}

void quantize_32(const float* x, std::size_t n_cols, std::byte* out) {
  for (std::size_t i = 0; i < n_cols / 32; ++i, x += 32) {
    const Scale scale = scale_of(largest_magnitude<2>(x));
    const __mmask16 keep = scale.inverse > 0.0f ? 0xffff : 0;
    const __m512 inverse = _mm512_set1_ps(scale.inverse);
    const __m512i first = quantize_16(x, keep, inverse);
    const __m512i second = quantize_16(x + 16, keep, inverse);
    ActivationBlock32 block;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(block.quants), _mm512_cvtepi32_epi8(first));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(block.quants + 16), _mm512_cvtepi32_epi8(second));
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
    __m512i fours[4];
    for (int quarter = 0; quarter < 4; ++quarter) {
      const __m512i quants = quantize_64(x + 64 * quarter, keep, inverse);
      _mm512_storeu_si512(block.quants + 64 * quarter, quants);
      fours[quarter] = sums_of_4(quants);
    }
    const __m512i sums = sums_of_16(fours);
    const __m256i sums16 = _mm512_cvtepi32_epi16(sums);
    const __m256i sums32 = _mm256_madd_epi16(sums16, _mm256_set1_epi16(1));
    _mm512_storeu_si512(block.zero_shares,
                        _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, 5)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.sums16), sums16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(block.sums32), _mm256_cvtepi32_epi16(sums32));
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
