// Checked arithmetic at the edges of its types.
#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace quipu {
namespace {

constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedAdd, ReportsASumThatDoesNotFit) {
  EXPECT_EQ(checked_add(kMax - 1, std::uint64_t{1}), kMax);
  EXPECT_EQ(checked_add(kMax, std::uint64_t{1}), std::nullopt);
}

TEST(CheckedAdd, ReportsSignedOverflowAtBothEnds) {
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(checked_add(std::numeric_limits<std::int32_t>::max(), 1), std::nullopt);
  EXPECT_EQ(checked_add(kLowest, -1), std::nullopt);
}

TEST(CheckedMul, ReportsAProductThatDoesNotFit) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
  EXPECT_EQ(checked_mul(kHalf, kHalf - 1), kHalf * (kHalf - 1));
  EXPECT_EQ(checked_mul(kHalf, kHalf), std::nullopt);
}

TEST(CheckedRoundUp, GivesTheNextMultipleOrTheValueItself) {
  EXPECT_EQ(checked_round_up<std::uint64_t>(33, 32), 64u);
  EXPECT_EQ(checked_round_up<std::uint64_t>(64, 32), 64u);
  EXPECT_EQ(checked_round_up<std::uint64_t>(0, 32), 0u);
}

TEST(CheckedRoundUp, ReportsAMultipleThatDoesNotFit) {
  EXPECT_EQ(checked_round_up<std::uint64_t>(kMax, 32), std::nullopt);
  EXPECT_EQ(checked_round_up<std::uint64_t>(kMax - 31, 32), kMax - 31);
}

TEST(CeilDiv, RoundsUp) {
  EXPECT_EQ(ceil_div(33, 16), 3);
  EXPECT_EQ(ceil_div(32, 16), 2);
}

}  // namespace
}  // namespace quipu
