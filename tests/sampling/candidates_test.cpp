#include "sampling/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "quipu/error.h"
#include "sampling/random.h"

namespace quipu::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Candidates candidates_of(const std::vector<float>& logits) {
  Candidates candidates;
  candidates.assign(logits);
  return candidates;
}

std::vector<Token> ids(const Candidates& candidates) {
  std::vector<Token> result;
  for (const Candidate& candidate : candidates.items()) result.push_back(candidate.id);
  return result;
}

std::vector<float> random_logits(std::size_t n, int levels) {
  Random random(n);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = static_cast<float>(random.next() % static_cast<std::uint64_t>(levels));
  return logits;
}

std::string error_of(const std::vector<float>& logits) {
  try {
    candidates_of(logits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

TEST(Candidates, AnEmptyListIsAnError) {
  EXPECT_EQ(error_of({}), "sampling: the list of logits is empty");
}

TEST(Candidates, WithoutAFiniteLogitTheErrorCountsWhatWasThere) {
  EXPECT_EQ(error_of({kNan, -kInfinity, kInfinity, -kInfinity}),
            "sampling: none of 4 logits is finite (1 NaN, 2 minus infinity, 1 plus infinity)");
}

TEST(Candidates, AListCanBeUsedAgainAfterAnError) {
  Candidates candidates;
  EXPECT_THROW(candidates.assign(std::vector<float>{kNan}), Error);
  candidates.assign(std::vector<float>{1, 2});
  EXPECT_EQ(candidates.likeliest().id, 1);
}

TEST(Candidates, NanCountsAsMinusInfinity) {
  const Candidates candidates = candidates_of({kNan, 1, kNan});
  EXPECT_EQ(candidates.items()[0].logit, -kInfinity);
  EXPECT_EQ(candidates.likeliest().id, 1);
}

TEST(Candidates, OfEqualLogitsTheLowestTokenIsTheLikeliest) {
  EXPECT_EQ(candidates_of({1, 3, 3, 2, 3}).likeliest().id, 1);
}

TEST(Candidates, KeepingTheLikeliestEqualsAFullSort) {
  for (const int levels : {1, 3, 50, 1000000}) {
    for (const std::size_t k : {1u, 2u, 40u, 999u, 1000u, 5000u}) {
      Candidates few = candidates_of(random_logits(1000, levels));
      Candidates all = few;
      few.keep_likeliest(k);
      all.sort_front(all.size());
      all.truncate(k);
      EXPECT_EQ(ids(few), ids(all)) << levels << " levels, k " << k;
    }
  }
}

TEST(Candidates, KeepingTheLikeliestTakesRisingLogits) {
  std::vector<float> logits(10000);
  std::iota(logits.begin(), logits.end(), 0.0f);
  Candidates candidates = candidates_of(logits);
  candidates.keep_likeliest(3);
  EXPECT_THAT(ids(candidates), testing::ElementsAre(9999, 9998, 9997));
}

TEST(Candidates, SortingTheFrontInStepsEqualsOneSort) {
  Candidates steps = candidates_of(random_logits(500, 20));
  Candidates once = steps;
  for (const std::size_t k : {3u, 100u, 50u, 400u, 500u}) steps.sort_front(k);
  once.sort_front(500);
  EXPECT_EQ(ids(steps), ids(once));
}

TEST(Candidates, ProbabilitiesSumToOne) {
  Candidates candidates = candidates_of({1e38f, 1e38f, -1e38f, 0});
  candidates.normalize();
  EXPECT_EQ(candidates.items()[0].prob, 0.5f);
  EXPECT_EQ(candidates.items()[1].prob, 0.5f);
  EXPECT_EQ(candidates.items()[2].prob, 0.0f);
}

TEST(Candidates, PlusInfinitySharesTheWholeProbability) {
  Candidates candidates = candidates_of({3, kInfinity, -kInfinity, kInfinity});
  candidates.normalize();
  EXPECT_EQ(candidates.items()[0].prob, 0.0f);
  EXPECT_EQ(candidates.items()[1].prob, 0.5f);
  EXPECT_EQ(candidates.items()[2].prob, 0.0f);
  EXPECT_EQ(candidates.items()[3].prob, 0.5f);
}

TEST(Candidates, ProbabilitiesOfALargeListSumToOne) {
  Candidates candidates = candidates_of(random_logits(150000, 30));
  candidates.normalize();
  double sum = 0;
  for (const Candidate& candidate : candidates.items()) sum += static_cast<double>(candidate.prob);
  EXPECT_NEAR(sum, 1.0, 1e-6);
}

}  // namespace
}  // namespace quipu::sampling
