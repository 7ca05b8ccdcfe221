#include "backend/cpu/work_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace quipu::cpu {
namespace {

/// All units that are handed out, each counted.
std::vector<int> count_units(WorkShares& shares, std::size_t chain, std::size_t n_units, unsigned n_threads) {
  std::vector<int> counts(n_units, 0);
  for (unsigned owner = 0; owner < n_threads; ++owner) {
    while (const auto range = shares.claim(chain, owner)) {
      for (std::size_t unit = range->begin; unit < range->end; ++unit) ++counts[unit];
    }
  }
  return counts;
}

TEST(WorkShares, HandOutEveryUnitOnce) {
  WorkShares shares(1, 5);
  for (const unsigned n_threads : {1u, 2u, 3u, 5u}) {
    for (const std::size_t n_units : {0u, 1u, 2u, 7u, 64u, 1000u}) {
      shares.start(n_threads);
      shares.set_units(0, n_units);
      EXPECT_EQ(count_units(shares, 0, n_units, n_threads), std::vector<int>(n_units, 1));
    }
  }
}

TEST(WorkShares, SayHowManyPiecesThereAre) {
  WorkShares shares(2, 3);
  shares.start(3);
  for (const std::size_t n_units : {0u, 1u, 2u, 10u, 100u}) {
    const std::uint32_t promised = shares.set_units(1, n_units);
    shares.start(3);
    std::uint32_t n = 0;
    for (unsigned owner = 0; owner < 3; ++owner) {
      while (shares.claim(1, owner)) ++n;
    }
    EXPECT_EQ(n, promised);
  }
}

TEST(WorkShares, StartAnewWithEveryRun) {
  WorkShares shares(1, 2);
  for (int run = 0; run < 3; ++run) {
    shares.start(2);
    shares.set_units(0, 16);
    EXPECT_EQ(count_units(shares, 0, 16, 2), std::vector<int>(16, 1));
    EXPECT_FALSE(shares.claim(0, 0));
  }
}

TEST(WorkShares, LetOneThreadDoTheWorkOfAnotherThatDoesNotCome) {
  WorkShares shares(1, 2);
  shares.start(2);
  shares.set_units(0, 100);
  std::size_t n_units = 0;
  for (const unsigned owner : {0u, 1u}) {  // as thread 0 goes through them
    while (const auto range = shares.claim(0, owner)) n_units += range->end - range->begin;
  }
  EXPECT_EQ(n_units, 100u);
}

TEST(WorkShares, HandOutEveryUnitOnceToThreadsThatRace) {
  constexpr unsigned kThreads = 4;
  constexpr std::size_t kUnits = 640;
  WorkShares shares(8, kThreads);
  WorkerPool pool(kThreads);
  for (int run = 0; run < 50; ++run) {
    shares.start(kThreads);
    for (std::size_t chain = 0; chain < 8; ++chain) shares.set_units(chain, kUnits);
    std::vector<std::atomic<int>> counts(8 * kUnits);
    pool.run(kThreads, [&](unsigned thread) {
      for (unsigned i = 0; i < kThreads; ++i) {
        for (std::size_t chain = 0; chain < 8; ++chain) {
          while (const auto range = shares.claim(chain, (thread + i) % kThreads)) {
            for (std::size_t unit = range->begin; unit < range->end; ++unit) ++counts[chain * kUnits + unit];
          }
        }
      }
    });
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](const auto& n) { return n == 1; }));
  }
}

}  // namespace
}  // namespace quipu::cpu
