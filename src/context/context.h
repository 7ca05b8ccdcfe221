// A model at work for one or more sequences: a batch becomes micro-batches, runs of one plan, and rows of
// logits. Used by one thread at a time; any number of contexts share a model.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/device.h"
#include "context/batch.h"
#include "context/counters.h"
#include "context/outputs.h"
#include "context/params.h"
#include "memory/memory.h"
#include "model/model.h"

namespace quipu {

enum class DecodeStatus {
  ok,
  no_room,  ///< the memory cannot hold the batch; nothing was changed
  aborted,  ///< by the callback: the micro-batches done so far are in memory, there are no logits
};

class InferenceContext {
 public:
  /// Refuses and adjusts as resolve_params says. All memory is taken here but for the rows of outputs.
  /// Error(out_of_memory); Error(unsupported) names a type that a cache cannot have.
  InferenceContext(std::shared_ptr<const LoadedModel> model, const ContextParams& params);

  /// Computes a batch. Error(invalid_argument) for one that is not acceptable: memory and logits stay as they
  /// were. Any other error takes back the micro-batch that failed; those before it stay, and there are no
  /// logits.
  DecodeStatus decode(const BatchView& batch);
  /// [n_vocab] of a token of the last batch, valid until the next decode. A negative index counts from the
  /// last output. Empty, and a line is logged, where there are none.
  std::span<const float> logits(std::ptrdiff_t batch_index) const { return outputs_.at(batch_index); }

  Memory& memory() { return *memory_; }
  const Memory& memory() const { return *memory_; }

  /// As at creation: 0 and below is as many as there are processors.
  void set_threads(int n_threads, int n_threads_batch);
  void set_abort(std::function<bool()> abort) { params_.abort = std::move(abort); }

  const LoadedModel& model() const { return *model_; }
  const ResolvedParams& params() const { return params_; }
  const ContextCounters& counters() const { return counters_; }
  void reset_counters();
  /// Of the plan: intermediate results and scratch.
  std::size_t compute_bytes() const { return plan_->bytes(); }
  std::size_t output_bytes() const { return outputs_.bytes(); }

 private:
  using Clock = std::chrono::steady_clock;

  void create_memory();
  void compile_plan();
  void gather_inputs(std::span<const std::uint32_t> micro_batch);
  void run_micro_batch(std::span<const std::uint32_t> micro_batch);
  DecodeStatus run_batch();
  void count(Clock::time_point begin);

  Clock::time_point created_ = Clock::now();
  std::shared_ptr<const LoadedModel> model_;
  ResolvedParams params_;
  bool reuse_plan_;
  std::unique_ptr<Memory> memory_;
  std::vector<GraphOptions::LayerCache> caches_;
  std::unique_ptr<Plan> plan_;
  unsigned plan_threads_ = 0;  // most that the plan can use
  bool plan_is_new_ = false;

  CheckedBatch batch_;
  OutputRows outputs_;
  ContextCounters counters_;

  // Inputs of a run.
  std::vector<Token> tokens_;
  std::vector<Position> positions_;
  std::vector<std::int32_t> output_rows_;  // within the micro-batch
  std::vector<float> embeddings_;          // [n_ubatch, n_embd], made when first needed
};

}  // namespace quipu
