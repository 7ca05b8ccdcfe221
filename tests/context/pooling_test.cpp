// Pooling of rows into one vector for each sequence.
#include <gtest/gtest.h>

#include "context/pooling.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

std::vector<float> pooled(Pooling pooling, const std::vector<std::vector<float>>& rows) {
  PooledRows result(pooling, 2, rows[0].size());
  const SequenceId sequence = 1;
  result.begin({&sequence, 1});
  for (const auto& row : rows) result.add(sequence, row);
  result.finish();
  const auto row = result.at(sequence);
  return {row.begin(), row.end()};
}

TEST(Pooling, MeanIsThatOfAllRows) {
  EXPECT_EQ(pooled(Pooling::mean, {{1, 2}, {3, -2}, {5, 3}}), (std::vector<float>{3, 1}));
}
TEST(Pooling, FirstAndLastAreRowsAsTheyCame) {
  EXPECT_EQ(pooled(Pooling::first, {{1, 2}, {3, -2}, {5, 3}}), (std::vector<float>{1, 2}));
  EXPECT_EQ(pooled(Pooling::last, {{1, 2}, {3, -2}, {5, 3}}), (std::vector<float>{5, 3}));
}

TEST(Pooling, ASequenceThatIsNotInTheBatchHasNothing) {
  PooledRows rows(Pooling::mean, 2, 1);
  const SequenceId sequence = 0;
  rows.begin({&sequence, 1});
  rows.add(0, std::vector<float>{1});
  rows.finish();
  for (const SequenceId other : {1, 2, -1}) EXPECT_THROW(rows.at(other), Error);
}

TEST(Pooling, ABatchForgetsTheOneBefore) {
  PooledRows rows(Pooling::mean, 2, 1);
  for (const SequenceId sequence : {0, 1}) {
    rows.begin({&sequence, 1});
    rows.add(sequence, std::vector<float>{static_cast<float>(sequence + 4)});
    rows.finish();
  }
  EXPECT_THROW(rows.at(0), Error);
  ASSERT_EQ(rows.at(1).size(), 1U);
  EXPECT_EQ(rows.at(1)[0], 5);
}

}  // namespace
}  // namespace quipu::test
