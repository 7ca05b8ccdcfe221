// Who does what in a phase. Each thread has a share of every chain's units, cut into a few pieces; a thread
// that is done with its own takes pieces of the others', and a phase is over when all pieces are done, not
// when all threads have come. So a thread that lost its core stalls nobody unless it holds a piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_pool.h"

namespace quipu::cpu {

struct UnitRange {
  std::size_t begin, end;
};

class WorkShares {
 public:
  WorkShares(std::size_t n_chains, unsigned max_threads);

  /// One thread, before the others begin: a new run of `n_threads`.
  void start(unsigned n_threads);
  /// Sets how many units a chain has in this run, before the others begin. -> its pieces
  std::uint32_t set_units(std::size_t chain, std::size_t n_units);
  /// A piece of the share that `owner` has of a chain; nothing if all are taken.
  std::optional<UnitRange> claim(std::size_t chain, unsigned owner);

  /// Counts pieces done, over all chains of the run.
  Epoch& done() { return done_; }

 private:
  /// Pieces taken of one thread's share of one chain, with the number of the run that it counts for, so that
  /// nothing needs to be reset.
  struct alignas(64) Taken {
    std::atomic<std::uint64_t> run_and_count{0};
  };

  UnitRange share(std::size_t chain, unsigned owner) const;

  unsigned max_threads_;
  unsigned n_threads_ = 1;
  std::uint32_t run_ = 0;
  std::vector<std::size_t> n_units_;  // [n_chains]
  std::vector<Taken> taken_;          // [n_chains, max_threads]
  Epoch done_;
};

}  // namespace quipu::cpu
