#include "backend/cpu/plan.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quipu::cpu {
namespace {

std::size_t count_chains(const std::vector<Phase>& phases) {
  std::size_t n = 0;
  for (const Phase& phase : phases) n += phase.size();
  return n;
}

/// A few units at a time, so that what one step writes is still in the first cache when the next one reads
/// it.
void run_chain(const Chain& chain, const Run& run, const UnitRange& range, std::span<std::byte> scratch) {
  constexpr std::size_t kAtOnce = 4;
  const std::size_t n = chain.steps.size() == 1 ? range.end - range.begin : kAtOnce;
  for (std::size_t begin = range.begin; begin < range.end; begin += n) {
    for (const Step& step : chain.steps) step.body(run, {begin, std::min(begin + n, range.end)}, scratch);
  }
}

}  // namespace

CpuPlan::CpuPlan(Parts parts, unsigned max_threads, Backing backing)
    : parts_(std::move(parts)),
      arena_(parts_.arena_bytes, backing),
      scratch_(round_up(parts_.scratch_bytes, AlignedBuffer::kAlignment) * max_threads, backing),
      poisons_(std::getenv("QUIPU_POISON") != nullptr),
      pointers_(parts_.buffers.size(), nullptr),
      can_run_(backing == Backing::memory),
      max_threads_(max_threads),
      shares_(count_chains(parts_.phases), max_threads),
      phase_runs_(parts_.phases.size()) {
  if (!can_run_) return;
  for (std::size_t i = 0; i < parts_.buffers.size(); ++i) {
    const BufferPlace& place = parts_.buffers[i];
    if (place.kind == BufferPlace::Kind::arena) pointers_[i] = arena_.bytes().data() + place.index;
  }
}

void CpuPlan::resolve_pointers(const RunArguments& arguments) {
  for (std::size_t i = 0; i < parts_.buffers.size(); ++i) {
    const BufferPlace& place = parts_.buffers[i];
    if (place.kind == BufferPlace::Kind::input) {
      pointers_[i] = const_cast<std::byte*>(static_cast<const std::byte*>(arguments.inputs[place.index]));
    } else if (place.kind == BufferPlace::Kind::output) {
      pointers_[i] = reinterpret_cast<std::byte*>(arguments.outputs[place.index]);
    }
  }
}

WorkerPool& CpuPlan::pool(const RunArguments& arguments) {
  if (arguments.pool != nullptr) return *arguments.pool;
  if (own_pool_ == nullptr) own_pool_ = std::make_unique<WorkerPool>(max_threads_);
  return *own_pool_;
}

void CpuPlan::run(const RunArguments& arguments) {
  QUIPU_CHECK(can_run_);
  QUIPU_CHECK(arguments.extents.n_tokens <= parts_.max_extents.n_tokens &&
              arguments.extents.n_outputs <= parts_.max_extents.n_outputs);
  resolve_pointers(arguments);
  if (poisons_) {
    std::ranges::fill(arena_.bytes(), std::byte{0xff});
    std::ranges::fill(scratch_.bytes(), std::byte{0xff});
  }
  const Run run(arguments, pointers_);
  for (const auto& prepare : parts_.prologue) prepare(run);
  const bool is_observed = arguments.observer != nullptr && !parts_.observations.empty();
  unsigned n_threads = std::clamp(arguments.n_threads, 1u, max_threads_);
  if (n_threads == 1 && !is_observed) {
    run_alone(run);
  } else {
    WorkerPool& workers = pool(arguments);
    n_threads = std::min(n_threads, workers.size());
    share_out(run, n_threads);
    if (is_observed) {
      run_observed(run, workers, n_threads);
    } else {
      workers.run(n_threads, [&](unsigned thread) { run_together(run, thread, n_threads); });
    }
  }
  if (abort_failure_) std::rethrow_exception(std::exchange(abort_failure_, nullptr));
}

/// The answer of the abort callback. What it throws ends the run as well, and goes on to the caller after it.
bool CpuPlan::must_stop(const Run& run) {
  if (run.arguments.abort == nullptr) return false;
  try {
    return (*run.arguments.abort)();
  } catch (...) {
    abort_failure_ = std::current_exception();
    return true;
  }
}

