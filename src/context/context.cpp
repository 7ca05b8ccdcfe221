#include "context/context.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "memory/kv_memory.h"

namespace quipu {
namespace {

// Turns reuse of plans off, to show that it changes no bit.
bool plans_are_reused() {
  const char* disabled = std::getenv("LLAMA_GRAPH_REUSE_DISABLE");
  return disabled == nullptr || std::string_view(disabled) != "1";
}

const Hparams& hparams_of(const std::shared_ptr<const LoadedModel>& model) {
  if (model == nullptr) fail(ErrorCode::invalid_argument, "a context needs a model");
  return model->hparams();
}

// Windows of the memory's parts, a full part first, longer windows before shorter ones. Layers that remember
// everything can have any window; it is theirs to look away.
std::vector<std::uint32_t> part_windows(std::span<const LayerCacheSpec> layers, bool full) {
  std::vector<std::uint32_t> windows;
  for (const LayerCacheSpec& layer : layers) windows.push_back(full ? 0 : layer.window);
  if (windows.empty()) windows.push_back(0);
  const auto length = [](std::uint32_t window) { return window == 0 ? UINT64_MAX : std::uint64_t{window}; };
  std::sort(windows.begin(), windows.end(),
            [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  return windows;
}

}  // namespace

InferenceContext::InferenceContext(std::shared_ptr<const LoadedModel> model, const ContextParams& params)
    : model_(std::move(model)),
      params_(resolve_params(params, hparams_of(model_))),
      reuse_plan_(plans_are_reused()),
      outputs_(model_->hparams().n_vocab) {
  create_memory();
  compile_plan();
  tokens_.reserve(params_.n_ubatch);
  positions_.reserve(params_.n_ubatch);
  output_rows_.reserve(params_.n_ubatch);
}

void InferenceContext::create_memory() {
  const KvMemoryParams memory_params{
      .n_sequences = params_.n_seq_max,
      .n_cells = params_.n_ctx_seq,
      .unified = params_.kv_unified,
      .n_ubatch = params_.n_ubatch,
  };
  const std::vector<LayerCacheSpec> layers = model_->cache_specs();
  const std::vector<std::uint32_t> windows = part_windows(layers, params_.swa_full);
  std::vector<KvPart> parts;
  parts.reserve(windows.size());
  for (const std::uint32_t window : windows) {
    parts.push_back({.config = kv_part_config(memory_params, window), .storages = {}});
  }
  for (const LayerCacheSpec& layer : layers) {
    const std::uint32_t window = params_.swa_full ? 0 : layer.window;
    const auto part =
        static_cast<std::size_t>(std::find(windows.begin(), windows.end(), window) - windows.begin());
    const KvShape shape{params_.type_k, params_.type_v, layer.n_kv_heads, layer.k_dim, layer.v_dim};
    auto& storages = parts[part].storages;
    storages.push_back(model_->device().create_kv(shape, parts[part].config.n_pages));
    caches_.push_back({storages.back().get(), part});
  }
  memory_ = std::make_unique<KvMemory>(memory_params, std::move(parts));
}

void InferenceContext::compile_plan() {
  const ModelGraph graph =
      model_->build_graph({.caches = caches_, .rope = params_.rope, .causal = model_->hparams().causal});
  const Extents most{.n_tokens = params_.n_ubatch,
                     .n_outputs = std::min(params_.n_ubatch, params_.n_outputs_max)};
  plan_threads_ = static_cast<unsigned>(std::max(params_.n_threads, params_.n_threads_batch));
  plan_ = model_->device().compile(*graph.graph, most, plan_threads_);
  plan_is_new_ = true;
}

void InferenceContext::set_threads(int n_threads, int n_threads_batch) {
  params_.n_threads = resolve_threads("n_threads", n_threads);
  params_.n_threads_batch = resolve_threads("n_threads_batch", n_threads_batch);
  if (static_cast<unsigned>(std::max(params_.n_threads, params_.n_threads_batch)) <= plan_threads_) return;
  compile_plan();
  ++counters_.reallocations;
}

DecodeStatus InferenceContext::decode(const BatchView& view) {
  const BatchLimits limits{
      .n_vocab = model_->hparams().n_vocab,
      .n_embd = model_->hparams().n_embd,
      .n_sequences = params_.n_seq_max,
      .n_batch = params_.n_batch,
      .n_outputs = params_.n_outputs_max,
      .unified = params_.kv_unified,
  };
  batch_.assign(view, limits, *memory_);
  if (!memory_->prepare(batch_.memory_batch(), params_.n_ubatch)) return DecodeStatus::no_room;
  if (batch_.has_embeddings()) embeddings_.resize(std::size_t{params_.n_ubatch} * limits.n_embd);
  if (outputs_.reserve(batch_.n_tokens(), batch_.outputs())) ++counters_.reallocations;

  const Clock::time_point begin = Clock::now();
  DecodeStatus status = DecodeStatus::aborted;
  try {
    status = run_batch();
  } catch (...) {
    outputs_.clear();
    throw;
  }
  if (status == DecodeStatus::ok) {
    count(begin);
  } else {
    outputs_.clear();
  }
  return status;
}

DecodeStatus InferenceContext::run_batch() {
  const MemoryBatch memory_batch = batch_.memory_batch();
  for (std::size_t i = 0; i < memory_->n_micro_batches(); ++i) {
    if (params_.abort && params_.abort()) return DecodeStatus::aborted;
    const auto micro_batch = memory_->micro_batch(i);
    if (!reuse_plan_) compile_plan();
    memory_->commit(memory_batch);
    try {
      run_micro_batch(micro_batch);
    } catch (...) {
      memory_->step_back();
      throw;
    }
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
              embeddings_.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
}

void InferenceContext::run_micro_batch(std::span<const std::uint32_t> micro_batch) {
  gather_inputs(micro_batch);
  std::array<const void*, ModelGraph::n_inputs> inputs{};
  inputs[ModelGraph::tokens] = tokens_.data();
  inputs[ModelGraph::embeddings] = embeddings_.data();
  inputs[ModelGraph::positions] = positions_.data();
  inputs[ModelGraph::output_rows] = output_rows_.data();
  std::array<float*, ModelGraph::n_outputs> outputs{};
  outputs[ModelGraph::logits] = outputs_.next();

  if (counters_.load_seconds == 0 && !params_.no_perf) {
    counters_.load_seconds = std::chrono::duration<double>(Clock::now() - created_).count();
  }
  plan_->run({
      .extents = {.n_tokens = micro_batch.size(), .n_outputs = output_rows_.size()},
      .inputs = inputs,
      .outputs = outputs,
      .layouts = memory_->layouts(),
      .n_threads =
          static_cast<unsigned>(micro_batch.size() == 1 ? params_.n_threads : params_.n_threads_batch),
  });
  if (!std::exchange(plan_is_new_, false)) ++counters_.plans_reused;
  for (const std::int32_t row : output_rows_) outputs_.add(micro_batch[static_cast<std::size_t>(row)]);
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
