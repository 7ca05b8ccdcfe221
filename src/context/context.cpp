#include "context/context.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"

namespace quipu {
namespace {

// Turns reuse of plans off, to show that it changes no bit.
bool plans_are_reused() {
  const char* disabled = std::getenv("LLAMA_GRAPH_REUSE_DISABLE");
  return disabled == nullptr || std::string_view(disabled) != "1";
}

ResolvedParams resolve(const std::shared_ptr<const LoadedModel>& model, const ContextParams& params) {
  if (model == nullptr) fail(ErrorCode::invalid_argument, "a context needs a model");
  return resolve_params(params, model->hparams());
}

}  // namespace

InferenceContext::InferenceContext(std::shared_ptr<const LoadedModel> model, const ContextParams& params,
                                   InferenceContext* memory_of)
    : model_(std::move(model)),
      params_(resolve(model_, params)),
      reuse_plan_(plans_are_reused()),
      n_embd_out_(model_->n_embd_out()),
      made_memory_(memory_of == nullptr),
      plan_threads_(static_cast<unsigned>(std::max(params_.n_threads, params_.n_threads_batch))),
      pool_(std::make_shared<WorkerPool>(model_->has_data() ? plan_threads_ : 1)),
      batch_pool_(pool_),
      logits_("logits", model_->hparams().n_vocab),
      embeddings_("embeddings", n_embd_out_),
      pooled_(params_.resolved_pooling, params_.n_seq_max, n_embd_out_),
      ranks_(Pooling::none, 0, 0) {
  if (memory_of == nullptr) {
    make_memory();
  } else {
    share_memory(*memory_of);
  }
  if (encoded_ != nullptr) plan(encoding());
  if (params_.resolved_pooling == Pooling::rank) compile_rank_head();
  plan(model_->has_memory() ? decoding() : encoding());
  counters_.reallocations = 0;
  tokens_.reserve(params_.n_ubatch);
  positions_.reserve(params_.n_ubatch);
  output_rows_.reserve(params_.n_ubatch);
}

void InferenceContext::make_memory() {
  MemorySetup setup = create_memory(*model_, params_);
  memory_ = std::move(setup.memory);
  caches_ = std::move(setup.caches);
  if (!model_->has_encoder() || !model_->has_decoder()) return;
  encoded_ = std::make_shared<EncodedText>(*model_, params_, memory_->layouts().size());
}

void InferenceContext::share_memory(const InferenceContext& other) {
  if (!model_->has_memory()) {
    fail(ErrorCode::unsupported, "the model remembers nothing that contexts could share");
  }
  if (model_ != other.model_) {
    fail(ErrorCode::invalid_argument, "the model is not that of the context whose memory is to be shared");
  }
  check_shares_memory(params_, other.params_);
  memory_ = other.memory_;
  caches_ = other.caches_;
  encoded_ = other.encoded_;
}

void InferenceContext::set_threads(int n_threads, int n_threads_batch) {
  const int one = resolve_threads("n_threads", n_threads);
  const int several = resolve_threads("n_threads_batch", n_threads_batch);
  const auto most = static_cast<unsigned>(std::max(one, several));
  if (most > plan_threads_) {
    if (has_own_pool_) pool_ = batch_pool_ = std::make_shared<WorkerPool>(most);
    plan_threads_ = most;
    plans_.clear();  // the next batch compiles what it needs
  }
  params_.n_threads = one;
  params_.n_threads_batch = several;
}

void InferenceContext::attach_pools(std::shared_ptr<WorkerPool> pool,
                                    std::shared_ptr<WorkerPool> batch_pool) {
  if (pool == nullptr && batch_pool != nullptr) {
    fail(ErrorCode::invalid_argument, "a thread pool for batches needs one for single tokens beside it");
  }
  const bool is_own = pool == nullptr;
  if (is_own && has_own_pool_) return;
  if (is_own) pool = std::make_shared<WorkerPool>(plan_threads_);
  if (batch_pool == nullptr) batch_pool = pool;
  has_own_pool_ = is_own;
  pool_ = std::move(pool);
  batch_pool_ = std::move(batch_pool);
}

void InferenceContext::set_warm_up(bool on) {
  warms_up_ = on && model_->hparams().experts.n_experts > 0;  // others touch all weights anyway
  if (!on) std::erase_if(plans_, [](const auto& entry) { return entry.first.warm_up; });
}

std::size_t InferenceContext::compute_bytes() const {
  std::size_t total = 0;
  for (const auto& [kind, compiled] : plans_) total += compiled.plan->bytes();
  if (rank_plan_ != nullptr) total += rank_plan_->bytes();
  return total;
}

std::size_t InferenceContext::output_bytes() const {
  return logits_.bytes() + embeddings_.bytes() + pooled_.bytes() + ranks_.bytes();
}

std::size_t InferenceContext::memory_bytes() const {
  const std::size_t passing = passing_.memory != nullptr ? passing_.memory->bytes() : 0;
  if (!made_memory_) return passing;
  return passing + memory_->bytes() + (encoded_ != nullptr ? encoded_->bytes() : 0);
}

void InferenceContext::check(const BatchView& view, const PlanKind& kind, bool encodes,
                             const Memory& memory) {
  if (!model_->has_data()) {
    fail(ErrorCode::unsupported, "the model was loaded without data: it can compute nothing");
  }
  batch_.assign(view,
                {
                    .n_vocab = model_->hparams().n_vocab,
                    .n_embd = model_->hparams().n_embd,
                    .n_sequences = params_.n_seq_max,
                    .n_batch = params_.n_batch,
                    .n_outputs = params_.n_outputs_max,
                    .unified = params_.kv_unified || encodes,
                    .all_outputs = kind.embeddings || kind.encoder,
                    .is_whole = !kind.causal,
                    .once_per_sequence = encodes,
                    .n_ubatch = params_.n_ubatch,
                    .position_limit = model_->position_limit(),
                },
                memory);
  if (encoded_ != nullptr && !encodes) check_encoded();
}

// What decodes must have text to look at, the same for all sequences of a token.
void InferenceContext::check_encoded() const {
  for (std::size_t t = 0; t < batch_.n_tokens(); ++t) {
    const auto sequences = batch_.sequences_of(t);
    for (const SequenceId sequence : sequences) {
      if (!encoded_->has(sequence)) {
        fail(ErrorCode::invalid_argument,
             "token {} of the batch is of sequence {}, for which nothing has been encoded", t, sequence);
      }
      if (!encoded_->is_same(sequence, sequences[0])) {
        fail(ErrorCode::invalid_argument,
             "token {} of the batch names sequences {} and {}, which look at different encoded texts", t,
             sequences[0], sequence);
      }
    }
  }
}

DecodeStatus InferenceContext::decode(const BatchView& view) {
  if (!model_->has_memory()) return encode(view);
  const PlanKind kind = decoding();
  check(view, kind, false, *memory_);
  switch (memory_->prepare(batch_.memory_batch(), micro_batch_tokens(kind), params_.abort)) {
    case PrepareResult::ready: break;
    case PrepareResult::no_room: return DecodeStatus::no_room;
    case PrepareResult::aborted: clear_outputs(); return DecodeStatus::aborted;
  }
  return compute(kind, *memory_);
}

// Where the cells of an encoded batch live for as long as it is computed.
Memory& InferenceContext::encoder_memory() {
  if (!model_->has_memory()) return *memory_;
  if (encoded_ != nullptr) return encoded_->encoder_memory();
  if (passing_.memory == nullptr) passing_ = create_batch_memory(*model_, params_, model_->cache_specs());
  return *passing_.memory;
}

DecodeStatus InferenceContext::encode(const BatchView& view) {
  const PlanKind kind = encoding();
  Memory& memory = encoder_memory();
  check(view, kind, true, memory);
  if (encoded_ != nullptr) encoded_->begin();
  QUIPU_CHECK(memory.prepare(batch_.memory_batch(), params_.n_ubatch) == PrepareResult::ready);
  const DecodeStatus status = compute(kind, memory);
  if (encoded_ != nullptr && status == DecodeStatus::ok) encoded_->finish();
  return status;
}

// Runs what is checked and prepared.
DecodeStatus InferenceContext::compute(const PlanKind& kind, Memory& memory) {
  reserve_outputs(plan(kind));
  const Clock::time_point begin = Clock::now();
  DecodeStatus status = DecodeStatus::aborted;
  try {
    status = run_batch(kind, memory);
    if (status == DecodeStatus::ok && kind.embeddings && is_pooled()) finish_pooling();
  } catch (...) {
    clear_outputs();
    throw;
  }
  if (status == DecodeStatus::ok) {
    count(begin);
  } else {
    clear_outputs();
  }
  return status;
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
