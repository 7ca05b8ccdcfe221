// The way of one batch through the model: micro-batches, each a run of the plan that the settings ask for.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/error.h"
#include "context/context.h"

namespace quipu {

// The plan for the settings, compiled if this is their first use.
InferenceContext::CompiledPlan& InferenceContext::plan() {
  const PlanKind kind = plan_kind();
  const auto found = plans_.find(kind);
  if (found != plans_.end()) return found->second;
  if (kind.embeddings) fail(ErrorCode::unsupported, "embeddings are not there yet");
  GraphOptions options{.caches = caches_, .rope = params_.rope, .causal = kind.causal};
  const ModelGraph graph = model_->build_graph(options);
  const Extents most{.n_tokens = params_.n_ubatch,
                     .n_outputs = std::min(params_.n_ubatch, params_.n_outputs_max)};
  CompiledPlan compiled{.plan = model_->device().compile(*graph.graph, most, plan_threads_)};
  ++counters_.reallocations;
  return plans_.emplace(kind, std::move(compiled)).first->second;
}

void InferenceContext::reserve_outputs() {
  if (batch_.has_embeddings()) {
    input_embeddings_.resize(std::size_t{params_.n_ubatch} * model_->hparams().n_embd);
  }
  const bool pooled = params_.embeddings && params_.resolved_pooling != Pooling::none;
  if (pooled) rows_to_pool_.resize(std::size_t{params_.n_ubatch} * n_embd_out_);
  clear_outputs();
  if (pooled) pooled_.begin(batch_.memory_batch().sequences);
  bool grew = has_head_ && logits_.reserve(batch_.n_tokens(), batch_.outputs());
  if (params_.embeddings && !pooled) grew |= embeddings_.reserve(batch_.n_tokens(), batch_.outputs());
  if (grew) ++counters_.reallocations;
}

void InferenceContext::clear_outputs() {
  logits_.clear();
  embeddings_.clear();
  pooled_.clear();
}

DecodeStatus InferenceContext::run_batch() {
  const MemoryBatch memory_batch = batch_.memory_batch();
  for (std::size_t i = 0; i < memory_->n_micro_batches(); ++i) {
    if (params_.abort && params_.abort()) return DecodeStatus::aborted;
    const auto micro_batch = memory_->micro_batch(i);
    if (!reuse_plan_) plans_.clear();
    plan();
    memory_->commit(memory_batch);
    bool done = false;
    try {
      done = run_micro_batch(micro_batch);
    } catch (...) {
      memory_->step_back();
      throw;
    }
    if (done) continue;
    memory_->step_back();
    return DecodeStatus::aborted;
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

// False if the callback ended it.
bool InferenceContext::run_micro_batch(std::span<const std::uint32_t> micro_batch) {
  gather_inputs(micro_batch);
  std::array<const void*, ModelGraph::n_inputs> inputs{};
  inputs[ModelGraph::tokens] = tokens_.data();
  inputs[ModelGraph::embeddings] = input_embeddings_.data();
  inputs[ModelGraph::positions] = positions_.data();
  inputs[ModelGraph::output_rows] = output_rows_.data();
  const bool pooled = params_.embeddings && params_.resolved_pooling != Pooling::none;
  std::array<float*, 2> outputs{};
  std::size_t n_outputs = 0;
  if (has_head_) outputs[n_outputs++] = logits_.next();
  if (params_.embeddings) outputs[n_outputs++] = pooled ? rows_to_pool_.data() : embeddings_.next();

  if (counters_.load_seconds == 0 && !params_.no_perf) {
    counters_.load_seconds = std::chrono::duration<double>(Clock::now() - created_).count();
  }
  bool aborted = false;
  const std::function<bool()> abort = [&] { return aborted = aborted || params_.abort(); };
  const bool is_single = micro_batch.size() == 1;
  CompiledPlan& compiled = plan();
  compiled.plan->run({
      .extents = {.n_tokens = micro_batch.size(), .n_outputs = output_rows_.size()},
      .inputs = inputs,
      .outputs = std::span(outputs).first(n_outputs),
      .layouts = memory_->layouts(),
      .n_threads = static_cast<unsigned>(is_single ? params_.n_threads : params_.n_threads_batch),
      .abort = params_.abort ? &abort : nullptr,
  });
  if (!std::exchange(compiled.is_new, false)) ++counters_.plans_reused;
  if (aborted) return false;
  for (const std::int32_t row : output_rows_) {
    const std::uint32_t t = micro_batch[static_cast<std::size_t>(row)];
    if (has_head_) logits_.add(t);
    if (params_.embeddings && !pooled) embeddings_.add(t);
  }
  if (pooled) pool(micro_batch);
  return true;
}

// Every token is an output here, so rows are those of the micro-batch.
void InferenceContext::pool(std::span<const std::uint32_t> micro_batch) {
  for (std::size_t i = 0; i < micro_batch.size(); ++i) {
    const auto row = std::span(rows_to_pool_).subspan(i * n_embd_out_, n_embd_out_);
    for (const SequenceId sequence : batch_.sequences_of(micro_batch[i])) pooled_.add(sequence, row);
  }
}

}  // namespace quipu
