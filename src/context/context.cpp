#include "context/context.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "context/memory_setup.h"
#include "context/model_traits.h"

namespace quipu {
namespace {

// Turns reuse of plans off, to show that it changes no bit.
bool plans_are_reused() {
  const char* disabled = std::getenv("LLAMA_GRAPH_REUSE_DISABLE");
  return disabled == nullptr || std::string_view(disabled) != "1";
}

ResolvedParams resolve(const std::shared_ptr<const LoadedModel>& model, const ContextParams& params) {
  if (model == nullptr) fail(ErrorCode::invalid_argument, "a context needs a model");
  return resolve_params(params, model->hparams(), trained_pooling(*model));
}

}  // namespace

InferenceContext::InferenceContext(std::shared_ptr<const LoadedModel> model, const ContextParams& params)
    : model_(std::move(model)),
      params_(resolve(model_, params)),
      reuse_plan_(plans_are_reused()),
      n_embd_out_(quipu::n_embd_out(*model_)),
      has_head_(has_head(*model_)),
      plan_threads_(static_cast<unsigned>(std::max(params_.n_threads, params_.n_threads_batch))),
      logits_("logits", has_head_ ? model_->hparams().n_vocab : 0),
      embeddings_("embeddings", n_embd_out_),
      pooled_(params_.resolved_pooling, params_.n_seq_max, n_embd_out_) {
  MemorySetup setup = create_memory(*model_, params_);
  memory_ = std::move(setup.memory);
  caches_ = std::move(setup.caches);
  plan();
  counters_.reallocations = 0;
  tokens_.reserve(params_.n_ubatch);
  positions_.reserve(params_.n_ubatch);
  output_rows_.reserve(params_.n_ubatch);
}

void InferenceContext::set_threads(int n_threads, int n_threads_batch) {
  const int one = resolve_threads("n_threads", n_threads);
  const int several = resolve_threads("n_threads_batch", n_threads_batch);
  params_.n_threads = one;
  params_.n_threads_batch = several;
  const auto most = static_cast<unsigned>(std::max(one, several));
  if (most <= plan_threads_) return;
  plan_threads_ = most;
  plans_.clear();
  plan();
}

std::size_t InferenceContext::compute_bytes() const {
  std::size_t total = 0;
  for (const auto& [kind, compiled] : plans_) total += compiled.plan->bytes();
  return total;
}

void InferenceContext::check(const BatchView& view) {
  batch_.assign(view,
                {
                    .n_vocab = model_->hparams().n_vocab,
                    .n_embd = model_->hparams().n_embd,
                    .n_sequences = params_.n_seq_max,
                    .n_batch = params_.n_batch,
                    .n_outputs = params_.n_outputs_max,
                    .unified = params_.kv_unified,
                    .all_outputs = params_.embeddings,
                    .is_whole = !params_.is_causal,
                    .n_ubatch = params_.n_ubatch,
                },
                *memory_);
}

DecodeStatus InferenceContext::decode(const BatchView& view) {
  check(view);
  switch (memory_->apply_pending(params_.abort)) {
    case PendingResult::done: break;
    case PendingResult::no_room: return DecodeStatus::no_room;
    case PendingResult::aborted: return DecodeStatus::aborted;
  }
  if (!memory_->prepare(batch_.memory_batch(), params_.n_ubatch)) return DecodeStatus::no_room;
  plan();
  reserve_outputs();

  const Clock::time_point begin = Clock::now();
  DecodeStatus status = DecodeStatus::aborted;
  try {
    status = run_batch();
  } catch (...) {
    clear_outputs();
    throw;
  }
  if (status == DecodeStatus::ok) {
    pooled_.finish();
    count(begin);
  } else {
    clear_outputs();
  }
  return status;
}

DecodeStatus InferenceContext::encode(const BatchView&) {
  fail(ErrorCode::unsupported, "the model has no encoder");
}

// Tokens count by how they were submitted.
void InferenceContext::count(Clock::time_point begin) {
  const bool generated = batch_.n_tokens() == 1;
  (generated ? counters_.generation_tokens : counters_.prompt_tokens) += batch_.n_tokens();
  if (params_.no_perf) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  (generated ? counters_.generation_seconds : counters_.prompt_seconds) += seconds;
}

void InferenceContext::reset_counters() {
  counters_ = {.load_seconds = counters_.load_seconds, .reallocations = counters_.reallocations};
}

}  // namespace quipu
