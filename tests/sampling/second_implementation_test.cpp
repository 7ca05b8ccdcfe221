// Stages without recorded results, against implementations written for clarity alone: quadratic, in doubles,
// straight from the descriptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "sampling/chain.h"
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<float> noise(std::size_t n, std::uint64_t seed, double scale = 8) {
  Random random(seed);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = static_cast<float>((random.uniform() + random.uniform() - 1) * scale);
  return logits;
}

/// A text that repeats itself often.
std::vector<Token> repetitive_text(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<Token> text;
  while (text.size() < n) {
    if (text.size() > 8 && random.uniform() < 0.5) {
      const std::size_t from = random.next() % (text.size() - 4), length = 1 + random.next() % 6;
      for (std::size_t i = 0; i < length; ++i) text.push_back(text[from + i]);
    } else {
      text.push_back(static_cast<Token>(random.next() % 12));
    }
  }
  text.resize(n);
  return text;
}

std::vector<double> softmax(const std::vector<double>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> result;
  double sum = 0;
  for (const double logit : logits) sum += result.emplace_back(std::exp(logit - max));
  for (double& p : result) p /= sum;
  return result;
}

/// The logits of all tokens after a stage; minus infinity for those that it removed.
std::vector<double> after(Stage& stage, const std::vector<float>& logits) {
  Candidates candidates;
  candidates.assign(logits);
  stage.apply(candidates);
  std::vector<double> result(logits.size(), -kInfinity);
  for (const Candidate& candidate : candidates.items())
    result[static_cast<std::size_t>(candidate.id)] = static_cast<double>(candidate.logit);
  return result;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], expected[i]) << "token " << i;
    } else {
      EXPECT_NEAR(actual[i], expected[i], bound) << "token " << i;
    }
  }
}

TEST(Penalties, EqualASecondImplementation) {
  for (const int last_n : {0, 1, 2, 7, 64, -1}) {
    const stage::Penalties description{last_n, 1.3f, 0.25f, 0.5f};
    const auto stage = make_stage(description);
    const std::vector<Token> text = repetitive_text(200, 3);
    std::vector<Token> so_far;
    for (const Token token : text) {
      stage->accept(token);
      so_far.push_back(token);
    }
    const std::vector<float> logits = noise(16, 5);
    const std::size_t n =
        last_n < 0 ? so_far.size() : std::min(so_far.size(), static_cast<std::size_t>(last_n));
    std::vector<double> expected;
    for (std::size_t token = 0; token < logits.size(); ++token) {
      const auto count =
          std::count(so_far.end() - static_cast<std::ptrdiff_t>(n), so_far.end(), static_cast<Token>(token));
      double logit = static_cast<double>(logits[token]);
      if (count > 0)
        logit = (logit > 0 ? logit / 1.3 : logit * 1.3) - 0.25 * static_cast<double>(count) - 0.5;
      expected.push_back(logit);
    }
    expect_near(after(*stage, logits), expected, 1e-5);
  }
}

/// For each token the length of the longest repetition that it would continue, by comparing everything.
std::map<Token, std::size_t> repetitions(const std::vector<Token>& text, std::size_t longest) {
  std::map<Token, std::size_t> result;
  for (std::size_t next = 1; next < text.size(); ++next) {
    std::size_t length = 0;
    while (length < std::min(next, longest) && text[next - 1 - length] == text[text.size() - 1 - length])
      ++length;
    if (length > 0) result[text[next]] = std::max(result[text[next]], length);
  }
  return result;
}

TEST(Dry, EqualsASecondImplementation) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Token> text = repetitive_text(1 + seed % 90, seed);
    const auto stage = make_stage(stage::Dry{0.8f, 1.75f, 2, -1});
    for (const Token token : text) stage->accept(token);
    const std::vector<float> logits = noise(12, seed);
    std::vector<double> expected(logits.begin(), logits.end());
    for (const auto& [token, length] : repetitions(text, text.size())) {
      if (length >= 2)
        expected[static_cast<std::size_t>(token)] -= 0.8 * std::pow(1.75, static_cast<double>(length) - 2);
    }
    for (double& logit : expected)
      logit = std::max(logit, -static_cast<double>(std::numeric_limits<float>::max()));
    const std::vector<double> actual = after(*stage, logits);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "seed " << seed;
  }
}

