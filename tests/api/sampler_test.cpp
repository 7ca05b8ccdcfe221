#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "quipu/error.h"
#include "quipu/model.h"
#include "quipu/sampler.h"

namespace quipu::test {
namespace {

const std::vector<float> kFlat(100, 0.0f);

std::vector<Token> draw(Sampler& sampler, int n) {
  std::vector<Token> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(sampler.sample(kFlat));
  return tokens;
}

TEST(Sampler, TheUsualChainFollowsItsSeed) {
  Sampler a({.seed = 5}), b({.seed = 5}), other({.seed = 6});
  const std::vector<Token> tokens = draw(a, 20);
  EXPECT_EQ(draw(b, 20), tokens);
  EXPECT_NE(draw(other, 20), tokens);
}

TEST(Sampler, WithoutASeedItTellsTheOneItChose) {
  Sampler chosen{SamplingOptions()};
  ASSERT_TRUE(chosen.seed().has_value());
  Sampler again({.seed = chosen.seed()});
  EXPECT_EQ(draw(again, 20), draw(chosen, 20));
}

TEST(Sampler, TemperatureZeroTakesTheLikeliest) {
  Sampler sampler({.temp = 0});
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}), 1);
}

TEST(Sampler, StagesRunInTheOrderGiven) {
  const std::vector<float> logits = {0, 1, 2, 3};
  Sampler narrow = Sampler::chain({stage::TopK{1}, stage::Draw{1}});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(narrow.sample(logits), 3);
  Sampler none = Sampler::chain({});
  EXPECT_EQ(none.sample(logits), 3);
  EXPECT_EQ(none.seed(), std::nullopt);
}

TEST(Sampler, ACopyGoesOnByItself) {
  Sampler sampler({.seed = 5});
  draw(sampler, 3);
  Sampler copy = sampler;
  EXPECT_EQ(draw(copy, 20), draw(sampler, 20));
}

TEST(Sampler, ResetStartsAgain) {
  Sampler sampler({.seed = 5});
  const std::vector<Token> tokens = draw(sampler, 20);
  sampler.reset();
  EXPECT_EQ(draw(sampler, 20), tokens);
}

TEST(Sampler, ParametersThatAreNotNumbersAreRefused) {
  EXPECT_THROW(Sampler(SamplingOptions{.temp = std::numeric_limits<float>::quiet_NaN()}), Error);
}

TEST(Sampler, LogitsWithoutAFiniteOneAreAnError) {
  Sampler sampler({.seed = 1});
  EXPECT_THROW(sampler.sample(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}), Error);
  EXPECT_THROW(sampler.sample({}), Error);
}

TEST(Sampler, DryBreakersNeedATokenizer) {
  const SamplingOptions options{.dry_multiplier = 1};
  EXPECT_THROW(Sampler{options}, Error);
  EXPECT_NO_THROW(Sampler(options, Model::built_in().tokenizer()));
  SamplingOptions without_breakers = options;
  without_breakers.dry_breakers.clear();
  EXPECT_NO_THROW(Sampler{without_breakers});
}

TEST(Sampler, BreakersAreTheTokensThatHoldTheTextAndThoseItSpans) {
  const Tokenizer tokenizer = Model::built_in().tokenizer();
  const std::vector<std::string> texts = {"\n"};
  const auto breakers = dry_breakers(tokenizer, texts);
  ASSERT_FALSE(breakers.empty());
  for (const auto& breaker : breakers)
    EXPECT_NE(tokenizer.detokenize(breaker, {.show_special = true}).find('\n'), std::string::npos);
}

TEST(Sampler, TemperatureZeroIsTheLikeliestWhateverElseIsSet) {
  const std::vector<float> logits = {0, 3, 2.9f, -1, 3};
  for (const int mirostat : {0, 1, 2}) {
    SamplingOptions options{
        .temp = 0, .top_k = 3, .xtc_probability = 1, .mirostat = mirostat, .adaptive_target = 0.1f};
    EXPECT_EQ(Sampler(options).sample(logits), 1);
  }
}

TEST(Sampler, EveryOrderOfStagesGivesAToken) {
  const std::vector<float> logits = {0, 3, 2.9f, -1, 3};
  SamplingOptions options{.typical_p = 0.5f, .top_n_sigma = 1, .xtc_probability = 1, .seed = 1};
  std::vector<std::vector<std::string>> orders = {
      {}, {"temp"}, {"xtc", "top_k"}, {"top_p", "top_p", "top_p"}};
  orders.emplace_back(options.order.rbegin(), options.order.rend());
  for (const std::string& name : options.order) orders.push_back({name});
  for (const auto& order : orders) {
    options.order = order;
    const Token token = Sampler(options).sample(logits);
    EXPECT_GE(token, 0);
    EXPECT_LT(token, 5);
  }
}

TEST(Sampler, AnUnknownStageIsRefusedByName) {
  try {
    Sampler(SamplingOptions{.order = {"top_k", "bogus"}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("\"bogus\""), std::string::npos);
  }
}

}  // namespace
}  // namespace quipu::test
