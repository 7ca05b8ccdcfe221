// A compiled graph: steps grouped in phases. Inside a phase threads work on their own; between phases they
// meet, unless the next one is too little for more than one of them.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/observation.h"
#include "backend/cpu/step.h"
#include "backend/cpu/work_shares.h"
#include "backend/device.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"

namespace quipu::cpu {

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
    std::vector<Observation> observations;  ///< by phase, ascending
  };
  /// Without memory it tells what it would take, and cannot run.
  CpuPlan(Parts parts, unsigned max_threads, Backing backing);

  void run(const RunArguments& arguments) override;
  std::size_t bytes() const override { return arena_.size() + scratch_.size(); }
  std::size_t n_meetings() const override { return n_meetings_; }

 private:
  /// What a phase is in the present run.
  struct PhaseRun {
    std::uint32_t end;  ///< pieces that are done when it is
    bool follows;       ///< who finishes the phase before it does this one as well, before the others go on
  };

  void resolve_pointers(const RunArguments& arguments);
  WorkerPool& pool(const RunArguments& arguments);
  void share_out(const Run& run, unsigned n_threads);
  void run_alone(const Run& run);
  void run_together(const Run& run, unsigned thread, unsigned n_threads);
  std::uint32_t take_pieces(const Run& run, std::size_t phase, std::size_t first_chain, unsigned thread,
                            unsigned n_threads);
  void run_whole(const Run& run, const Phase& phase, unsigned thread);
  void run_observed(const Run& run, WorkerPool& workers, unsigned n_threads);
  bool must_stop(const Run& run);
  std::span<std::byte> scratch_of(unsigned thread);

  Parts parts_;
  AlignedBuffer arena_;
  AlignedBuffer scratch_;
  const bool
      poisons_;  // fills arena and scratch with bytes of ones before each run: no result may depend on them
  std::vector<std::byte*> pointers_;
  bool can_run_;
  unsigned max_threads_;
  std::unique_ptr<WorkerPool> own_pool_;
  WorkShares shares_;
  std::vector<PhaseRun> phase_runs_;
  std::size_t n_meetings_ = 0;
  std::exception_ptr abort_failure_;  // what the abort callback threw
};

}  // namespace quipu::cpu
