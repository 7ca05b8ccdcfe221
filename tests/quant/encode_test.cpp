// How well the encoders do, on ordinary rows and on rows made to break them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "quant/row_error.h"

namespace quipu {
namespace {

using test::round_trip;

class Encoder : public testing::TestWithParam<ElementType> {
 protected:
  static ElementType type() { return GetParam(); }
  static std::size_t block() { return info(type()).block_elements; }
};

INSTANTIATE_TEST_SUITE_P(BlockTypes, Encoder, testing::ValuesIn(test::block_types()),
                         [](const auto& type) { return test::type_name(type.param); });

TEST_P(Encoder, KeepsZerosAsPositiveZeros) {
  for (const float value : round_trip(type(), std::vector<float>(2 * block(), 0.0F))) {
    EXPECT_EQ(value, 0.0F);
    EXPECT_FALSE(std::signbit(value));
  }
}

TEST_P(Encoder, KeepsAZeroBlockBesideOthers) {
  std::vector<float> values = test::normal_values(3 * block(), 1, 1.0F);
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(block()), block(), 0.0F);
  const std::vector<float> decoded = round_trip(type(), values);
  for (std::size_t i = block(); i < 2 * block(); ++i) EXPECT_EQ(decoded[i], 0.0F);
}

/// Floats of 4 bits, whose scales have no or three bits of fraction.
bool is_fp4(ElementType type) {
  return type == ElementType::mxfp4 || type == ElementType::nvfp4;
}

TEST_P(Encoder, KeepsConstantBlocksToThePrecisionOfTheirScales) {
  const double precision = type() == ElementType::mxfp4 ? 0.21 : is_fp4(type()) ? 0.06 : 2e-3;
  for (const float constant : {1.0F, -1.0F, 0.0371F, -0.0371F, 517.3F, -517.3F}) {
    const std::vector<float> values(block(), constant);
    EXPECT_LT(test::round_trip_error(type(), values), precision) << constant;
  }
}

TEST_P(Encoder, KeepsALoneValue) {
  if (type() == ElementType::iq4_nl || type() == ElementType::iq4_xs) {
    GTEST_SKIP() << "its table has no zero for the others";
  }
  for (const float lone : {0.7F, -0.7F}) {
    std::vector<float> values(block(), 0.0F);
    values[block() / 2 + 3] = lone;
    EXPECT_LT(test::round_trip_error(type(), values), is_fp4(type()) ? 0.21 : 5e-3) << lone;
  }
}

TEST_P(Encoder, ClampsWhatIsBeyondTheLargestScale) {
  for (const float huge :
       {1e38F, -1e38F, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
    std::vector<float> values = test::normal_values(2 * block(), 2, 1.0F);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = huge;
    const std::vector<float> decoded = round_trip(type(), values);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(std::isfinite(decoded[i])) << huge << " at " << i;
    for (std::size_t i = 0; i < values.size(); i += 3) ASSERT_GT(decoded[i] / huge, 0) << huge << " at " << i;
  }
}

TEST_P(Encoder, SurvivesHugeValuesOfBothSigns) {
  std::vector<float> values(block());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 3e38F : -3e38F;
  for (const float value : round_trip(type(), values)) ASSERT_TRUE(std::isfinite(value));
}

TEST_P(Encoder, StoresDenormalsAsNearlyZero) {
  std::vector<float> values(block());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(i % 3 == 0 ? 1.0F : -1.0F, -149 + int(i % 20));
  for (const float value : round_trip(type(), values)) ASSERT_LT(std::abs(value), 1e-7F);
}

TEST_P(Encoder, DoesNotLoseValuesWhoseScaleIsBelowTheSmallestHalf) {
  if (type() == ElementType::nvfp4) GTEST_SKIP() << "its smallest value is 2^-10";
  const bool has_table = type() == ElementType::iq4_nl || type() == ElementType::iq4_xs;
  const double bound = has_table ? 0.65 : 0.35;  // its values are 9 and more scales apart
  EXPECT_LT(test::round_trip_error(type(), test::normal_values(4 * block(), 3, 3e-7F)), bound);
}

TEST_P(Encoder, MeetsAWideRangeWithinOneBlock) {
  std::vector<float> values(block());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::pow(10.0F, static_cast<float>(i % 40) - 35.0F) * (i % 2 == 0 ? 1.0F : -1.0F);
  }
  const std::vector<float> decoded = round_trip(type(), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(decoded[i]));
    EXPECT_LT(std::abs(decoded[i]), 2.1e4F);
  }
}

TEST_P(Encoder, GivesTheSameBytesWhereverTheBlockLies) {
  const std::vector<float> values = test::normal_values(4 * block(), 4, 0.02F);
  const std::vector<std::byte> together = test::encode(type(), values);
  const std::size_t bytes = info(type()).block_bytes;
  for (std::size_t b = 0; b < 4; ++b) {
    const std::vector<std::byte> alone =
        test::encode(type(), std::span(values).subspan(b * block(), block()));
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + b * bytes, bytes), 0) << "block " << b;
  }
}

