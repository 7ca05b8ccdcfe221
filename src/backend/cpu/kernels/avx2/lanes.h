// Sixteen floats in two registers, and the first few of eight. Only files compiled for AVX2 may include it;
// everything is in an unnamed namespace, since nothing compiled for AVX2 may be shared with other files.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace quipu::cpu::avx2 {
namespace {

constexpr std::size_t kWidth = 8;

/// Lane i of sixteen is lane i of `low`, or lane i - 8 of `high`.
struct Floats16 {
  __m256 low, high;
};

/// All bits set in the first `count` lanes; all of them for 8 and more.
inline __m256i first_lanes(std::size_t count) {
  const int n = count < kWidth ? static_cast<int>(count) : static_cast<int>(kWidth);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// The first `count` floats at `x`, zeros in the other lanes.
inline __m256 load_first(const float* x, std::size_t count) {
  return count >= kWidth ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(count));
}

inline void store_first(float* x, std::size_t count, __m256 value) {
  if (count >= kWidth) {
    _mm256_storeu_ps(x, value);
  } else {
    _mm256_maskstore_ps(x, first_lanes(count), value);
  }
}

inline __m256 keep_first(__m256 value, std::size_t count) {
  return _mm256_and_ps(value, _mm256_castsi256_ps(first_lanes(count)));
}

/// Where `mask` is set `yes`, else `no`.
inline __m256 select(__m256 mask, __m256 yes, __m256 no) {
  return _mm256_blendv_ps(no, yes, mask);
}

/// The four bytes at `from` in all lanes.
inline __m256i broadcast(const std::byte* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return _mm256_set1_epi32(word);
}

inline __m256 broadcast_float(const std::byte* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof value);
  return _mm256_set1_ps(value);
}

inline __m256i load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

inline __m128i load_half(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// 8 bytes, in the lower half.
inline __m128i load_quarter(const std::byte* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

/// 8 f16.
inline __m256 load_halves(const std::byte* from) {
  return _mm256_cvtph_ps(load_half(from));
}

/// 8 bf16.
inline __m256 load_brains(const std::byte* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(from)), 16));
}

inline Floats16 load_16(const float* x) {
  return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + kWidth)};
}

inline void store_16(float* x, Floats16 value) {
  _mm256_storeu_ps(x, value.low);
  _mm256_storeu_ps(x + kWidth, value.high);
}

/// Lane i takes lane i + 8, then i + 4, i + 2, i + 1; the sum ends in lane 0.
inline float fold_sum(Floats16 x) {
  const __m256 eight = _mm256_add_ps(x.low, x.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Maximum of the lanes, folded in the same order; the second operand wins ties and NaN, as vmaxps says.
inline float fold_max(Floats16 x) {
  const __m256 eight = _mm256_max_ps(x.low, x.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// Sum of eight int32.
inline std::int32_t sum_of(__m256i x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

}  // namespace
}  // namespace quipu::cpu::avx2
