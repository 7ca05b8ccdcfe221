// A compiled graph: steps grouped in phases. Inside a phase threads work on their own; between phases they
// meet.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/work_shares.h"
#include "backend/device.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"

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

/// Where a buffer of a finished plan lies.
struct BufferPlace {
  enum class Kind : std::uint8_t { input, output, arena, token } kind;
  std::size_t index;  ///< ordinal of the input or output, offset in the arena
};

class CpuPlan final : public Plan {
 public:
  struct Parts {
    std::vector<Phase> phases;
    std::vector<BufferPlace> buffers;
    std::size_t arena_bytes = 0;
    std::size_t scratch_bytes = 0;  ///< for each thread
    Extents max_extents;
    /// Called by one thread before the first phase.
    std::vector<std::function<void(const Run&)>> prologue;
  };
  CpuPlan(Parts parts, unsigned max_threads);

  void run(const RunArguments& arguments) override;
  std::size_t bytes() const override { return arena_.size() + scratch_.size(); }
  std::size_t n_phases() const override { return parts_.phases.size(); }

 private:
  void resolve_pointers(const RunArguments& arguments);
  void share_out(const Run& run, unsigned n_threads);
  void run_alone(const Run& run);
  void run_together(const Run& run, unsigned thread, unsigned n_threads);
  void run_phase(const Run& run, std::size_t phase, std::size_t first_chain, unsigned thread,
                 unsigned n_threads);
  bool must_stop(const Run& run);
  std::span<std::byte> scratch_of(unsigned thread);

  Parts parts_;
  AlignedBuffer arena_;
  AlignedBuffer scratch_;
  std::vector<std::byte*> pointers_;
  ThreadPool pool_;
  WorkShares shares_;
  std::vector<std::uint32_t> phase_ends_;  // by phase: pieces of work that are done when it is
  std::exception_ptr abort_failure_;       // what the abort callback threw
};

}  // namespace quipu::cpu
