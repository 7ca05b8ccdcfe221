#include "sampling/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace quipu::sampling {
namespace {

TEST(Random, GivesThePublishedSequenceOfXoshiro256PlusPlus) {
  Random random(std::array<std::uint64_t, 4>{1, 2, 3, 4});
  EXPECT_EQ(random.next(), 41943041u);
  EXPECT_EQ(random.next(), 58720359u);
  EXPECT_EQ(random.next(), 3588806011781223u);
  EXPECT_EQ(random.next(), 3591011842654386u);
  EXPECT_EQ(random.next(), 9228616714210784205u);
}

TEST(Random, SplitMixGivesItsPublishedSequence) {
  std::uint64_t state = 1234567;
  EXPECT_EQ(split_mix_64(state), 6457827717110365317u);
  EXPECT_EQ(split_mix_64(state), 3203168211198807973u);
  EXPECT_EQ(split_mix_64(state), 9817491932198370423u);
}

TEST(Random, UniformStaysBelowOneAndAveragesAHalf) {
  Random random(7);
  double sum = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
}

TEST(Random, DifferentSeedsGiveDifferentNumbers) {
  EXPECT_NE(Random(1).next(), Random(2).next());
}

}  // namespace
}  // namespace quipu::sampling
