// One line on the terminal that says how far long work has come. Nothing is written where standard error is
// not a terminal, nor in the first moments, so that quick work shows none.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace quipu::cli {

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Replaces the line; at most ten times a second.
  void show(std::string_view text);
  void show(std::string_view what, double fraction);
  /// Removes the line now.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool on_terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace quipu::cli
