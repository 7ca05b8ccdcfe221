#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quipu {
namespace {

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
float next_up(float value) {
  return std::nextafter(value, HUGE_VALF);
}
float next_down(float value) {
  return std::nextafter(value, -HUGE_VALF);
}

// What the sixteen bits of an IEEE binary16 mean, by the definition.
double f16_by_definition(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(F16, EveryFiniteHalfHasTheValueOfItsDefinition) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    const auto each = static_cast<std::uint16_t>(half);
    if ((each & 0x7c00) == 0x7c00) continue;
    ASSERT_EQ(static_cast<double>(f16_to_f32(each)), f16_by_definition(each)) << half;
    ASSERT_EQ(std::signbit(f16_to_f32(each)), (each & 0x8000) != 0) << half;
  }
}

TEST(F16, EveryHalfButNansComesBack) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    if ((half & 0x7fffu) > 0x7c00u) continue;
    ASSERT_EQ(f32_to_f16(f16_to_f32(static_cast<std::uint16_t>(half))), half);
  }
}

TEST(F16, EveryNanStaysANanOfItsSignAndQuiet) {
  for (const unsigned sign : {0u, 0x8000u}) {
    for (unsigned payload = 1; payload < 1024; ++payload) {
      const auto half = static_cast<std::uint16_t>(sign | 0x7c00u | payload);
      const float value = f16_to_f32(half);
      ASSERT_TRUE(std::isnan(value)) << half;
      ASSERT_EQ(f32_to_f16(value), half | 0x200u);
    }
  }
}

TEST(F16, ANanWhosePayloadIsInItsLowBitsAloneStaysANan) {
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0x7f800001u)), 0x7e00);
  EXPECT_EQ(f32_to_f16(std::bit_cast<float>(0xff800001u)), 0xfe00);
}

TEST(F16, RoundsToTheNearestAndTiesToEven) {
  for (unsigned half = 0; half < 0x7bff; ++half) {
    const auto low = static_cast<std::uint16_t>(half);
    const auto high = static_cast<std::uint16_t>(half + 1);
    const float middle = (f16_to_f32(low) + f16_to_f32(high)) / 2;  // exact in a float
    ASSERT_EQ(f32_to_f16(middle), half % 2 == 0 ? low : high) << half;
    ASSERT_EQ(f32_to_f16(next_down(middle)), low) << half;
    ASSERT_EQ(f32_to_f16(next_up(middle)), high) << half;
    ASSERT_EQ(f32_to_f16(-next_up(middle)), high | 0x8000) << half;
  }
}

TEST(F16, BecomesInfiniteFromHalfAStepAboveTheLargest) {
  EXPECT_EQ(f32_to_f16(next_down(65520.0F)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(F16, KeepsTheSignOfWhatRoundsToZero) {
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(f32_to_f16(-0x1p-25F), 0x8000);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
}

TEST(Bf16, EveryValueButNansComesBack) {
  for (unsigned brain = 0; brain < 0x10000; ++brain) {
    if ((brain & 0x7fffu) > 0x7f80u) continue;
    const float value = bf16_to_f32(static_cast<std::uint16_t>(brain));
    ASSERT_EQ(bits(value), brain << 16);
    ASSERT_EQ(f32_to_bf16(value), brain);
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t brain = 0; brain < 0x7f80; ++brain) {
    const std::uint32_t middle = brain << 16 | 0x8000u;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), brain % 2 == 0 ? brain : brain + 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), brain);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), brain + 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>((middle + 1) | 0x80000000u)), (brain + 1) | 0x8000u);
  }
}

TEST(Bf16, EveryNanStaysANan) {
  for (const std::uint32_t nan : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(nan))))) << nan;
  }
}

TEST(Halves, ConvertAtCompileTime) {
  static_assert(f32_to_f16(1.0F) == 0x3c00);
  static_assert(f16_to_f32(0x0001) == 0x1p-24F);
  static_assert(f32_to_bf16(1.0F) == 0x3f80);
  static_assert(bf16_to_f32(0xc000) == -2.0F);
}

}  // namespace
}  // namespace quipu
