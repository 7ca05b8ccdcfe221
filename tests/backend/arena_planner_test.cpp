#include "backend/arena_planner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quipu {
namespace {

bool overlap(const ArenaLayout& layout, const std::vector<ArenaRequest>& requests, std::size_t a,
             std::size_t b) {
  const bool in_time =
      requests[a].first_phase <= requests[b].last_phase && requests[b].first_phase <= requests[a].last_phase;
  const bool in_space = layout.offsets[a] < layout.offsets[b] + requests[b].bytes &&
                        layout.offsets[b] < layout.offsets[a] + requests[a].bytes;
  return in_time && in_space;
}

TEST(ArenaPlanner, GivesBytesToOneTensorAtATime) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaRequest> requests;
    for (int i = 0; i < 40; ++i) {
      const std::size_t first = random() % 20;
      requests.push_back({1 + random() % 5000, first, first + random() % 6});
    }
    const ArenaLayout layout = plan_arena(requests);
    for (std::size_t a = 0; a < requests.size(); ++a) {
      EXPECT_LE(layout.offsets[a] + requests[a].bytes, layout.bytes);
      for (std::size_t b = a + 1; b < requests.size(); ++b) EXPECT_FALSE(overlap(layout, requests, a, b));
    }
  }
}

TEST(ArenaPlanner, ReusesTheBytesOfTensorsThatAreDone) {
  const std::vector<ArenaRequest> requests = {{1024, 0, 1}, {1024, 2, 3}, {1024, 4, 5}};
  EXPECT_EQ(plan_arena(requests).bytes, 1024u);
}

TEST(ArenaPlanner, FillsGapsBelowLargerTensors) {
  const std::vector<ArenaRequest> requests = {{1024, 0, 1}, {4096, 0, 9}, {512, 2, 3}};
  EXPECT_EQ(plan_arena(requests).bytes, 1024u + 4096u);
}

TEST(ArenaPlanner, StartsEveryTensorOnACacheLine) {
  const std::vector<ArenaRequest> requests = {{100, 0, 1}, {7, 0, 1}, {65, 0, 1}};
  for (const std::size_t offset : plan_arena(requests).offsets) EXPECT_EQ(offset % 64, 0u);
}

TEST(ArenaPlanner, NeedsNothingForNothing) {
  EXPECT_EQ(plan_arena({}).bytes, 0u);
}

}  // namespace
}  // namespace quipu
