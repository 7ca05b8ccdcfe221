#include "quipu/context.h"

#include <utility>

#include "api/access.h"
#include "api/guard.h"
#include "api/observer.h"
#include "base/error.h"
#include "context/context.h"
#include "context/state/context_state.h"

namespace quipu {

namespace {

ElementType to_inner(CacheType type) {
  switch (type) {
    case CacheType::f32: return ElementType::f32;
    case CacheType::f16: return ElementType::f16;
    case CacheType::bf16: return ElementType::bf16;
    case CacheType::q8_0: return ElementType::q8_0;
    case CacheType::q5_1: return ElementType::q5_1;
    case CacheType::q5_0: return ElementType::q5_0;
    case CacheType::q4_1: return ElementType::q4_1;
    case CacheType::q4_0: return ElementType::q4_0;
    case CacheType::iq4_nl: return ElementType::iq4_nl;
  }
  fail(ErrorCode::invalid_argument, "cache type {} does not exist", static_cast<int>(type));
}

RopeScaling to_inner(RopeOptions::Scaling scaling) {
  switch (scaling) {
    case RopeOptions::Scaling::none: return RopeScaling::none;
    case RopeOptions::Scaling::linear: return RopeScaling::linear;
    case RopeOptions::Scaling::yarn: return RopeScaling::yarn;
  }
  fail(ErrorCode::invalid_argument, "rope scaling {} does not exist", static_cast<int>(scaling));
}

RopeOverrides to_inner(const RopeOptions& rope) {
  RopeOverrides result;
  if (rope.scaling) result.scaling = to_inner(*rope.scaling);
  result.base = rope.base;
  result.frequency_scale = rope.frequency_scale;
  result.original_context = rope.original_context;
  result.yarn_extrapolation = rope.yarn_extrapolation;
  result.yarn_attention_factor = rope.yarn_attention_factor;
  result.yarn_beta_fast = rope.yarn_beta_fast;
  result.yarn_beta_slow = rope.yarn_beta_slow;
  return result;
}

ContextParams to_inner(const ContextOptions& options) {
  ContextParams params;
  params.n_ctx = options.n_ctx;
  params.n_batch = options.n_batch;
  params.n_ubatch = options.n_ubatch;
  params.n_seq_max = options.n_seq_max;
  params.n_outputs_max = options.n_outputs_max;
  params.n_threads = options.n_threads;
  params.n_threads_batch = options.n_threads_batch;
  params.type_k = to_inner(options.type_k);
  params.type_v = to_inner(options.type_v);
  params.rope = to_inner(options.rope);
  params.swa_full = options.swa_full;
  params.kv_unified = options.kv_unified;
  params.embeddings = options.embeddings;
  params.pooling = options.pooling;
  params.causal = options.causal;
  params.no_perf = false;
  params.abort = options.abort;
  return params;
}

BatchView flat(const Batch& batch) {
  return {.tokens = batch.tokens(),
          .embeddings = batch.embeddings(),
          .embedding_width = batch.embedding_width(),
          .positions = batch.positions(),
          .sequence_ends = batch.sequence_ends(),
          .sequences = batch.sequences(),
          .outputs = batch.outputs()};
}
BatchView flat(std::span<const Token> tokens) {
  BatchView view;
  view.tokens = tokens;
  return view;
}

DecodeResult to_public(DecodeStatus status) {
  switch (status) {
    case DecodeStatus::ok: return DecodeResult::ok;
    case DecodeStatus::no_room: return DecodeResult::no_room;
    case DecodeStatus::aborted: return DecodeResult::aborted;
  }
  fail(ErrorCode::internal, "decode status {} does not exist", static_cast<int>(status));
}

StateScope scope_of(const SaveOptions& options) {
  return {.sequence = options.sequence, .partial_only = options.partial_only};
}

}  // namespace

struct Context::Impl {
  Impl(const Model& owner, const ContextOptions& options)
      : model(owner),
        context(ApiAccess::loaded(owner), to_inner(options),
                options.memory_of == nullptr ? nullptr : &options.memory_of->impl_->context) {}
  Model model;
  std::unique_ptr<RunObserver> observer;
  InferenceContext context;
};

Context::Context(const Model& model, const ContextOptions& options)
    : impl_(guarded([&] { return std::make_unique<Impl>(model, options); })) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

DecodeResult Context::decode(const Batch& batch) {
  return guarded([&] { return to_public(impl_->context.decode(flat(batch))); });
}
DecodeResult Context::decode(std::span<const Token> tokens) {
  return guarded([&] { return to_public(impl_->context.decode(flat(tokens))); });
}
DecodeResult Context::encode(const Batch& batch) {
  return guarded([&] { return to_public(impl_->context.encode(flat(batch))); });
}
DecodeResult Context::encode(std::span<const Token> tokens) {
  return guarded([&] { return to_public(impl_->context.encode(flat(tokens))); });
}

std::span<const float> Context::logits(std::ptrdiff_t batch_index) const {
  return guarded([&] { return impl_->context.logits(batch_index); });
}
std::span<const float> Context::embedding(std::ptrdiff_t batch_index) const {
  return guarded([&] { return impl_->context.embeddings(batch_index); });
}
std::span<const float> Context::sequence_embedding(SequenceId sequence) const {
  return guarded([&] { return impl_->context.sequence_embedding(sequence); });
}
std::size_t Context::n_embd_out() const {
  return impl_->context.n_embd_out();
}
Pooling Context::pooling() const {
  return impl_->context.params().resolved_pooling;
}

bool Context::remove(SequenceId sequence, Position p0, Position p1) {
  return guarded([&] { return impl_->context.memory().remove(sequence, p0, p1); });
}
void Context::copy(SequenceId from, SequenceId to, Position p0, Position p1) {
  guarded([&] { impl_->context.memory().copy(from, to, p0, p1); });
}
void Context::keep(SequenceId sequence) {
  guarded([&] { impl_->context.memory().keep(sequence); });
}
void Context::add(SequenceId sequence, Position p0, Position p1, Position delta) {
  guarded([&] { impl_->context.memory().add(sequence, p0, p1, delta); });
}
void Context::divide(SequenceId sequence, Position p0, Position p1, Position divisor) {
  guarded([&] { impl_->context.memory().divide(sequence, p0, p1, divisor); });
}
bool Context::can_shift() const {
  return impl_->context.memory().can_shift();
}
void Context::clear(bool data) {
  guarded([&] { impl_->context.memory().clear(data); });
}
Position Context::min_position(SequenceId sequence) const {
  return guarded([&] { return impl_->context.memory().min_position(sequence); });
}
Position Context::max_position(SequenceId sequence) const {
  return guarded([&] { return impl_->context.memory().max_position(sequence); });
}

std::vector<std::byte> Context::save(const SaveOptions& options) const {
  return guarded([&] {
    return save_state(state_access(impl_->context), scope_of(options), options.tokens, options.compression);
  });
}
std::size_t Context::state_bytes(const SaveOptions& options) const {
  return guarded([&] {
    return quipu::state_bytes(state_access(impl_->context), scope_of(options), options.tokens.size(),
                              options.compression);
  });
}
std::vector<Token> Context::load(std::span<const std::byte> state, std::optional<SequenceId> sequence) {
  return guarded([&] { return load_state(state_access(impl_->context), sequence, state).tokens; });
}
void Context::save_file(const std::filesystem::path& path, const SaveOptions& options) const {
  guarded([&] {
    save_state_file(state_access(impl_->context), scope_of(options), options.tokens, path,
                    options.compression);
  });
}
std::vector<Token> Context::load_file(const std::filesystem::path& path, std::optional<SequenceId> sequence) {
  return guarded([&] { return load_state_file(state_access(impl_->context), sequence, path).tokens; });
}

std::vector<Token> Context::saved_tokens(std::span<const std::byte> state) {
  return guarded([&] { return read_state_tokens(state); });
}
std::vector<Token> Context::saved_tokens(const std::filesystem::path& path) {
  return guarded([&] { return read_state_file_tokens(path); });
}

std::uint32_t Context::n_ctx() const {
  return impl_->context.params().n_ctx;
}
std::uint32_t Context::n_ctx_per_sequence() const {
  return impl_->context.params().n_ctx_seq;
}
std::uint32_t Context::n_batch() const {
  return impl_->context.params().n_batch;
}
std::uint32_t Context::n_ubatch() const {
  return impl_->context.params().n_ubatch;
}
std::uint32_t Context::n_seq_max() const {
  return impl_->context.params().n_seq_max;
}
const Model& Context::model() const {
  return impl_->model;
}

void Context::set_threads(int n_threads, int n_threads_batch) {
  guarded([&] { impl_->context.set_threads(n_threads, n_threads_batch); });
}
void Context::attach(const ThreadPool& pool) {
  impl_->context.attach_pools(ApiAccess::workers(pool), nullptr);
}
void Context::attach(const ThreadPool& pool, const ThreadPool& batch_pool) {
  impl_->context.attach_pools(ApiAccess::workers(pool), ApiAccess::workers(batch_pool));
}
void Context::detach() {
  guarded([&] { impl_->context.attach_pools(nullptr, nullptr); });
}
void Context::set_embeddings(bool on) {
  impl_->context.set_embeddings(on);
}
void Context::set_causal(bool causal) {
  impl_->context.set_causal(causal);
}
void Context::set_warm_up(bool on) {
  impl_->context.set_warm_up(on);
}
void Context::set_abort(std::function<bool()> abort) {
  impl_->context.set_abort(std::move(abort));
}
void Context::set_observer(std::shared_ptr<Observer> observer) {
  guarded([&] {
    std::unique_ptr<RunObserver> inner = observer == nullptr ? nullptr : wrap_observer(std::move(observer));
    impl_->context.set_observer(inner.get());
    impl_->observer = std::move(inner);
  });
}
MemoryUse Context::memory_use() const {
  const InferenceContext& context = impl_->context;
  return {.model = context.model().device_bytes(),
          .context = context.memory_bytes(),
          .compute = context.compute_bytes(),
          .outputs = context.output_bytes()};
}
Counters Context::counters() const {
  const ContextCounters& counters = impl_->context.counters();
  return {counters.load_seconds,  counters.prompt_seconds,    counters.generation_seconds,
          counters.prompt_tokens, counters.generation_tokens, counters.plans_reused,
          counters.reallocations};
}
void Context::reset_counters() {
  guarded([&] { impl_->context.reset_counters(); });
}

}  // namespace quipu