void CpuPlan::run_whole(const Run& run, const Phase& phase, unsigned thread) {
  for (const Chain& chain : phase) {
    const std::size_t n_units = chain.steps.front().n_units(run);
    if (n_units > 0) run_chain(chain, run, {0, n_units}, scratch_of(thread));
  }
}

void CpuPlan::run_alone(const Run& run) {
  n_meetings_ = 0;
  for (const Phase& phase : parts_.phases) {
    if (must_stop(run)) return;
    run_whole(run, phase, 0);
  }
}

/// The rows of a single token, say, are work for one thread: whoever is done last with what they need goes on
/// with them at once, which saves a meeting.
void CpuPlan::share_out(const Run& run, unsigned n_threads) {
  shares_.start(n_threads);
  n_meetings_ = 0;
  std::uint32_t pieces = 0;
  std::size_t number = 0;
  bool has_leader = false;  // a phase whose last piece somebody will do
  for (std::size_t phase = 0; phase < parts_.phases.size(); ++phase) {
    const std::uint32_t before = pieces;
    bool is_small = true;
    for (const Chain& chain : parts_.phases[phase]) {
      const std::size_t n_units = chain.steps.front().n_units(run);
      pieces += shares_.set_units(number++, n_units);
      is_small = is_small && n_units <= 1;
    }
    phase_runs_[phase] = {pieces, has_leader && is_small};
    if (phase_runs_[phase].follows) continue;
    has_leader = pieces > before;
    ++n_meetings_;
  }
}

void CpuPlan::run_together(const Run& run, unsigned thread, unsigned n_threads) {
  std::size_t first_chain = 0;
  const std::size_t n_phases = parts_.phases.size();
  for (std::size_t phase = 0; phase < n_phases;) {
    if (thread == 0 && must_stop(run)) {
      shares_.done().add(phase_runs_.back().end);  // so that every phase counts as over
      return;
    }
    const std::size_t leader = phase;
    const std::size_t leader_chain = first_chain;
    do {
      first_chain += parts_.phases[phase].size();
    } while (++phase < n_phases && phase_runs_[phase].follows);
    const std::uint32_t leader_end = phase_runs_[leader].end;
    const std::uint32_t end = phase_runs_[phase - 1].end;
    if (shares_.done().reached(end)) continue;
    const std::uint32_t n_done = take_pieces(run, leader, leader_chain, thread, n_threads);
    if (n_done > 0 && shares_.done().add(n_done) == leader_end && phase - leader > 1) {
      for (std::size_t next = leader + 1; next < phase; ++next) run_whole(run, parts_.phases[next], thread);
      shares_.done().add(end - leader_end);
    }
    shares_.done().wait_for(end);
  }
}

/// -> how many pieces the thread has done.
std::uint32_t CpuPlan::take_pieces(const Run& run, std::size_t phase, std::size_t first_chain,
                                   unsigned thread, unsigned n_threads) {
  const Phase& chains = parts_.phases[phase];
  std::uint32_t n_done = 0;
  for (unsigned i = 0; i < n_threads; ++i) {  // its own share first, then its neighbours'
    const unsigned owner = (thread + i) % n_threads;
    for (std::size_t c = 0; c < chains.size(); ++c) {
      while (const auto range = shares_.claim(first_chain + c, owner)) {
        run_chain(chains[c], run, *range, scratch_of(thread));
        ++n_done;
      }
    }
  }
  return n_done;
}

void CpuPlan::run_observed(const Run& run, WorkerPool& workers, unsigned n_threads) {
  auto next = parts_.observations.begin();
  std::size_t first_chain = 0;
  for (std::size_t phase = 0; phase < parts_.phases.size(); ++phase) {
    if (must_stop(run)) return;
    workers.run(n_threads, [&](unsigned thread) { take_pieces(run, phase, first_chain, thread, n_threads); });
    first_chain += parts_.phases[phase].size();
    for (; next != parts_.observations.end() && next->phase == phase; ++next) {
      if (!show(*next, run, *run.arguments.observer)) return;
    }
  }
}

std::span<std::byte> CpuPlan::scratch_of(unsigned thread) {
  const std::size_t bytes = round_up(parts_.scratch_bytes, AlignedBuffer::kAlignment);
  return scratch_.bytes().subspan(thread * bytes, bytes);
}

}  // namespace quipu::cpu
