// The codecs against reference data (tests/data/quant): input.f32 is a matrix of 6 x 512; NAME.bin a
// reference encoding of it, NAME.f32 the values that those bytes stand for.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "quant/quant.h"
#include "quant/row_error.h"
#include "support/files.h"

namespace quipu {
namespace {

struct GoldenType {
  ElementType type;
  const char* file;
  double relative_rms_error;  ///< of the reference's encoding
};

class QuantGolden : public testing::TestWithParam<GoldenType> {
 protected:
  static std::vector<float> floats(const std::string& name) {
    return test::read_f32(test::data_dir() / "quant" / (name + ".f32"));
  }
  static std::vector<std::byte> bytes(const std::string& name) {
    return test::read_bytes(test::data_dir() / "quant" / (name + ".bin"));
  }
};

TEST_P(QuantGolden, DecodesToTheSameBits) {
  const std::vector<float> expected = floats(GetParam().file);
  std::vector<float> decoded(expected.size());
  decode_row(GetParam().type, bytes(GetParam().file), decoded);
  ASSERT_EQ(decoded.size(), 6u * 512u);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "element " << i << ": " << decoded[i] << ", expected " << expected[i];
  }
}

TEST_P(QuantGolden, EncodesWithinTwoPercentOfTheReferenceError) {
  EXPECT_LE(test::round_trip_error(GetParam().type, floats("input")), 1.02 * GetParam().relative_rms_error);
}

INSTANTIATE_TEST_SUITE_P(
    AllFormats, QuantGolden,
    testing::Values(
        GoldenType{ElementType::f16, "f16", 0.000208396}, GoldenType{ElementType::bf16, "bf16", 0.00160301},
        GoldenType{ElementType::q4_0, "q4_0", 0.0790202}, GoldenType{ElementType::q4_1, "q4_1", 0.069519},
        GoldenType{ElementType::q5_0, "q5_0", 0.0387648}, GoldenType{ElementType::q5_1, "q5_1", 0.0334681},
        GoldenType{ElementType::q8_0, "q8_0", 0.00533551},
        GoldenType{ElementType::iq4_nl, "iq4_nl", 0.0749187}, GoldenType{ElementType::q2_k, "q2_K", 0.260842},
        GoldenType{ElementType::q3_k, "q3_K", 0.142948}, GoldenType{ElementType::q4_k, "q4_K", 0.0700136},
        GoldenType{ElementType::q5_k, "q5_K", 0.0352363}, GoldenType{ElementType::q6_k, "q6_K", 0.0170065},
        GoldenType{ElementType::iq4_xs, "iq4_xs", 0.0755842},
        GoldenType{ElementType::mxfp4, "mxfp4", 0.114991},
        GoldenType{ElementType::nvfp4, "nvfp4", 0.0992292}),
    [](const auto& golden) { return std::string(golden.param.file); });

TEST(QuantGoldenF32, EncodesToTheSameBytesAndBack) {
  const std::vector<float> input = test::read_f32(test::data_dir() / "quant" / "input.f32");
  EXPECT_EQ(test::round_trip(ElementType::f32, input), input);
}

}  // namespace
}  // namespace quipu