TEST_P(Encoder, EncodingDecodedValuesAgainLosesLittle) {
  const std::vector<float> values = test::normal_values(32 * block(), 5, 0.02F);
  const std::vector<float> once = round_trip(type(), values);
  EXPECT_LT(test::round_trip_error(type(), once), 0.2 * test::relative_error(once, values));
}

TEST_P(Encoder, ImportanceOfOneIsNoImportance) {
  const std::vector<float> values = test::normal_values(2 * block(), 6, 0.02F);
  const std::vector<float> ones(values.size(), 1.0F);
  const double weighted = test::relative_error(round_trip(type(), values, ones), values);
  EXPECT_NEAR(weighted, test::round_trip_error(type(), values), 1e-3 * weighted);
}

TEST_P(Encoder, ZeroImportanceIsNoImportance) {
  const std::vector<float> values = test::normal_values(2 * block(), 6, 0.02F);
  EXPECT_EQ(test::encode(type(), values, std::vector<float>(values.size(), 0.0F)),
            test::encode(type(), values));
}

TEST_P(Encoder, ImportanceOfAnySizeGivesFiniteValues) {
  const std::vector<float> values = test::normal_values(2 * block(), 7, 1e38F / 8);
  for (const float size : {1e-45F, 3e38F}) {
    std::vector<float> importance(values.size(), 0.0F);
    for (std::size_t i = 0; i < importance.size(); i += 5) importance[i] = size;
    for (const float value : round_trip(type(), values, importance)) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST_P(Encoder, AnyBytesDecode) {
  std::mt19937 generator(9);
  std::vector<std::byte> bytes(64 * info(type()).block_bytes);
  for (std::byte& each : bytes) each = static_cast<std::byte>(generator() & 0xffu);
  EXPECT_EQ(test::decode(type(), bytes).size(), 64 * block());
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  if (is_fp4(type())) return;  // their scales have no NaN
  for (const float value : test::decode(type(), bytes)) ASSERT_TRUE(std::isnan(value));
}

TEST(SearchingEncoders, SpendTheirPrecisionWhereTheImportanceIs) {
  for (const ElementType type : test::block_types()) {
    if (type == ElementType::q8_0) continue;  // takes its scale from the largest element alone
    if (is_fp4(type)) continue;               // have few scales to choose from
    const std::vector<float> values = test::normal_values(4096, 8, 0.02F);
    std::vector<float> importance(values.size(), 1.0F);
    for (std::size_t i = 0; i < values.size(); i += 8) importance[i] = 100.0F;
    const double plain = test::relative_error(round_trip(type, values), values, importance);
    const double weighted = test::relative_error(round_trip(type, values, importance), values, importance);
    EXPECT_LT(weighted, 0.97 * plain) << test::type_name(type);
  }
}

TEST(LegacyEncoders, KeepDecodedValuesExactly) {
  for (const ElementType type : {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0, ElementType::q5_1,
                                 ElementType::q8_0, ElementType::iq4_nl}) {
    const std::vector<float> once = round_trip(type, test::normal_values(4096, 10, 0.02F));
    EXPECT_EQ(round_trip(type, once), once) << test::type_name(type);
  }
}

TEST(Q8_0Encoder, KeepsDecodedValuesExactly) {
  for (const float deviation : {1e-7F, 0.02F, 1e5F}) {
    const std::vector<float> once = round_trip(ElementType::q8_0, test::normal_values(4096, 10, deviation));
    EXPECT_EQ(round_trip(ElementType::q8_0, once), once) << deviation;
  }
}

TEST(FloatEncoders, KeepDecodedValuesExactly) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const std::vector<float> once = round_trip(type, test::normal_values(4096, 11, 0.02F));
    EXPECT_EQ(round_trip(type, once), once) << test::type_name(type);
  }
}

TEST(Encoders, MoreBitsMeanLessError) {
  constexpr ElementType kByError[] = {ElementType::q2_k, ElementType::q3_k, ElementType::q4_0,
                                      ElementType::q4_k, ElementType::q5_0, ElementType::q5_k,
                                      ElementType::q6_k, ElementType::q8_0, ElementType::bf16,
                                      ElementType::f16,  ElementType::f32};
  for (unsigned seed = 20; seed < 24; ++seed) {
    const std::vector<float> values =
        test::normal_values(32 * 256, seed, 0.01F * static_cast<float>(seed - 19));
    double last = 1;
    for (const ElementType type : kByError) {
      const double error = test::round_trip_error(type, values);
      EXPECT_LT(error, last) << test::type_name(type) << ", seed " << seed;
      last = error;
    }
  }
}

}  // namespace
}  // namespace quipu
