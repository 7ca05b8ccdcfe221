// What a template may use up. Templates come with model files, so one may try to run for ever or to fill
// memory; every piece of work is paid for here before it is done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace quipu::jinja {

struct Limits {
  std::uint64_t steps = 20'000'000;    ///< evaluated nodes, compared elements, and 16ths of copied characters
  std::uint64_t memory = 192'000'000;  ///< bytes of strings and lists that are made, in all
  std::uint64_t memory_per_input = 64;  ///< and so many more for each byte of input
  std::uint32_t depth = 900;            ///< evaluations inside each other, as by macros that call themselves
  std::uint32_t value_depth = 200;      ///< lists and dictionaries inside each other
};

inline constexpr std::size_t kMaxTemplateBytes = 4'000'000;
/// Longest range(), as in Jinja's sandbox.
inline constexpr std::uint64_t kMaxRange = 100'000;

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits), steps_(limits.steps), memory_(limits.memory) {}

  const Limits& limits() const { return limits_; }
  void add_input(std::size_t bytes) { memory_ += bytes * limits_.memory_per_input; }

  void steps(std::uint64_t n = 1) {
    if (n > steps_)
      fail(ErrorCode::invalid_argument, "the template takes too long (over {} steps)", limits_.steps);
    steps_ -= n;
  }
  void bytes(std::uint64_t n) {
    if (n > memory_) fail(ErrorCode::invalid_argument, "the template takes too much memory");
    memory_ -= n;
  }
  /// A string of `n` characters.
  void text(std::uint64_t n) {
    if (n > memory_ / sizeof(char32_t)) bytes(memory_ + 1);
    steps(1 + n / 16);
    bytes(n * sizeof(char32_t));
  }

 private:
  Limits limits_;
  std::uint64_t steps_;
  std::uint64_t memory_;
};

}  // namespace quipu::jinja
