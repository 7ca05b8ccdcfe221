#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace quipu {
namespace {

TEST(WorkerPool, CallsTheBodyOnceForEachThread) {
  WorkerPool pool(3);
  std::vector<std::atomic<int>> calls(3);
  pool.run(3, [&](unsigned thread) { ++calls[thread]; });
  for (const auto& n : calls) EXPECT_EQ(n, 1);
}

TEST(WorkerPool, UsesNoMoreThreadsThanAsked) {
  WorkerPool pool(3);
  std::atomic<int> calls = 0;
  pool.run(2, [&](unsigned thread) {
    EXPECT_LT(thread, 2u);
    ++calls;
  });
  EXPECT_EQ(calls, 2);
}

TEST(WorkerPool, NeverUsesMoreThreadsThanItHas) {
  WorkerPool pool(2);
  std::atomic<int> calls = 0;
  pool.run(100, [&](unsigned) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(WorkerPool, RunsWithChangingThreadCounts) {
  WorkerPool pool(4);
  for (unsigned round = 0; round < 200; ++round) {
    const unsigned n_threads = 1 + round % 4;
    std::atomic<unsigned> calls = 0;
    pool.run(n_threads, [&](unsigned) { ++calls; });
    EXPECT_EQ(calls, n_threads);
  }
}

TEST(WorkerPool, ServesCallersInTurns) {
  WorkerPool pool(2);
  std::atomic<int> inside = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.run(2, [&](unsigned) {
          EXPECT_LE(++inside, 2);
          --inside;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Epoch, ShowsEverythingWrittenBeforeItWasRaised) {
  constexpr unsigned kThreads = 4;
  constexpr int kRounds = 500;
  WorkerPool pool(kThreads);
  Epoch met;
  std::vector<int> values(kThreads, 0);
  pool.run(kThreads, [&](unsigned thread) {
    std::uint32_t target = 0;
    for (int round = 1; round <= kRounds; ++round) {
      values[thread] = round;
      met.add(1);
      met.wait_for(target += kThreads);
      EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), round * static_cast<int>(kThreads));
      met.add(1);
      met.wait_for(target += kThreads);
    }
  });
}

TEST(Epoch, CountsOnPastItsLargestValue) {
  Epoch epoch;
  epoch.publish(0xfffffffeu);
  EXPECT_FALSE(epoch.reached(0xffffffffu));
  epoch.add(3);
  EXPECT_TRUE(epoch.reached(0xffffffffu));
  EXPECT_TRUE(epoch.reached(1));
}

}  // namespace
}  // namespace quipu
