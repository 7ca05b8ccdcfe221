// Taking blocks apart and putting them together. Where single elements lie is held to the golden encodings by
// the decoder; here, that the two directions are each other's reverse for every bit of a block.
#include "quant/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace quipu {
namespace {

template <typename Block>
class BlockLayout : public testing::Test {
 protected:
  // Every bit pattern is a valid block.
  static Block random_block(unsigned seed) {
    std::mt19937 generator(seed);
    std::array<std::byte, sizeof(Block)> bytes;
    for (std::byte& each : bytes) each = static_cast<std::byte>(generator() & 0xffu);
    return load_block<Block>(bytes.data());
  }
  static bool same_bytes(const Block& a, const Block& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};

template <typename Block>
class ScaledBlockLayout : public BlockLayout<Block> {};

using QuantBlocks =
    testing::Types<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockIQ4_NL, BlockQ2_K, BlockQ3_K, BlockQ4_K,
                   BlockQ5_K, BlockQ6_K, BlockIQ4_XS, BlockMXFP4, BlockNVFP4>;
using ScaledBlocks = testing::Types<BlockQ2_K, BlockQ3_K, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ4_XS>;
TYPED_TEST_SUITE(BlockLayout, QuantBlocks);
TYPED_TEST_SUITE(ScaledBlockLayout, ScaledBlocks);

TYPED_TEST(BlockLayout, PackingUnpackedQuantsRestoresTheBlock) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const TypeParam block = this->random_block(seed);
    TypeParam other = block;
    auto quants = unpack_quants(block);
    for (std::uint8_t& q : quants) q = static_cast<std::uint8_t>(TypeParam::kQuantMax - q);
    pack_quants(quants, other);
    EXPECT_FALSE(this->same_bytes(other, block));
    pack_quants(unpack_quants(block), other);
    EXPECT_TRUE(this->same_bytes(other, block)) << "seed " << seed;
  }
}

TYPED_TEST(BlockLayout, QuantsStayInTheirRangeAndReachItsEnds) {
  int least = 255;
  int most = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    for (const std::uint8_t q : unpack_quants(this->random_block(seed))) {
      least = std::min<int>(least, q);
      most = std::max<int>(most, q);
    }
  }
  EXPECT_EQ(least, 0);
  EXPECT_EQ(most, TypeParam::kQuantMax);
}

TYPED_TEST(ScaledBlockLayout, PackingUnpackedScalesRestoresTheBlock) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const TypeParam block = this->random_block(seed);
    TypeParam other = this->random_block(seed + 1000);
    const auto others = unpack_scales(other);
    pack_scales(unpack_scales(block), other);
    pack_quants(unpack_quants(block), other);
    other.d = block.d;
    if constexpr (requires { other.dmin; }) other.dmin = block.dmin;
    EXPECT_TRUE(this->same_bytes(other, block)) << "seed " << seed;
    pack_scales(others, other);
    EXPECT_FALSE(this->same_bytes(other, block)) << "seed " << seed;
  }
}

TEST(BlockQ4K, ScalesOfTheLastRunsTakeTheirTopBitsFromTheFirst) {
  BlockQ4_K block{};
  block.scales = {0xc1, 0, 0, 0, 0x82, 0, 0, 0, 0x5a, 0, 0, 0};
  const std::array<SubScale, 8> runs = unpack_scales(block);
  EXPECT_EQ(runs[0].scale, 0x01);
  EXPECT_EQ(runs[0].min, 0x02);
  EXPECT_EQ(runs[4].scale, 0x3a);
  EXPECT_EQ(runs[4].min, 0x25);
}

TEST(BlockQ3K, ZeroBytesAreTheLowestScale) {
  for (const std::int8_t scale : unpack_scales(BlockQ3_K{})) EXPECT_EQ(scale, -32);
}

TEST(Fp4Scales, OfMXFP4ArePowersOfTwo) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(mxfp4_scale(static_cast<std::uint8_t>(code)), std::ldexp(1.0F, code - 128)) << code;
  }
}

TEST(Fp4Scales, OfNVFP4RiseFromZeroToHalfOf448AndTheirTopBitMeansNothing) {
  EXPECT_EQ(nvfp4_scale(0), 0);
  EXPECT_EQ(nvfp4_scale(1), 0x1p-10F);
  EXPECT_EQ(nvfp4_scale(0x38), 0.5F);
  EXPECT_EQ(nvfp4_scale(126), 224);
  EXPECT_EQ(nvfp4_scale(127), 0);
  for (std::uint8_t code = 1; code < 127; ++code) {
    EXPECT_GT(nvfp4_scale(code), nvfp4_scale(static_cast<std::uint8_t>(code - 1))) << int{code};
    EXPECT_EQ(nvfp4_scale(code), nvfp4_scale(static_cast<std::uint8_t>(code | 128))) << int{code};
  }
}

TEST(BlockLoading, WorksAtAnOddAddress) {
  std::array<std::byte, 1 + sizeof(BlockQ4_0)> bytes{};
  bytes[1] = std::byte{0x34};
  bytes[2] = std::byte{0x12};
  bytes[18] = std::byte{0xab};
  const auto block = load_block<BlockQ4_0>(bytes.data() + 1);
  EXPECT_EQ(block.d, 0x1234);
  EXPECT_EQ(block.qs[15], 0xab);
}

}  // namespace
}  // namespace quipu