TEST(Dry, NoRepetitionExtendsAcrossABreaker) {
  // After "7 8" (a breaker) only 1 2 is repeated, though 5 7 8 1 2 is.
  const std::vector<Token> text = {5, 7, 8, 1, 2, 9, 5, 7, 8, 1, 2};
  stage::Dry description{1, 2, 1, -1};
  description.breakers = {{7, 8}};
  const auto stage = make_stage(description);
  for (const Token token : text) stage->accept(token);
  const std::vector<double> logits = after(*stage, std::vector<float>(10, 0.0f));
  EXPECT_EQ(logits[9], -2);  // 2 ^ (2 - 1)
}

TEST(Dry, ABreakerOfOneTokenIsNeverPunished) {
  stage::Dry description{1, 2, 1, -1};
  description.breakers = {{3}};
  const auto stage = make_stage(description);
  for (const Token token : {1, 2, 3, 1, 2}) stage->accept(token);
  EXPECT_EQ(after(*stage, std::vector<float>(4, 0.0f))[3], 0);
}

TEST(Dry, ABreakerLongerThanTheTextIsNone) {
  stage::Dry description{1, 2, 1, -1};
  description.breakers = {{2, 4, 4, 4, 4, 4, 4, 4}, {}};
  const auto stage = make_stage(description);
  for (const Token token : {1, 2, 1}) stage->accept(token);
  EXPECT_EQ(after(*stage, std::vector<float>(5, 0.0f))[2], -1);
}

TEST(Dry, OnlyTheWindowCounts) {
  const auto stage = make_stage(stage::Dry{1, 2, 1, 3});
  for (const Token token : {1, 2, 5, 6, 1}) stage->accept(token);
  EXPECT_EQ(after(*stage, std::vector<float>(8, 0.0f))[2], 0);  // 1 2 is too far back
}

TEST(Dry, ARepetitionOfAnyLengthLeavesFiniteLogits) {
  const auto stage = make_stage(stage::Dry{1, 4, 2, -1});
  for (int i = 0; i < 2000; ++i) stage->accept(1);
  EXPECT_GT(after(*stage, std::vector<float>(3, 0.0f))[1], -kInfinity);
}

TEST(Xtc, EqualsASecondImplementation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> logits = noise(30, seed);
    const std::vector<double> p = softmax({logits.begin(), logits.end()});
    std::vector<double> expected(logits.begin(), logits.end());
    double least = 2;  // least probability of those that reach the threshold
    for (const double one : p) least = one >= 0.1 ? std::min(least, one) : least;
    for (std::size_t i = 0; i < p.size(); ++i)
      expected[i] = p[i] > least && p[i] >= 0.1 ? -kInfinity : expected[i];
    expect_near(after(*make_stage(stage::Xtc{1, 0.1f, 1, seed}), logits), expected, 0);
  }
}

TEST(Xtc, ActsWithItsProbability) {
  const auto stage = make_stage(stage::Xtc{0.3f, 0.1f, 1, 4});
  int acted = 0;
  for (int i = 0; i < 10000; ++i) acted += std::isinf(after(*stage, {2, 2, 0})[0]) ? 1 : 0;
  EXPECT_NEAR(acted, 3000, 150);
}

TEST(Xtc, KeepsAtLeastSoMany) {
  EXPECT_EQ(after(*make_stage(stage::Xtc{1, 0.1f, 3, 1}), {2, 2, 2}), std::vector<double>({2, 2, 2}));
}

