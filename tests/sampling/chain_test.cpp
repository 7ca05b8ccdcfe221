#include "sampling/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "quipu/error.h"
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Chain default_chain(std::uint64_t seed, float temperature = 0.8f) {
  Chain chain;
  chain.add(make_stage(stage::TopK{40}));
  chain.add(make_stage(stage::TopP{0.95f}));
  chain.add(make_stage(stage::MinP{0.05f}));
  chain.add(make_stage(stage::Temperature{temperature}));
  chain.add(make_stage(stage::Draw{seed}));
  return chain;
}

std::vector<float> noise(std::size_t n, std::uint64_t seed, double scale = 8) {
  Random random(seed);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = static_cast<float>((random.uniform() + random.uniform() - 1) * scale);
  return logits;
}

TEST(Chain, WithoutStagesTakesTheLikeliestFirstOfTies) {
  EXPECT_EQ(Chain().sample(std::vector<float>{1, 4, 4, 2}), 1);
}

TEST(Chain, AfterTruncationAloneTakesTheLikeliest) {
  Chain chain;
  chain.add(make_stage(stage::TopP{0.5f}));
  chain.add(make_stage(stage::TopK{3}));
  EXPECT_EQ(chain.sample(std::vector<float>{1, 4, 4, 2}), 1);
}

TEST(Chain, StagesAfterTheChoiceChangeNothing) {
  Chain chain;
  chain.add(make_stage(stage::Draw{1}));
  chain.add(make_stage(stage::TopK{1}));
  chain.add(make_stage(stage::Greedy{}));
  Chain draw;
  draw.add(make_stage(stage::Draw{1}));
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> logits = noise(100, static_cast<std::uint64_t>(i), 1);
    EXPECT_EQ(chain.sample(logits), draw.sample(logits));
  }
}

TEST(Chain, TheSameSeedGivesTheSameTokens) {
  Chain a = default_chain(42), b = default_chain(42), other = default_chain(43);
  std::vector<Token> from_a, from_b, from_other;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::vector<float> logits = noise(500, i);
    from_a.push_back(a.sample(logits));
    from_b.push_back(b.sample(logits));
    from_other.push_back(other.sample(logits));
  }
  EXPECT_EQ(from_a, from_b);
  EXPECT_NE(from_a, from_other);
}

// Recorded once: a change here changes the text that users get from their seeds.
TEST(Chain, ASeedMeansTheseTokensForEver) {
  Chain chain = default_chain(42);
  std::vector<Token> tokens;
  for (std::uint64_t i = 0; i < 12; ++i) tokens.push_back(chain.sample(noise(500, i, 3)));
  EXPECT_THAT(tokens, testing::ElementsAre(439, 264, 120, 304, 254, 38, 97, 377, 15, 241, 37, 173));
}

TEST(Chain, ACopyContinuesFromTheSameState) {
  Chain chain = default_chain(9);
  const std::vector<float> logits = noise(500, 1, 1);
  chain.sample(logits);
  Chain copy = chain;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(copy.sample(logits), chain.sample(logits));
}

TEST(Chain, TemperatureZeroIsTheLikeliestWhateverElseIsSet) {
  Chain chain;
  chain.add(make_stage(stage::Temperature{0.0f}));
  chain.add(make_stage(stage::TopK{0}));
  chain.add(make_stage(stage::TopP{1.0f}));
  chain.add(make_stage(stage::Draw{1}));
  Chain usual = default_chain(1, 0.0f);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::vector<float> logits = noise(300, i);
    const auto best = static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    EXPECT_EQ(chain.sample(logits), best);
    EXPECT_EQ(usual.sample(logits), best);
  }
}

