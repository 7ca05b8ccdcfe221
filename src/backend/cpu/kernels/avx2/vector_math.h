// The float functions of base/math.h for 8 lanes: the same operations in the same order, hence the same bits.
// Only files compiled for AVX2 may include it.
#pragma once

#include "backend/cpu/kernels/avx2/lanes.h"
#include "base/math.h"

namespace quipu::cpu::avx2 {
namespace {

struct ExpParts {
  __m256 rounded;  ///< n + kRound
  __m256 r;
  __m256 polynomial;  ///< q(r)
};

inline ExpParts exp_parts(__m256 x) {
  using exact_math::ExpF32;
  const __m256 round = _mm256_set1_ps(ExpF32::kRound);
  const __m256 rounded = _mm256_fmadd_ps(x, _mm256_set1_ps(ExpF32::kLog2E), round);
  const __m256 n = _mm256_sub_ps(rounded, round);
  const __m256 high = _mm256_fmadd_ps(n, _mm256_set1_ps(-ExpF32::kLn2High), x);
  const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-ExpF32::kLn2Low), high);
  __m256 q = _mm256_set1_ps(ExpF32::kQ[4]);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(ExpF32::kQ[3]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(ExpF32::kQ[2]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(ExpF32::kQ[1]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(ExpF32::kQ[0]));
  return {rounded, r, q};
}

inline __m256 power_of_two_times(__m256 value, __m256 rounded) {
  const __m256i shift = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), shift));
}

inline __m256 exp(__m256 x) {
  using exact_math::ExpF32;
  const ExpParts parts = exp_parts(x);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 value = _mm256_fmadd_ps(_mm256_fmadd_ps(parts.polynomial, parts.r, one), parts.r, one);
  // "not less" is true for NaN, so that underflow alone becomes zero
  const __m256 normal = _mm256_cmp_ps(x, _mm256_set1_ps(ExpF32::kUnderflow), _CMP_NLT_UQ);
  __m256 result = _mm256_and_ps(normal, power_of_two_times(value, parts.rounded));
  const __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(ExpF32::kOverflow), _CMP_GT_OQ);
  result = select(over, _mm256_set1_ps(__builtin_inff()), result);
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return select(nan, _mm256_set1_ps(__builtin_nanf("")), result);
}

inline __m256 sign_bits() {
  return _mm256_set1_ps(-0.0f);
}

inline __m256 negate(__m256 x) {
  return _mm256_xor_ps(x, sign_bits());
}

inline __m256 tanh(__m256 x) {
  const __m256 magnitude = _mm256_andnot_ps(sign_bits(), x);
  const __m256 limited = _mm256_min_ps(_mm256_set1_ps(exact_math::kTanhLimit), magnitude);  // NaN stays
  const ExpParts parts = exp_parts(_mm256_add_ps(limited, limited));
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 power = power_of_two_times(one, parts.rounded);
  const __m256 near_zero = _mm256_fmadd_ps(_mm256_mul_ps(parts.polynomial, parts.r), parts.r, parts.r);
  const __m256 expm1 = _mm256_fmadd_ps(near_zero, power, _mm256_sub_ps(power, one));
  const __m256 value = _mm256_div_ps(expm1, _mm256_add_ps(expm1, _mm256_set1_ps(2.0f)));
  return _mm256_or_ps(_mm256_and_ps(sign_bits(), x), value);
}

inline __m256 one_plus_exp_of_minus(__m256 x) {
  return _mm256_add_ps(_mm256_set1_ps(1.0f), exp(negate(x)));
}

inline __m256 sigmoid(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1.0f), one_plus_exp_of_minus(x));
}

inline __m256 silu(__m256 x) {
  return _mm256_div_ps(x, one_plus_exp_of_minus(x));
}

inline __m256 gelu_tanh(__m256 x) {
  const __m256 factor = _mm256_fmadd_ps(_mm256_set1_ps(exact_math::kGelu3), _mm256_mul_ps(x, x),
                                        _mm256_set1_ps(exact_math::kGelu1));
  return _mm256_div_ps(x, one_plus_exp_of_minus(_mm256_mul_ps(x, factor)));
}

}  // namespace
}  // namespace quipu::cpu::avx2