/// Follows a stage that draws: what it may choose, by an own account of its bound.
template <typename Allowed>
void follow(Stage& stage, double tau, double eta, Allowed allowed) {
  double mu = 2 * tau;
  for (std::uint64_t step = 0; step < 300; ++step) {
    const std::vector<float> logits = noise(200, step);
    std::vector<double> p = softmax({logits.begin(), logits.end()});
    const std::vector<bool> keeps = allowed(p, mu);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += keeps[i] ? p[i] : 0;
    Candidates candidates;
    candidates.assign(logits);
    stage.apply(candidates);
    const auto chosen = static_cast<std::size_t>(candidates.selected());
    ASSERT_TRUE(keeps[chosen]) << "step " << step;
    mu -= eta * (-std::log2(p[chosen] / sum) - tau);
  }
}

TEST(Mirostat2, ChoosesOnlyWhatASecondImplementationAllows) {
  const auto stage = make_stage(stage::Mirostat2{3, 0.2f, 17});
  follow(*stage, 3, static_cast<double>(0.2f), [](const std::vector<double>& p, double mu) {
    const double max = *std::max_element(p.begin(), p.end());
    std::vector<bool> keeps;
    for (const double one : p) keeps.push_back(one == max || -std::log2(one) <= mu + 1e-5);
    return keeps;
  });
}

TEST(Mirostat, ChoosesOnlyWhatASecondImplementationAllows) {
  const auto stage = make_stage(stage::Mirostat{3, 0.2f, 100, 0, 17});
  follow(*stage, 3, static_cast<double>(0.2f), [](const std::vector<double>& p, double mu) {
    std::vector<double> sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    double products = 0, squares = 0;
    for (std::size_t i = 0; i + 1 < 100; ++i) {
      const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += t * std::log(sorted[i] / sorted[i + 1]);
      squares += t * t;
    }
    const double s = products / squares, epsilon = s - 1;
    const double k = std::pow(epsilon * std::pow(2, mu) / (1 - std::pow(200, -epsilon)), 1 / s);
    const std::size_t n = std::clamp<std::size_t>(k > 200 ? 200 : static_cast<std::size_t>(k), 1, 200);
    std::vector<bool> keeps;
    for (const double one : p) keeps.push_back(one >= sorted[n - 1] * (1 - 1e-12));
    return keeps;
  });
}

TEST(Mirostat2, HoldsTheAverageSurpriseNearItsTarget) {
  const auto stage = make_stage(stage::Mirostat2{2, 0.1f, 5});
  double sum = 0;
  constexpr int kSteps = 2000;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> logits = noise(200, static_cast<std::uint64_t>(step));
    Candidates candidates;
    candidates.assign(logits);
    stage->apply(candidates);
    for (const Candidate& candidate : candidates.items()) {
      if (candidate.id == candidates.selected()) sum -= std::log2(static_cast<double>(candidate.prob));
    }
  }
  EXPECT_NEAR(sum / kSteps, 2.0, 0.1);
}

TEST(AdaptiveP, ChangesLogitsAsASecondImplementationDoes) {
  const auto stage = make_stage(stage::AdaptiveP{0.4f, 0.9f, 3});
  double sum = 0.4 / (1 - 0.9), weight = 1 / (1 - 0.9);
  for (std::uint64_t step = 0; step < 100; ++step) {
    const std::vector<float> logits = noise(20, step, 4);
    const std::vector<double> p = softmax({logits.begin(), logits.end()});
    const double aim = std::clamp(2 * 0.4 - sum / weight, 0.0, 1.0);
    std::vector<double> expected;
    for (const double one : p) {
      const double d = std::abs(one - aim) / 0.3;
      expected.push_back(5 - 10 * d * d / (1 + d));
    }
    Candidates candidates;
    candidates.assign(logits);
    stage->apply(candidates);
    for (const Candidate& c : candidates.items())
      ASSERT_NEAR(static_cast<double>(c.logit), expected[static_cast<std::size_t>(c.id)], 1e-4)
          << "step " << step;
    stage->accept(candidates.selected());
    sum = p[static_cast<std::size_t>(candidates.selected())] + 0.9 * sum;
    weight = 1 + 0.9 * weight;
  }
}

