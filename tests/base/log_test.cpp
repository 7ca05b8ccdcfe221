// The log's sink and level, which belong to the process: each test puts them back.
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quipu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class Log : public ::testing::Test {
 protected:
  void TearDown() override {
    set_log_sink({});
    set_log_level(LogLevel::warning);
  }

  void capture() {
    set_log_sink([this](LogLevel level, std::string_view text) { lines_.emplace_back(level, text); });
  }

  std::vector<std::pair<LogLevel, std::string>> lines_;
};

TEST_F(Log, GivesFormattedLinesToTheSink) {
  capture();
  log_warning("n_ctx rounded up to {}", 256);
  EXPECT_THAT(lines_, ElementsAre(Pair(LogLevel::warning, "n_ctx rounded up to 256")));
}

TEST_F(Log, DropsLinesBelowTheLevel) {
  capture();
  log_info("not asked for");
  set_log_level(LogLevel::info);
  log_info("asked for");
  EXPECT_THAT(lines_, ElementsAre(Pair(LogLevel::info, "asked for")));
}

TEST_F(Log, WritesToStandardErrorWithoutASink) {
  ::testing::internal::CaptureStderr();
  log_error("the disk is full");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("error: the disk is full\n"));
}

TEST_F(Log, OutlivesASinkThatThrows) {
  set_log_sink([](LogLevel, std::string_view) { throw std::runtime_error("sink"); });
  EXPECT_NO_THROW(log_error("lost"));
}

TEST_F(Log, CallsTheSinkFromOneThreadAtATime) {
  capture();  // the vector has no lock of its own
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) log_error("line {}", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 300u);
}

}  // namespace
}  // namespace quipu
