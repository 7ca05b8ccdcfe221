// The float functions of base/math.h for 16 lanes: the same operations in the same order, hence the same
// bits. Only files compiled for AVX-512 may include it.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/math.h"

namespace quipu::cpu::avx512 {

/// Lane i takes lane i + 8, then i + 4, i + 2, i + 1; the sum ends in lane 0.
static inline float fold_sum(__m512 x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Maximum of the lanes, folded in the same order; the second operand wins ties and NaN, as vmaxps says.
static inline float fold_max(__m512 x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

struct ExpParts {
  __m512 rounded;  ///< n + kRound
  __m512 r;
  __m512 polynomial;  ///< q(r)
};

static inline ExpParts exp_parts(__m512 x) {
  using exact_math::ExpF32;
  const __m512 round = _mm512_set1_ps(ExpF32::kRound);
  const __m512 rounded = _mm512_fmadd_ps(x, _mm512_set1_ps(ExpF32::kLog2E), round);
  const __m512 n = _mm512_sub_ps(rounded, round);
  const __m512 high = _mm512_fmadd_ps(n, _mm512_set1_ps(-ExpF32::kLn2High), x);
  const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-ExpF32::kLn2Low), high);
  __m512 q = _mm512_set1_ps(ExpF32::kQ[4]);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(ExpF32::kQ[3]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(ExpF32::kQ[2]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(ExpF32::kQ[1]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(ExpF32::kQ[0]));
  return {rounded, r, q};
}

static inline __m512 power_of_two_times(__m512 value, __m512 rounded) {
  const __m512i shift = _mm512_slli_epi32(_mm512_castps_si512(rounded), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(value), shift));
}

static inline __m512 exp(__m512 x) {
  using exact_math::ExpF32;
  const ExpParts parts = exp_parts(x);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 value = _mm512_fmadd_ps(_mm512_fmadd_ps(parts.polynomial, parts.r, one), parts.r, one);
  // "not less" is true for NaN, so that underflow alone becomes zero
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(ExpF32::kUnderflow), _CMP_NLT_UQ);
  __m512 result = _mm512_maskz_mov_ps(normal, power_of_two_times(value, parts.rounded));
  const __mmask16 over = _mm512_cmp_ps_mask(x, _mm512_set1_ps(ExpF32::kOverflow), _CMP_GT_OQ);
  result = _mm512_mask_mov_ps(result, over, _mm512_set1_ps(__builtin_inff()));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(result, nan, _mm512_set1_ps(__builtin_nanf("")));
}

/// exp(x) in the lanes of `mask`, 0 in the others; for x <= 0 or NaN. There is nothing to overflow, and
/// scalef lets NaN through, where exp() has to look for it.
static inline __m512 exp_not_positive(__mmask16 mask, __m512 x) {
  using exact_math::ExpF32;
  const ExpParts parts = exp_parts(x);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 value = _mm512_fmadd_ps(_mm512_fmadd_ps(parts.polynomial, parts.r, one), parts.r, one);
  const __mmask16 normal = _mm512_mask_cmp_ps_mask(mask, x, _mm512_set1_ps(ExpF32::kUnderflow), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(normal, value, _mm512_sub_ps(parts.rounded, _mm512_set1_ps(ExpF32::kRound)));
}

static inline __m512 negate(__m512 x) {
  return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));
}

static inline __m512 tanh(__m512 x) {
  const __m512i sign_bit = _mm512_set1_epi32(INT32_MIN);
  const __m512 magnitude = _mm512_castsi512_ps(_mm512_andnot_si512(sign_bit, _mm512_castps_si512(x)));
  const __m512 limited = _mm512_min_ps(_mm512_set1_ps(exact_math::kTanhLimit), magnitude);  // NaN stays
  const ExpParts parts = exp_parts(_mm512_add_ps(limited, limited));
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 power = power_of_two_times(one, parts.rounded);
  const __m512 near_zero = _mm512_fmadd_ps(_mm512_mul_ps(parts.polynomial, parts.r), parts.r, parts.r);
  const __m512 expm1 = _mm512_fmadd_ps(near_zero, power, _mm512_sub_ps(power, one));
  const __m512 value = _mm512_div_ps(expm1, _mm512_add_ps(expm1, _mm512_set1_ps(2.0f)));
  const __m512i sign = _mm512_and_si512(sign_bit, _mm512_castps_si512(x));
  return _mm512_castsi512_ps(_mm512_or_si512(sign, _mm512_castps_si512(value)));
}

static inline __m512 one_plus_exp_of_minus(__m512 x) {
  return _mm512_add_ps(_mm512_set1_ps(1.0f), exp(negate(x)));
}

static inline __m512 sigmoid(__m512 x) {
  return _mm512_div_ps(_mm512_set1_ps(1.0f), one_plus_exp_of_minus(x));
}

static inline __m512 silu(__m512 x) {
  return _mm512_div_ps(x, one_plus_exp_of_minus(x));
}

static inline __m512 gelu_tanh(__m512 x) {
  const __m512 factor = _mm512_fmadd_ps(_mm512_set1_ps(exact_math::kGelu3), _mm512_mul_ps(x, x),
                                        _mm512_set1_ps(exact_math::kGelu1));
  return _mm512_div_ps(x, one_plus_exp_of_minus(_mm512_mul_ps(x, factor)));
}

}  // namespace quipu::cpu::avx512