TEST(AdaptiveP, LearnsOnlyFromTokensThatItDrew) {
  const auto draws_after = [](Token accepted) {
    const auto stage = make_stage(stage::AdaptiveP{0.9f, 0.5f, 3});
    Candidates candidates;
    candidates.assign(std::vector<float>{0, 0, 0, 0});
    stage->apply(candidates);
    stage->accept(accepted < 0 ? candidates.selected() : (candidates.selected() + accepted) % 4);
    candidates.assign(std::vector<float>{2, 1, 0, -1});
    stage->apply(candidates);
    return candidates.items()[0].logit;
  };
  EXPECT_EQ(draws_after(1), draws_after(2));
  EXPECT_NE(draws_after(-1), draws_after(1));
}

std::shared_ptr<const TokenTexts> texts(std::vector<std::string> pieces) {
  TokenTexts result{std::move(pieces), {}, 0};
  result.end_generation.resize(result.pieces.size());
  result.end_generation[0] = true;
  return std::make_shared<const TokenTexts>(std::move(result));
}

std::vector<float> logs(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

TEST(Infill, EndsTheTextWhereThatIsProbable) {
  const auto stage = make_stage(stage::Infill{texts({"", "a", "b", "c"})});
  const std::vector<double> logits = after(*stage, logs({0.2f, 0.4f, 0.2f, 0.2f}));
  EXPECT_GT(logits[0], -kInfinity);
  EXPECT_EQ(std::count(logits.begin(), logits.end(), -kInfinity), 3);
}

TEST(Infill, TokensThatBeginAlikeCountTogether) {
  const auto stage = make_stage(stage::Infill{texts({"", "foo", "fo", "bar", "f"})});
  const std::vector<double> logits = after(*stage, logs({0.01f, 0.3f, 0.2f, 0.29f, 0.2f}));
  EXPECT_NEAR(std::exp(logits[1]), 0.7, 1e-5);
  EXPECT_EQ(logits[2], -kInfinity);
  EXPECT_EQ(logits[4], -kInfinity);
}

TEST(Infill, WhereAllTextIsImprobableTheTextEnds) {
  std::vector<std::string> pieces = {""};
  for (char c = 'a'; c <= 'z'; ++c) pieces.emplace_back(1, c);
  const auto stage = make_stage(stage::Infill{texts(pieces)});
  std::vector<float> logits(27, 0.0f);
  logits[0] = -30;
  EXPECT_EQ(after(*stage, logits)[0], 0);
}

TEST(Infill, WithoutTextsIsRefused) {
  EXPECT_THROW(make_stage(stage::Infill{}), Error);
}

TEST(Bias, ABannedTokenIsNeverChosenAndBanningAllIsAnError) {
  const float ban = -std::numeric_limits<float>::infinity();
  const auto one = make_stage(stage::Bias{{{1, ban}}});
  EXPECT_EQ(after(*one, {0, 5, 0})[1], -kInfinity);
  const auto all = make_stage(stage::Bias{{{0, ban}, {1, ban}}});
  EXPECT_THROW(after(*all, {0, 5}), Error);
}

TEST(Bias, AnImpossibleTokenStaysImpossible) {
  const auto stage = make_stage(stage::Bias{{{0, 1000}}});
  EXPECT_EQ(after(*stage, {-std::numeric_limits<float>::infinity(), 0})[0], -kInfinity);
}

TEST(Bias, ATokenNamedTwiceIsRefused) {
  EXPECT_THROW(make_stage(stage::Bias{{{0, 1}, {0, 2}}}), Error);
}

TEST(Bias, AppliesAlsoToAListInAnotherOrder) {
  Chain chain;
  chain.add(make_stage(stage::TopK{2}));
  chain.add(make_stage(stage::Bias{{{0, 10}, {77, 3}}}));
  EXPECT_EQ(chain.sample(std::vector<float>{1, 4, 3, 0}), 1);  // token 0 is not in the list any more
  Chain wide;
  wide.add(make_stage(stage::TopK{4}));
  wide.add(make_stage(stage::Bias{{{0, 10}}}));
  EXPECT_EQ(wide.sample(std::vector<float>{1, 4, 3, 0}), 0);
}

}  // namespace
}  // namespace quipu::sampling
