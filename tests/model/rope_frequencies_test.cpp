#include "model/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace quipu {
namespace {

RopeHparams trained() {
  RopeHparams rope;
  rope.n_rot = 64;
  rope.base = 10000;
  rope.original_context = 2048;
  return rope;
}

TEST(RopeFrequencies, FollowTheBase) {
  const RopeAnglesParams params = rope_frequencies(trained(), {}, {});
  ASSERT_EQ(params.frequencies.size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(params.frequencies[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 64), 1e-15);
  }
  EXPECT_EQ(params.magnitude, 1.0f);
}

TEST(RopeFrequencies, AreDividedByFactors) {
  const std::vector<float> factors(32, 4.0f);
  const RopeAnglesParams params = rope_frequencies(trained(), {}, factors);
  EXPECT_DOUBLE_EQ(params.frequencies[0], 0.25);
}

TEST(RopeFrequencies, AreStretchedByLinearScaling) {
  RopeHparams rope = trained();
  rope.factor = 8;
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, {}, {}).frequencies[0], 0.125);
}

TEST(RopeFrequencies, IgnoreTheFactorWhereScalingIsNone) {
  RopeHparams rope = trained();
  rope.factor = 8;
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, {.scaling = RopeScaling::none}, {}).frequencies[0], 1.0);
}

TEST(RopeFrequencies, KeepFastPairsAndStretchSlowOnesWithYarn) {
  RopeHparams rope = trained();
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  const RopeAnglesParams plain = rope_frequencies(trained(), {}, {});
  const RopeAnglesParams yarn = rope_frequencies(rope, {}, {});
  EXPECT_DOUBLE_EQ(yarn.frequencies.front(), plain.frequencies.front());
  EXPECT_DOUBLE_EQ(yarn.frequencies.back(), plain.frequencies.back() / 4);
}

TEST(RopeFrequencies, RaiseTheMagnitudeWithYarnTimesTheModelsOwnFactor) {
  RopeHparams rope = trained();
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.attention_factor = 1.5f;
  EXPECT_FLOAT_EQ(rope_frequencies(rope, {}, {}).magnitude,
                  static_cast<float>(1.5 * (0.1 * std::log(4.0) + 1)));
}

TEST(RopeFrequencies, TakeTheAttentionFactorGivenWhereNothingIsExtrapolated) {
  const RopeAnglesParams params =
      rope_frequencies(trained(), {.yarn_extrapolation = 0.0f, .yarn_attention_factor = 1.25f}, {});
  EXPECT_FLOAT_EQ(params.magnitude, 1.25f);
}

TEST(RopeFrequencies, LetAContextOverrideTheModel) {
  const RopeAnglesParams params = rope_frequencies(trained(), {.base = 500.0f, .frequency_scale = 0.5f}, {});
  EXPECT_DOUBLE_EQ(params.frequencies[0], 0.5);
  EXPECT_NEAR(params.frequencies[1], 0.5 * std::pow(500.0, -2.0 / 64), 1e-15);
}

TEST(RopeFrequencies, ALogMultiplierDividesTheMagnitude) {
  RopeHparams rope = trained();
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.yarn_log_multiplier = 0.5f;
  const double whole = 0.1 * std::log(4.0) + 1, half = 0.05 * std::log(4.0) + 1;
  EXPECT_FLOAT_EQ(rope_frequencies(rope, {}, {}).magnitude, static_cast<float>(whole / half));
  rope.yarn_dividend_multiplier = 0.5f;
  EXPECT_EQ(rope_frequencies(rope, {}, {}).magnitude, 1.0f);
}

TEST(YarnScoreScale, IsOneWhereNothingIsScaled) {
  EXPECT_EQ(yarn_score_scale(trained(), {}), 1.0f);
}

TEST(YarnScoreScale, IsTheSquareOfTheMagnitudeAndTheMultipliersOwn) {
  RopeHparams rope = trained();
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.yarn_log_multiplier = 1;
  const double growth = 0.1 * std::log(4.0) + 1;  // divided by itself, the magnitude is 1
  EXPECT_FLOAT_EQ(yarn_score_scale(rope, {}), static_cast<float>(growth * growth));
}

}  // namespace
}  // namespace quipu
