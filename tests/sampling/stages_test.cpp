#include "sampling/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "quipu/error.h"

namespace quipu::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Tokens that can still be selected after a stage, in order of token.
std::vector<Token> possible_after(const SamplerStage& description, const std::vector<float>& logits) {
  Candidates candidates;
  candidates.assign(logits);
  make_stage(description)->apply(candidates);
  std::vector<Token> result;
  for (const Candidate& candidate : candidates.items()) {
    if (candidate.logit != -kInfinity) result.push_back(candidate.id);
  }
  std::sort(result.begin(), result.end());
  return result;
}

using testing::ElementsAre;

const std::vector<float> kFour = {0, 2, 1, 2};

TEST(TopK, ZeroAndNegativeAreOff) {
  EXPECT_THAT(possible_after(stage::TopK{0}, kFour), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(possible_after(stage::TopK{-1}, kFour), ElementsAre(0, 1, 2, 3));
}

TEST(TopK, MoreThanThereAreKeepsAll) {
  EXPECT_THAT(possible_after(stage::TopK{std::numeric_limits<std::int32_t>::max()}, kFour),
              ElementsAre(0, 1, 2, 3));
}

TEST(TopK, OfEqualsKeepsTheFirst) {
  EXPECT_THAT(possible_after(stage::TopK{1}, kFour), ElementsAre(1));
}

TEST(TopP, OneAndMoreAreOff) {
  EXPECT_THAT(possible_after(stage::TopP{1}, kFour), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(possible_after(stage::TopP{2}, kFour), ElementsAre(0, 1, 2, 3));
}

TEST(TopP, ZeroAndNegativeKeepTheLikeliest) {
  EXPECT_THAT(possible_after(stage::TopP{0}, kFour), ElementsAre(1));
  EXPECT_THAT(possible_after(stage::TopP{-3}, kFour), ElementsAre(1));
}

TEST(TopP, MinKeepOverTheListKeepsAll) {
  EXPECT_THAT(possible_after(stage::TopP{0, 100}, kFour), ElementsAre(0, 1, 2, 3));
}

TEST(TopP, SortsALargeListOnlyAsFarAsNeeded) {
  std::vector<float> logits(100000, -20.0f);
  logits[70000] = 1;
  logits[60000] = 0;
  EXPECT_THAT(possible_after(stage::TopP{0.9f}, logits), ElementsAre(60000, 70000));
}

TEST(TopP, SpreadOverAFlatListKeepsTheShareOfIt) {
  EXPECT_EQ(possible_after(stage::TopP{0.5f}, std::vector<float>(65536, 1.0f)).size(), 32768u);
}

TEST(MinP, ZeroAndNegativeAreOff) {
  EXPECT_THAT(possible_after(stage::MinP{0}, kFour), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(possible_after(stage::MinP{-1}, kFour), ElementsAre(0, 1, 2, 3));
}

TEST(MinP, OneKeepsTheLikeliestAndItsEquals) {
  EXPECT_THAT(possible_after(stage::MinP{1}, kFour), ElementsAre(1, 3));
}

TEST(MinP, MoreThanOneCountsAsOne) {
  EXPECT_THAT(possible_after(stage::MinP{7}, kFour), ElementsAre(1, 3));
}

TEST(MinP, MinKeepOverTheListKeepsAll) {
  EXPECT_THAT(possible_after(stage::MinP{1, 100}, kFour), ElementsAre(0, 1, 2, 3));
}

TEST(Temperature, ZeroAndNegativeLeaveOnlyTheFirstOfTheLikeliest) {
  EXPECT_THAT(possible_after(stage::Temperature{0}, kFour), ElementsAre(1));
  EXPECT_THAT(possible_after(stage::Temperature{-2}, kFour), ElementsAre(1));
  EXPECT_THAT(possible_after(stage::Temperature{-kInfinity}, kFour), ElementsAre(1));
}

TEST(Temperature, InfinityMakesAllThatIsPossibleEqual) {
  Candidates candidates;
  candidates.assign(std::vector<float>{5, -kInfinity, -7});
  make_stage(stage::Temperature{kInfinity})->apply(candidates);
  candidates.normalize();
  EXPECT_EQ(candidates.items()[0].prob, 0.5f);
  EXPECT_EQ(candidates.items()[1].prob, 0.0f);
  EXPECT_EQ(candidates.items()[2].prob, 0.5f);
}

TEST(Temperature, QuotientsThatOverflowKeepTheirOrder) {
  EXPECT_THAT(possible_after(stage::Temperature{1e-8f}, {1e38f, 2e38f, -1e38f}), ElementsAre(1));
  EXPECT_THAT(possible_after(stage::Temperature{1e-8f}, {-2e38f, -1e38f, -3e38f}), ElementsAre(1));
}

TEST(Stages, ParametersThatAreNotNumbersAreRefused) {
  EXPECT_THROW(make_stage(stage::Temperature{kNan}), Error);
  EXPECT_THROW(make_stage(stage::TopP{kNan}), Error);
  EXPECT_THROW(make_stage(stage::MinP{kNan}), Error);
}

TEST(Draw, FollowsTheProbabilities) {
  const auto draw = make_stage(stage::Draw{11});
  std::vector<int> counts(3);
  for (int i = 0; i < 30000; ++i) {
    Candidates candidates;
    candidates.assign(std::vector<float>{0, 1.0986123f, -kInfinity});  // odds 1 : 3 : 0
    draw->apply(candidates);
    ++counts[static_cast<std::size_t>(candidates.selected())];
  }
  EXPECT_NEAR(counts[0], 7500, 300);
  EXPECT_EQ(counts[2], 0);
}

TEST(Draw, NeverTakesNanOrMinusInfinity) {
  const auto draw = make_stage(stage::Draw{3});
  for (int i = 0; i < 1000; ++i) {
    Candidates candidates;
    candidates.assign(std::vector<float>{kNan, -kInfinity, 1e-30f, kNan});
    draw->apply(candidates);
    ASSERT_EQ(candidates.selected(), 2);
  }
}

TEST(Draw, ResetRepeatsItsChoices) {
  const auto draw = make_stage(stage::Draw{5});
  const auto ten = [&] {
    std::vector<Token> tokens;
    for (int i = 0; i < 10; ++i) {
      Candidates candidates;
      candidates.assign(std::vector<float>(1000, 0.0f));
      draw->apply(candidates);
      tokens.push_back(candidates.selected());
    }
    return tokens;
  };
  const std::vector<Token> first = ten();
  EXPECT_NE(ten(), first);
  draw->reset();
  EXPECT_EQ(ten(), first);
}

}  // namespace
}  // namespace quipu::sampling
