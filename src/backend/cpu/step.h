// The pieces of a plan: steps over numbered buffers, chained where they follow each other on the same units,
// side by side in phases where they need nothing of each other.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/work_shares.h"
#include "backend/device.h"

namespace quipu::cpu {

/// Number of a buffer of the plan: an input, an output, an intermediate result, or a token that stands for
/// memory outside the plan (a cache) so that reads wait for writes.
using BufferId = std::size_t;

/// One run of a plan, as its steps see it.
class Run {
 public:
  Run(const RunArguments& run_arguments, std::span<std::byte* const> pointers)
      : arguments(run_arguments), pointers_(pointers) {}

  const RunArguments& arguments;

  template <typename T>
  T* data(BufferId buffer) const {
    return reinterpret_cast<T*>(pointers_[buffer]);
  }
  std::size_t count(const Dim& dim) const { return dim.resolve(arguments.extents); }

 private:
  std::span<std::byte* const> pointers_;
};

/// A piece of a plan: work in numbered units, which threads share out in contiguous ranges. Which thread does
/// a unit never changes a result.
struct Step {
  std::string name;
  /// Set if unit r makes row r of what is written from row r of what is read: steps over the rows of one
  /// dimension follow each other without a meeting.
  std::optional<Dim> rows{};
  std::vector<BufferId> reads{}, writes{};
  /// A pure function of the run's inputs, never of what steps write.
  std::function<std::size_t(const Run&)> n_units{};
  std::function<void(const Run&, UnitRange, std::span<std::byte> scratch)> body{};
  std::size_t scratch_bytes = 0;  ///< for each thread
};

/// Steps that follow each other on the same units: a thread takes a range of units through all of them.
struct Chain {
  std::vector<Step> steps;
};

/// Chains that need nothing of each other.
using Phase = std::vector<Chain>;

}  // namespace quipu::cpu
