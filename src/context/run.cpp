// The way of one batch through the model: micro-batches, each a run of the plan that the settings ask for.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "context/context.h"

namespace quipu {
namespace {

// Tokens that warm up at once: with every expert at work, intermediate results take many times the usual
// room.
constexpr std::size_t kWarmUpTokens = 32;

// Notes whether the observer ended a run.
class NotingObserver final : public RunObserver {
 public:
  explicit NotingObserver(RunObserver* observer) : observer_(observer) {}
  bool wants(const ObservedNode& node) override { return observer_->wants(node); }
  bool observe(const ObservedNode& node) override {
    if (!observer_->observe(node)) has_ended_ = true;
    return !has_ended_;
  }
  bool has_ended() const { return has_ended_; }

 private:
  RunObserver* observer_;
  bool has_ended_ = false;
};

}  // namespace

// Most tokens that are computed at once; non-causal batches are never divided.
std::size_t InferenceContext::micro_batch_tokens(const PlanKind& kind) const {
  const std::size_t n_ubatch = params_.n_ubatch;
  return kind.warm_up && kind.causal ? std::min(n_ubatch, kWarmUpTokens) : n_ubatch;
}

ModelGraph InferenceContext::build_graph(const PlanKind& kind) {
  GraphOptions options{.caches = caches_,
                       .rope = params_.rope,
                       .causal = kind.causal,
                       .all_experts = kind.warm_up,
                       .embeddings = kind.embeddings};
  if (encoded_ == nullptr) {
    if (kind.encoder) options.caches = passing_.caches;
    return model_->build_graph(options);
  }
  options.cross_caches = kind.encoder ? encoded_->written_caches() : encoded_->read_caches();
  if (!kind.encoder) return model_->build_graph(options);
  options.caches = encoded_->encoder_caches();
  return model_->build_encoder_graph(options);
}

// The plan of a kind, compiled if this is its first use.
InferenceContext::CompiledPlan& InferenceContext::plan(const PlanKind& kind) {
  const auto found = plans_.find(kind);
  if (found != plans_.end()) return found->second;
  const ModelGraph graph = build_graph(kind);
  // Tokens of several sequences may have several rows where the whole batch is computed at once.
  const std::size_t n_tokens = micro_batch_tokens(kind);
  const Extents most{
      .n_tokens = n_tokens,
      .n_outputs = kind.causal ? std::min<std::size_t>(n_tokens, params_.n_outputs_max) : n_tokens};
  Device& device = model_->device();
  CompiledPlan compiled{.plan = kind.observed ? device.compile_observed(*graph.graph, most, plan_threads_)
                                              : device.compile(*graph.graph, most, plan_threads_),
                        .logits = graph.logits_output,
                        .embeddings = graph.embeddings_output};
  ++counters_.reallocations;
  return plans_.emplace(kind, std::move(compiled)).first->second;
}

void InferenceContext::compile_rank_head() {
  if (!model_->has_rank_head()) {
    fail(ErrorCode::unsupported, "pooling is rank, but the model has no classification head");
  }
  const RankGraph head = model_->build_rank_head();
  rank_plan_ = model_->device().compile(*head.graph, {.n_tokens = 1, .n_outputs = 1}, plan_threads_);
  pooled_ = PooledRows(head.pooling, params_.n_seq_max, n_embd_out_);
  ranks_ = PooledRows(Pooling::first, params_.n_seq_max, model_->hparams().n_classes);
}

void InferenceContext::reserve_outputs(const CompiledPlan& compiled) {
  const std::size_t n_ubatch = params_.n_ubatch;
  if (batch_.has_embeddings()) input_embeddings_.resize(n_ubatch * model_->hparams().n_embd);
  clear_outputs();
  bool grew = compiled.logits && logits_.reserve(batch_.n_tokens(), batch_.outputs(), batch_.n_rows());
  if (compiled.embeddings && is_pooled()) {
    rows_to_pool_.resize(n_ubatch * n_embd_out_);
    pooled_.begin(batch_.memory_batch().sequences);
    if (rank_plan_ != nullptr) ranks_.begin(batch_.memory_batch().sequences);
  } else if (compiled.embeddings) {
    grew |= embeddings_.reserve(batch_.n_tokens(), batch_.outputs(), batch_.n_rows());
  }
  if (grew) ++counters_.reallocations;
}

void InferenceContext::clear_outputs() {
  logits_.clear();
  embeddings_.clear();
  pooled_.clear();
  ranks_.clear();
}

DecodeStatus InferenceContext::run_batch(const PlanKind& kind, Memory& memory) {
  const MemoryBatch memory_batch = batch_.memory_batch();
  for (std::size_t i = 0; i < memory.n_micro_batches(); ++i) {
    if (params_.abort && params_.abort()) return DecodeStatus::aborted;
    const auto micro_batch = memory.micro_batch(i);
    if (!reuse_plan_) plans_.erase(kind);
    CompiledPlan& compiled = plan(kind);
    gather_inputs(micro_batch);
    memory.commit(memory_batch);
    bool done = false;
    try {
      gather_layouts(kind, memory, micro_batch);
      done = run_micro_batch(compiled, micro_batch);
    } catch (...) {
      memory.step_back();
      throw;
    }
    if (!done) {
      memory.step_back();
      return DecodeStatus::aborted;
    }
    take_outputs(compiled, micro_batch);
  }
  return DecodeStatus::ok;
}

void InferenceContext::gather_inputs(std::span<const std::uint32_t> micro_batch) {
  const std::size_t width = model_->hparams().n_embd;
  tokens_.clear();
  positions_.clear();
  output_rows_.clear();
  for (std::size_t i = 0; i < micro_batch.size(); ++i) {
    const std::uint32_t t = micro_batch[i];
    tokens_.push_back(batch_.token(t));
    positions_.push_back(batch_.position(t));
    if (batch_.is_output(t)) output_rows_.push_back(static_cast<std::int32_t>(i));
    if (batch_.token(t) != kNoToken) continue;
    const auto embedding = batch_.embedding(t);
    std::copy(embedding.begin(), embedding.end(),
              input_embeddings_.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
}

void InferenceContext::gather_layouts(const PlanKind& kind, const Memory& memory,
                                      std::span<const std::uint32_t> micro_batch) {
  layouts_.assign(memory.layouts().begin(), memory.layouts().end());
  if (encoded_ == nullptr || kind.encoder) return;
  layouts_.push_back(encoded_->look(batch_.memory_batch(), micro_batch));
}

// False if the callback ended it.
bool InferenceContext::run_micro_batch(CompiledPlan& compiled, std::span<const std::uint32_t> micro_batch) {
  std::array<const void*, ModelGraph::n_inputs> inputs{};
  inputs[ModelGraph::tokens] = tokens_.data();
  inputs[ModelGraph::embeddings] = input_embeddings_.data();
  inputs[ModelGraph::positions] = positions_.data();
  inputs[ModelGraph::output_rows] = output_rows_.data();
  std::array<float*, 2> outputs{};
  std::size_t n_outputs = 0;
  const auto give = [&](const std::optional<std::size_t>& ordinal, float* rows) {
    if (!ordinal) return;
    outputs.at(*ordinal) = rows;
    ++n_outputs;
  };
  if (compiled.logits) give(compiled.logits, logits_.next());
  if (compiled.embeddings) {
    give(compiled.embeddings, is_pooled() ? rows_to_pool_.data() : embeddings_.next());
  }

  if (counters_.load_seconds == 0 && !params_.no_perf) {
    counters_.load_seconds = std::chrono::duration<double>(Clock::now() - created_).count();
  }
  bool aborted = false;
  const std::function<bool()> abort = [&] { return aborted = aborted || params_.abort(); };
  NotingObserver observer(observer_);
  const bool is_single = micro_batch.size() == 1;
  const auto n_threads = static_cast<unsigned>(is_single ? params_.n_threads : params_.n_threads_batch);
  compiled.plan->run({
      .extents = {.n_tokens = micro_batch.size(), .n_outputs = output_rows_.size()},
      .inputs = inputs,
      .outputs = std::span(outputs).first(n_outputs),
      .layouts = layouts_,
      .n_threads = n_threads,
      .pool = (is_single ? pool_ : batch_pool_).get(),
      .abort = params_.abort ? &abort : nullptr,
      .observer = observer_ != nullptr ? &observer : nullptr,
  });
  if (!std::exchange(compiled.is_new, false)) ++counters_.plans_reused;
  return !aborted && !observer.has_ended();
}

void InferenceContext::take_outputs(const CompiledPlan& compiled,
                                    std::span<const std::uint32_t> micro_batch) {
  for (std::size_t i = 0; i < output_rows_.size(); ++i) {
    const std::uint32_t t = micro_batch[static_cast<std::size_t>(output_rows_[i])];
    if (compiled.logits) logits_.add(t);
    if (!compiled.embeddings) continue;
    if (!is_pooled()) {
      embeddings_.add(t);
      continue;
    }
    const auto row = std::span(rows_to_pool_).subspan(i * n_embd_out_, n_embd_out_);
    if (batch_.is_once_per_sequence()) {
      pooled_.add(layouts_[0]->tokens[static_cast<std::size_t>(output_rows_[i])].sequence, row);
    } else {
      for (const SequenceId sequence : batch_.sequences_of(t)) pooled_.add(sequence, row);
    }
  }
}

void InferenceContext::finish_pooling() {
  pooled_.finish();
  if (rank_plan_ == nullptr) return;
  std::vector<float> scores(model_->hparams().n_classes);
  for (const SequenceId sequence : pooled_.sequences()) {
    const void* const input = pooled_.at(sequence).data();
    float* const output = scores.data();
    rank_plan_->run({.extents = {.n_tokens = 1, .n_outputs = 1},
                     .inputs = {&input, 1},
                     .outputs = {&output, 1},
                     .layouts = {}});
    ranks_.add(sequence, scores);
  }
  ranks_.finish();
}

}  // namespace quipu
