#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kernels/activation.h"
#include "base/half.h"

namespace quipu::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> quantize(const KernelTable& kernels, ActivationFormat format,
                                const std::vector<float>& x) {
  std::vector<std::byte> row(activation_row_bytes(format, x.size()), std::byte{0xee});
  kernels.quantize(format)(x.data(), x.size(), row.data());
  return row;
}

std::vector<float> noise(std::size_t n, std::uint32_t seed, float size = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, size);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

class QuantizeWith : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Sets, QuantizeWith, testing::ValuesIn(test::kernel_tables()),
                         [](const auto& tested) { return test::name_of(tested.param); });

TEST_P(QuantizeWith, RowsAreMultiplesOfALine) {
  for (const auto format :
       {ActivationFormat::f32, ActivationFormat::bf16, ActivationFormat::q8_32, ActivationFormat::q8_256}) {
    EXPECT_EQ(activation_row_bytes(format, 768) % 64, 0u);
  }
}

TEST_P(QuantizeWith, BlocksOf32AreWithinHalfAStep) {
  const auto x = noise(320, 1);
  const auto row = quantize(*GetParam(), ActivationFormat::q8_32, x);
  for (std::size_t i = 0; i < 320; ++i) {
    const ActivationBlock32 block = activation_block32(row.data(), i / 32);
    EXPECT_NEAR(block.scale * block.quants[i % 32], x[i], 0.5001f * block.scale);
  }
}

TEST_P(QuantizeWith, BlocksOf256AreWithinHalfAStep) {
  const auto x = noise(768, 2);
  const auto row = quantize(*GetParam(), ActivationFormat::q8_256, x);
  for (std::size_t i = 0; i < 768; ++i) {
    const ActivationBlock256 block = activation_block256(row.data(), i / 256);
    EXPECT_NEAR(block.scale * block.quants[i % 256], x[i], 0.5001f * block.scale);
  }
}

TEST_P(QuantizeWith, SumsAreThoseOfTheQuants) {
  const auto x = noise(512, 3);
  const auto small = quantize(*GetParam(), ActivationFormat::q8_32, x);
  const ActivationBlock32 block32 = activation_block32(small.data(), 7);
  EXPECT_EQ(block32.sum, std::accumulate(block32.quants, block32.quants + 32, 0));
  EXPECT_EQ(block32.half_sum, std::accumulate(block32.quants, block32.quants + 16, 0));

  const auto large = quantize(*GetParam(), ActivationFormat::q8_256, x);
  const ActivationBlock256 block = activation_block256(large.data(), 1);
  for (int run = 0; run < 16; ++run) {
    const int sum = std::accumulate(block.quants + 16 * run, block.quants + 16 * run + 16, 0);
    EXPECT_EQ(block.sums16[run], sum);
    EXPECT_EQ(block.zero_shares[run], -32 * sum);
  }
  for (int run = 0; run < 8; ++run) {
    EXPECT_EQ(block.sums32[run], std::accumulate(block.quants + 32 * run, block.quants + 32 * run + 32, 0));
  }
}

TEST_P(QuantizeWith, TheLargestIs127OfEitherSignAndTiesGoToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = -127.0f;
  x[1] = 127.0f;
  x[2] = 2.5f;
  x[3] = -3.5f;
  x[4] = 0.5f;
  const auto row = quantize(*GetParam(), ActivationFormat::q8_32, x);
  const ActivationBlock32 block = activation_block32(row.data(), 0);
  EXPECT_EQ(block.scale, 1.0f);
  EXPECT_EQ(block.quants[0], -127);
  EXPECT_EQ(block.quants[1], 127);
  EXPECT_EQ(block.quants[2], 2);
  EXPECT_EQ(block.quants[3], -4);
  EXPECT_EQ(block.quants[4], 0);
}

TEST_P(QuantizeWith, NeverGives128) {
  std::mt19937 random(4);
  std::vector<float> x(32);
  for (int i = 0; i < 20000; ++i) {
    x[static_cast<std::size_t>(i) % 32] =
        -std::bit_cast<float>(static_cast<std::uint32_t>(0x20000000u + random() % 0x5f000000u));
    const auto row = quantize(*GetParam(), ActivationFormat::q8_32, x);
    for (const std::int8_t quant : activation_block32(row.data(), 0).quants) ASSERT_GE(quant, -127);
  }
}

TEST_P(QuantizeWith, ZeroAndTinyBlocksHaveScaleZero) {
  for (const float value : {0.0f, -0.0f, 1e-40f, 0x1p-101f}) {
    const auto row = quantize(*GetParam(), ActivationFormat::q8_32, std::vector<float>(32, value));
    const ActivationBlock32 block = activation_block32(row.data(), 0);
    EXPECT_EQ(block.scale, 0.0f);
    EXPECT_EQ(block.sum, 0);
  }
}

TEST_P(QuantizeWith, ABadNumberMakesTheScaleOfItsBlockNan) {
  for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
    auto x = noise(512, 5);
    x[300] = bad;
    const auto small = quantize(*GetParam(), ActivationFormat::q8_32, x);
    EXPECT_TRUE(std::isnan(activation_block32(small.data(), 9).scale));
    EXPECT_EQ(activation_block32(small.data(), 9).quants[0], 0);
    EXPECT_FALSE(std::isnan(activation_block32(small.data(), 8).scale));
    const auto large = quantize(*GetParam(), ActivationFormat::q8_256, x);
    EXPECT_TRUE(std::isnan(activation_block256(large.data(), 1).scale));
    EXPECT_EQ(activation_block256(large.data(), 1).sums32[0], 0);
    EXPECT_FALSE(std::isnan(activation_block256(large.data(), 0).scale));
  }
}

TEST_P(QuantizeWith, Bfloat16RoundsToNearestEvenAndPadsAnOddTail) {
  const std::vector<float> x = {1.0f,      1.00390625f, 1.01171875f, 3.4e38f,  1e-40f, -0.0f,
                                kInfinity, kNan,        -2.7f,       65504.0f, 0.1f};
  const auto row = quantize(*GetParam(), ActivationFormat::bf16, x);
  for (std::size_t k = 0; k < 12; ++k) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, row.data() + 2 * k, 2);
    EXPECT_EQ(bits, k < x.size() ? f32_to_bf16(x[k]) : 0) << k;
  }
}

TEST_P(QuantizeWith, GivesTheBitsOfTheReference) {
  const KernelTable& reference = scalar_kernels();
  std::mt19937 random(6);
  for (const auto format : {ActivationFormat::bf16, ActivationFormat::q8_32, ActivationFormat::q8_256}) {
    for (int i = 0; i < 200; ++i) {
      auto x = noise(512, static_cast<std::uint32_t>(i), std::exp2(static_cast<float>(i - 100)));
      if (i % 3 == 0) {
        for (float& value : x) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      }
      auto expected = quantize(reference, format, x);
      auto given = quantize(*GetParam(), format, x);
      EXPECT_EQ(given, expected) << static_cast<int>(format) << " " << i;
    }
  }
}

}  // namespace
}  // namespace quipu::cpu