TEST(Chain, DegenerateLogitsGiveAPossibleTokenOrAnError) {
  const float big = 1e38f;
  const std::vector<std::vector<float>> rows = {
      {-kInfinity, 1, -kInfinity},
      {kNan, 1, 2},
      {1, kNan, 2},
      {1, 2, kNan},
      {1, kInfinity, 2},
      {0, 0, 0, 0},
      {big, big, -big},
      {5},
      {0},
      {-big, -big},
      {kNan, -3},
  };
  const std::vector<SamplerStage> stages = {
      stage::Greedy{},
      stage::TopK{0},
      stage::TopK{-1},
      stage::TopK{1},
      stage::TopK{100},
      stage::TopP{0.0f},
      stage::TopP{0.5f},
      stage::TopP{2.0f},
      stage::TopP{0.5f, 100},
      stage::TopP{0.5f, 0},
      stage::MinP{0.0f},
      stage::MinP{0.05f},
      stage::MinP{1.0f},
      stage::MinP{1.0f, 100},
      stage::Typical{0.0f},
      stage::Typical{0.5f},
      stage::Typical{0.5f, 100},
      stage::TopNSigma{0.0f},
      stage::TopNSigma{1e-6f},
      stage::TopNSigma{kInfinity},
      stage::Xtc{1, 0.0f},
      stage::Xtc{1, 0.5f},
      stage::Xtc{1, 0.1f, 100},
      stage::Temperature{0.0f},
      stage::Temperature{1e-8f},
      stage::Temperature{-1.0f},
      stage::Temperature{kInfinity},
      stage::Temperature{1e-45f},
      stage::DynamicTemperature{1, 1, 1},
      stage::DynamicTemperature{1, kInfinity, 0},
      stage::Penalties{-1, 1e30f, 1e38f, 1e38f},
      stage::Penalties{2, 1e-30f, -1e38f, -1e38f},
      stage::Dry{1e38f, 4, 0},
      stage::Bias{{{0, 1e38f}, {1, -1e38f}}},
      stage::Mirostat{5, 0.1f},
      stage::Mirostat{0, 1e30f, 0},
      stage::Mirostat2{5, 0.1f},
      stage::Mirostat2{0, -1e30f},
      stage::AdaptiveP{0.0f, 2},
      stage::AdaptiveP{1.0f, 0},
      stage::AdaptiveP{-1.0f},
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t first = 0; first < stages.size(); ++first) {
      for (std::size_t second = 0; second < stages.size(); ++second) {
        Chain chain;
        chain.add(make_stage(stages[first]));
        chain.add(make_stage(stages[second]));
        chain.add(make_stage(stage::Draw{first}));
        for (const Token token : {0, 1, 0, 1, 0}) chain.accept(token);
        const Token token = chain.sample(rows[row]);
        ASSERT_GE(token, 0);
        ASSERT_LT(static_cast<std::size_t>(token), rows[row].size());
        const float logit = rows[row][static_cast<std::size_t>(token)];
        ASSERT_TRUE(logit > -kInfinity) << "row " << row << ", stages " << first << " and " << second;
      }
    }
  }
  for (const auto& row :
       std::vector<std::vector<float>>{{}, {kNan}, {kNan, kNan}, {-kInfinity, -kInfinity}}) {
    Chain chain = default_chain(1);
    EXPECT_THROW(chain.sample(row), Error);
  }
}

TEST(Chain, AnErrorLeavesTheGeneratorWhereItWas) {
  Chain chain = default_chain(9), undisturbed = default_chain(9);
  const std::vector<float> logits = noise(500, 1, 1);
  EXPECT_THROW(chain.sample(std::vector<float>{kNan}), Error);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(chain.sample(logits), undisturbed.sample(logits));
}

struct CountingStage final : Stage {
  explicit CountingStage(std::vector<Token>* seen) : seen_(seen) {}
  std::string_view name() const override { return "counting"; }
  void apply(Candidates&) override {}
  void accept(Token token) override { seen_->push_back(token); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<CountingStage>(*this); }
  std::vector<Token>* seen_;
};

TEST(Chain, EveryStageIsToldOfAcceptedTokens) {
  std::vector<Token> seen;
  Chain chain;
  chain.add(make_stage(stage::Greedy{}));
  chain.add(std::make_unique<CountingStage>(&seen));
  chain.accept(4);
  chain.accept(2);
  EXPECT_THAT(seen, testing::ElementsAre(4, 2));
}

}  // namespace
}  // namespace quipu::sampling
