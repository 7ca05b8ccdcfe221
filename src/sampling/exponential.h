// e^x for x <= 0 in fixed single-precision steps. The C library's varies with its version and the processor,
// and a draw must not.
#pragma once

#include <bit>
#include <cstdint>

namespace quipu::sampling {

/// e^x for x in [-inf, 0], within 2 units in the last place; below -87 the result is 0. Written without
/// branches and calls, so that loops over it vectorize.
inline float exponential(float x) {
  constexpr float kLowest = -87.0f;  // e^-87 is about 1.6e-38, just above the least normal number
  constexpr float kLog2E = 1.44269504f;
  // ln 2 in two parts: the upper has few enough bits that n times it is exact for |n| <= 127.
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits

  const float clamped = x < kLowest ? kLowest : x;
  const float shifted = clamped * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  // Taylor polynomial of degree 7 on |r| <= ln(2)/2: its remainder is under 6e-9.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::uint32_t exponent =
      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 127) << 23;
  const float value = p * std::bit_cast<float>(exponent);
  return x < kLowest ? 0.0f : value;
}

}  // namespace quipu::sampling
