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

void run_chain(const Chain& chain, const Run& run, const UnitRange& range, std::span<std::byte> scratch) {
  for (const Step& step : chain.steps) step.body(run, range, scratch);
}

}  // namespace

CpuPlan::CpuPlan(Parts parts, unsigned max_threads, Backing backing)
    : parts_(std::move(parts)),
      arena_(parts_.arena_bytes, backing),
      scratch_(round_up(parts_.scratch_bytes, AlignedBuffer::kAlignment) * max_threads, backing),
      poisons_(std::getenv("QUIPU_POISON") != nullptr),
      pointers_(parts_.buffers.size(), nullptr),
      can_run_(backing == Backing::memory),
      pool_(can_run_ ? max_threads : 1),
      shares_(count_chains(parts_.phases), max_threads),
      phase_ends_(parts_.phases.size()) {
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
  const unsigned n_threads = std::clamp(arguments.n_threads, 1u, pool_.size());
  if (arguments.observer != nullptr && !parts_.observations.empty()) {
    run_observed(run, n_threads);
  } else if (n_threads == 1) {
    run_alone(run);
  } else {
    share_out(run, n_threads);
    pool_.run(n_threads, [&](unsigned thread) { run_together(run, thread, n_threads); });
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

void CpuPlan::run_alone(const Run& run) {
  for (const Phase& phase : parts_.phases) {
    if (must_stop(run)) return;
    for (const Chain& chain : phase) {
      const std::size_t n_units = chain.steps.front().n_units(run);
      if (n_units > 0) run_chain(chain, run, {0, n_units}, scratch_of(0));
    }
  }
}

void CpuPlan::share_out(const Run& run, unsigned n_threads) {
  shares_.start(n_threads);
  std::uint32_t pieces = 0;
  std::size_t number = 0;
  for (std::size_t phase = 0; phase < parts_.phases.size(); ++phase) {
    for (const Chain& chain : parts_.phases[phase])
      pieces += shares_.set_units(number++, chain.steps.front().n_units(run));
    phase_ends_[phase] = pieces;
  }
}

void CpuPlan::run_together(const Run& run, unsigned thread, unsigned n_threads) {
  std::size_t first_chain = 0;
  for (std::size_t phase = 0; phase < parts_.phases.size(); ++phase) {
    if (thread == 0 && must_stop(run)) {
      shares_.done().add(phase_ends_.back());  // so that every phase counts as over
      return;
    }
    if (!shares_.done().reached(phase_ends_[phase])) run_phase(run, phase, first_chain, thread, n_threads);
    first_chain += parts_.phases[phase].size();
  }
}

void CpuPlan::run_phase(const Run& run, std::size_t phase, std::size_t first_chain, unsigned thread,
                        unsigned n_threads) {
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
  if (n_done > 0) shares_.done().add(n_done);
  shares_.done().wait_for(phase_ends_[phase]);
}

void CpuPlan::run_observed(const Run& run, unsigned n_threads) {
  share_out(run, n_threads);
  auto next = parts_.observations.begin();
  std::size_t first_chain = 0;
  for (std::size_t phase = 0; phase < parts_.phases.size(); ++phase) {
    if (must_stop(run)) return;
    pool_.run(n_threads, [&](unsigned thread) { run_phase(run, phase, first_chain, thread, n_threads); });
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
