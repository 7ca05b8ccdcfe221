// Sums of products of planes with activations: unsigned bytes of 8 rows x 4 k times four int8. A Dot has
//   Plane, plane(bytes)      a plane, made ready for products with several tokens
//   add(sum, plane, x)       sum + plane . x
//   kPairs                   how many pairs of planes a sum has room for
//   end(sum)                 the sum as int32 for each row
//   end(sum, scales)         the same times each row's integer scale, which scales(int32) makes ready
//   kTakesZeroPoint          planes have a zero point of 128, and it has been taken off
#pragma once

#include "backend/cpu/kernels/avx2/lanes.h"

namespace quipu::cpu::avx2 {
namespace {

/// Small numbers: int16 sums of two k each, as long as they have room.
template <int kLargest>
struct ShortDot {
  static constexpr bool kTakesZeroPoint = false;
  static constexpr int kOfPair = 2 * 2 * 127 * kLargest;  // two planes, two k
  static constexpr int kPairs = 4 * kOfPair <= INT16_MAX ? 4 : 2 * kOfPair <= INT16_MAX ? 2 : 1;
  static_assert(kOfPair <= INT16_MAX);
  using Plane = __m256i;

  static Plane plane(__m256i bytes) { return bytes; }
  static __m256i add(__m256i sum, Plane plane, __m256i x) {
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(plane, x));
  }
  static __m256i end(__m256i sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
  static __m256i scales(__m256i scales) {
    return _mm256_blend_epi16(scales, _mm256_slli_epi32(scales, 16), 0xaa);
  }
  static __m256i end(__m256i sum, __m256i scales) { return _mm256_madd_epi16(sum, scales); }
};

/// Any bytes with a zero point of 128. Products of unsigned with signed bytes have room for 128 * 127, so the
/// sign of the weight goes to the activation.
struct SignedDot {
  static constexpr bool kTakesZeroPoint = true;
  static constexpr int kPairs = 4;
  struct Plane {
    __m256i number;
    __m256i magnitude;
  };

  static Plane plane(__m256i bytes) {
    const __m256i number = _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
    return {number, _mm256_abs_epi8(number)};
  }
  static __m256i add(__m256i sum, Plane plane, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(plane.magnitude, _mm256_sign_epi8(x, plane.number));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static __m256i end(__m256i sum) { return sum; }
  static __m256i scales(__m256i scales) { return scales; }
  static __m256i end(__m256i sum, __m256i scales) { return _mm256_mullo_epi32(sum, scales); }
};

/// AVX2 alone.
struct PlainDots {
  static constexpr std::size_t kWideTokens = 4;
  template <int kLargest>
  struct Choice {
    using Dot = ShortDot<kLargest>;
  };
};
template <>
struct PlainDots::Choice<255> {
  using Dot = SignedDot;
};
template <>
struct PlainDots::Choice<241> {
  using Dot = SignedDot;
};

/// With an instruction for all of it.
template <__m256i (*kDot)(__m256i sum, __m256i bytes, __m256i x)>
struct VnniDots {
  static constexpr std::size_t kWideTokens = 6;
  struct Dot {
    static constexpr bool kTakesZeroPoint = false;
    static constexpr int kPairs = 4;
    using Plane = __m256i;
    static Plane plane(__m256i bytes) { return bytes; }
    static __m256i add(__m256i sum, Plane plane, __m256i x) { return kDot(sum, plane, x); }
    static __m256i end(__m256i sum) { return sum; }
    static __m256i scales(__m256i scales) { return scales; }
    static __m256i end(__m256i sum, __m256i scales) { return _mm256_mullo_epi32(sum, scales); }
  };
  template <int>
  struct Choice {
    using Dot = VnniDots::Dot;
  };
};

}  // namespace
}  // namespace quipu::cpu::avx2
