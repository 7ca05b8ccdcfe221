#include "backend/cpu/plan.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace quipu::cpu {

CpuPlan::CpuPlan(Parts parts, unsigned max_threads)
    : parts_(std::move(parts)),
      arena_(parts_.arena_bytes),
      scratch_(round_up(parts_.scratch_bytes, AlignedBuffer::kAlignment) * max_threads),
      pointers_(parts_.buffers.size(), nullptr),
      pool_(max_threads) {
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
  QUIPU_CHECK(arguments.extents.n_tokens <= parts_.max_extents.n_tokens &&
              arguments.extents.n_outputs <= parts_.max_extents.n_outputs);
  resolve_pointers(arguments);
  const Run run(arguments, pointers_);
  for (const auto& prepare : parts_.prologue) prepare(run);
  pool_.run(arguments.n_threads, [&](unsigned thread, Barrier& barrier) { work(run, thread, barrier); });
}

void CpuPlan::work(const Run& run, unsigned thread, Barrier& barrier) {
  const std::size_t scratch_bytes = round_up(parts_.scratch_bytes, AlignedBuffer::kAlignment);
  const std::span<std::byte> scratch = scratch_.bytes().subspan(thread * scratch_bytes, scratch_bytes);
  const std::size_t n_threads = barrier.n_threads();
  for (const Phase& phase : parts_.phases) {
    for (const Step& step : phase) {
      const std::size_t n_units = step.n_units(run);
      const UnitRange range{n_units * thread / n_threads, n_units * (thread + 1) / n_threads};
      if (range.begin < range.end) step.body(run, range, scratch);
    }
    barrier.meet(thread);
  }
}

}  // namespace quipu::cpu
