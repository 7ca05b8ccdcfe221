// A model at work for one or more sequences: a batch becomes micro-batches, runs of a plan, and rows of
// logits and embeddings. Used by one thread at a time; any number of contexts share a model.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/device.h"
#include "context/batch.h"
#include "context/counters.h"
#include "context/encoded_text.h"
#include "context/memory_setup.h"
#include "context/outputs.h"
#include "context/params.h"
#include "context/pooling.h"
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
  /// With `memory_of` the memory is that context's, and what it encoded: what one of them computes, removes,
  /// changes or loads, both see, whichever is destroyed first. They are used by one thread at a time
  /// together. Sizes of batches (a micro-batch no larger than the other's), threads and outputs may differ;
  /// Error(invalid_argument) names what may not, Error(unsupported) if the model remembers nothing.
  InferenceContext(std::shared_ptr<const LoadedModel> model, const ContextParams& params,
                   InferenceContext* memory_of = nullptr);

  /// Computes a batch; a context without memory encodes it. Error(invalid_argument) for one that is not
  /// acceptable: memory and outputs stay as they were. Any other error takes back the micro-batch that
  /// failed; those before it stay, and there are no outputs.
  DecodeStatus decode(const BatchView& batch);
  /// Computes a batch at once, every token seeing all of its sequence, beside the memory, which is neither
  /// looked at nor changed; what a decoder with cross-attention looks at is all that is kept. Every token is
  /// an output (of models without memory those marked, unless embeddings are on). A token of several
  /// sequences is computed once in each, and its rows are those of the first. Errors as decode.
  DecodeStatus encode(const BatchView& batch);

  /// [n_vocab] of a token of the last batch, valid until the next one. A negative index counts from the last
  /// output. Error(invalid_argument) where there are none; so in the two that follow.
  std::span<const float> logits(std::ptrdiff_t batch_index) const { return logits_.at(batch_index); }
  /// [n_embd_out], if embeddings are on and not pooled.
  std::span<const float> embeddings(std::ptrdiff_t batch_index) const { return embeddings_.at(batch_index); }
  /// [n_embd_out] of all that the last batch has of a sequence, if embeddings are on and pooled; where they
  /// are pooled for ranking, its scores [n_classes].
  std::span<const float> sequence_embedding(SequenceId sequence) const {
    return rank_plan_ != nullptr ? ranks_.at(sequence) : pooled_.at(sequence);
  }
  std::size_t n_embd_out() const { return n_embd_out_; }

  Memory& memory() { return *memory_; }
  const Memory& memory() const { return *memory_; }
  /// What a decoder sees of its encoder; null for models without both.
  EncodedText* encoded_text() { return encoded_.get(); }

  /// As at creation: 0 and below is as many as there are processors.
  void set_threads(int n_threads, int n_threads_batch);
  /// Micro-batches of one token run on the threads of `pool`, all others on those of `batch_pool` (null: the
  /// same pool): at most n_threads and n_threads_batch of them. Contexts that share a pool take turns, run by
  /// run. With two nulls the context has threads of its own again, which may be Error(out_of_memory).
  void attach_pools(std::shared_ptr<WorkerPool> pool, std::shared_ptr<WorkerPool> batch_pool);
  void set_abort(std::function<bool()> abort) { params_.abort = std::move(abort); }
  /// From the next batch on; models without logits always give embeddings. The first use of a setting
  /// compiles a plan for it.
  void set_embeddings(bool on) { params_.embeddings = on; }
  void set_causal(bool causal) { params_.is_causal = causal; }
  /// While on, mixtures of experts use every expert, so that a run touches all weights; its numbers are not
  /// the model's.
  void set_warm_up(bool on);
  /// Sees every node of the runs to come, and may end them as the abort callback does; null: nobody. It must
  /// stay while it is set. The bits are the same, the speed is not.
  void set_observer(RunObserver* observer) { observer_ = observer; }

  const LoadedModel& model() const { return *model_; }
  const ResolvedParams& params() const { return params_; }
  const ContextCounters& counters() const { return counters_; }
  void reset_counters();
  /// Of the plans: intermediate results and scratch.
  std::size_t compute_bytes() const;
  std::size_t output_bytes() const;
  /// Keys and values, also of text that was encoded. Those of a shared memory count for the context that
  /// made it.
  std::size_t memory_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;

  // What makes a plan another one; all else is an input.
  struct PlanKind {
    bool encoder = false;  ///< of a model that also decodes
    bool embeddings = false;
    bool causal = true;
    bool warm_up = false;
    bool observed = false;
    auto operator<=>(const PlanKind&) const = default;
  };
  struct CompiledPlan {
    std::unique_ptr<Plan> plan;
    std::optional<std::size_t> logits, embeddings;  // ordinals of its outputs
    bool is_new = true;
  };

  bool gives_embeddings() const { return params_.embeddings || !model_->has_logits(); }
  bool is_pooled() const { return params_.resolved_pooling != Pooling::none; }
  PlanKind decoding() const {
    return {false, gives_embeddings(), params_.is_causal, warms_up_, observer_ != nullptr};
  }
  PlanKind encoding() const {
    return {model_->has_memory(), gives_embeddings(), false, warms_up_, observer_ != nullptr};
  }
  Memory& encoder_memory();
  std::size_t micro_batch_tokens(const PlanKind& kind) const;
  ModelGraph build_graph(const PlanKind& kind);
  CompiledPlan& plan(const PlanKind& kind);
  void make_memory();
  void share_memory(const InferenceContext& other);
  void compile_rank_head();
  void check(const BatchView& view, const PlanKind& kind, bool encodes, const Memory& memory);
  void check_encoded() const;
  DecodeStatus compute(const PlanKind& kind, Memory& memory);
  void reserve_outputs(const CompiledPlan& compiled);
  void clear_outputs();
  void gather_inputs(std::span<const std::uint32_t> micro_batch);
  void gather_layouts(const PlanKind& kind, const Memory& memory, std::span<const std::uint32_t> micro_batch);
  bool run_micro_batch(CompiledPlan& compiled, std::span<const std::uint32_t> micro_batch);
  void take_outputs(const CompiledPlan& compiled, std::span<const std::uint32_t> micro_batch);
  void finish_pooling();
  DecodeStatus run_batch(const PlanKind& kind, Memory& memory);
  void count(Clock::time_point begin);

  Clock::time_point created_ = Clock::now();
  std::shared_ptr<const LoadedModel> model_;
  ResolvedParams params_;
  bool reuse_plan_;
  std::size_t n_embd_out_;
  std::shared_ptr<Memory> memory_;  // contexts may share it, and what has been encoded
  std::vector<GraphOptions::LayerCache> caches_;
  std::shared_ptr<EncodedText> encoded_;  // of encoder-decoder models
  bool made_memory_;
  MemorySetup passing_;                   // for encoding with models that only decode, once it is needed
  std::map<PlanKind, CompiledPlan> plans_;
  std::unique_ptr<Plan> rank_plan_;
  RunObserver* observer_ = nullptr;
  bool warms_up_ = false;
  unsigned plan_threads_;  // most that the plans can use
  bool has_own_pool_ = true;
  std::shared_ptr<WorkerPool> pool_, batch_pool_;

  CheckedBatch batch_;
  OutputRows logits_;
  OutputRows embeddings_;
  PooledRows pooled_;
  PooledRows ranks_;
  ContextCounters counters_;

  // Inputs of a run.
  std::vector<Token> tokens_;
  std::vector<Position> positions_;
  std::vector<std::int32_t> output_rows_;  // within the micro-batch
  std::vector<float> input_embeddings_;    // [n_ubatch, n_embd], made when first needed
  std::vector<float> rows_to_pool_;        // [n_ubatch, n_embd_out], likewise
  std::vector<const AttentionLayout*> layouts_;
};

}  // namespace quipu
