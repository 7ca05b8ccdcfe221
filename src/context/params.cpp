#include "context/params.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/log.h"
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr std::uint32_t kMaxSequences = 256;
constexpr std::uint64_t kContextRounding = 256;
constexpr int kMaxThreads = 1024;

std::uint32_t to_count(std::string_view name, std::uint64_t value) {
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::invalid_argument, "{} is {} after rounding, which is too large", name, value);
  }
  return static_cast<std::uint32_t>(value);
}

void resolve_batch_sizes(ResolvedParams& params) {
  if (params.n_batch == 0 && params.n_ubatch == 0) {
    fail(ErrorCode::invalid_argument, "n_batch and n_ubatch are both 0");
  }
  if (params.n_batch == 0) params.n_batch = params.n_ubatch;
  if (params.n_ubatch == 0) params.n_ubatch = params.n_batch;
}

void resolve_context_size(ResolvedParams& params, const Hparams& hparams) {
  const bool asked_for = params.n_ctx != 0;
  if (params.n_ctx == 0) params.n_ctx = hparams.n_ctx_train;
  if (params.n_ctx == 0) {
    fail(ErrorCode::invalid_argument,
         "n_ctx is 0, and the model does not say what length it was trained for");
  }
  const std::uint64_t rounded = round_up(std::uint64_t{params.n_ctx}, kContextRounding);
  const std::uint64_t n_streams = params.kv_unified ? 1 : params.n_seq_max;
  const std::uint64_t each = round_up(rounded / n_streams, kContextRounding);
  const std::uint32_t n_ctx = to_count("n_ctx", each * n_streams);
  if (asked_for && n_ctx != params.n_ctx) {
    log_warning("n_ctx is {} instead of {}: {} for {}, a multiple of {}", n_ctx, params.n_ctx, each,
                params.kv_unified ? "all sequences" : "each sequence", kContextRounding);
  }
  params.n_ctx = n_ctx;
  params.n_ctx_seq = static_cast<std::uint32_t>(each);
}

void resolve_pooling(ResolvedParams& params, Pooling model_pooling) {
  params.resolved_pooling = params.pooling.value_or(model_pooling);
  if (params.resolved_pooling > Pooling::rank) {
    fail(ErrorCode::invalid_argument, "pooling {} does not exist", static_cast<int>(params.resolved_pooling));
  }
  if (params.pooling && model_pooling != Pooling::none && *params.pooling != model_pooling) {
    log_warning("embeddings are pooled otherwise than the model was trained for: {} instead of {}",
                name_of(*params.pooling), name_of(model_pooling));
  }
}

void check_positive(std::string_view name, const std::optional<float>& value) {
  if (value && !(std::isfinite(*value) && *value > 0)) {
    fail(ErrorCode::invalid_argument, "{} is {}, which is not a positive number", name, *value);
  }
}

void check_finite(std::string_view name, const std::optional<float>& value) {
  if (value && !std::isfinite(*value)) {
    fail(ErrorCode::invalid_argument, "{} is {}, which is not a number", name, *value);
  }
}

void check_rope(const RopeOverrides& rope) {
  check_positive("rope base", rope.base);
  check_positive("rope frequency scale", rope.frequency_scale);
  check_finite("YaRN extrapolation factor", rope.yarn_extrapolation);
  check_finite("YaRN attention factor", rope.yarn_attention_factor);
  check_positive("YaRN beta fast", rope.yarn_beta_fast);
  check_positive("YaRN beta slow", rope.yarn_beta_slow);
}

bool has_encoder(const Hparams& hparams) {
  const Architecture* architecture = hparams.architecture;
  return architecture != nullptr &&
         (architecture->structure == Structure::encoder_decoder || !architecture->head.logits);
}

void check_cache_types(const ContextParams& params, const Hparams& hparams) {
  const auto name = [](ElementType type) { return info(type).name; };
  if (params.flash_attention == false && info(params.type_v).block_elements > 1) {
    fail(ErrorCode::invalid_argument, "values of type {} need flash attention, which is disabled",
         name(params.type_v));
  }
  if (hparams.latent.absorbed && params.type_k != params.type_v) {
    fail(ErrorCode::invalid_argument,
         "keys are {} and values {}, but the model has one compressed vector for both", name(params.type_k),
         name(params.type_v));
  }
}

}  // namespace

int resolve_threads(std::string_view name, int n_threads) {
  if (n_threads > kMaxThreads) {
    fail(ErrorCode::invalid_argument, "{} is {}; at most {} are possible", name, n_threads, kMaxThreads);
  }
  return n_threads > 0 ? n_threads : static_cast<int>(available_cpus());
}

ResolvedParams resolve_params(const ContextParams& given, const Hparams& hparams) {
  ResolvedParams params{given};
  params.is_causal = params.causal.value_or(hparams.causal);
  resolve_pooling(params, hparams.pooling.value_or(Pooling::none));
  if (params.n_seq_max > kMaxSequences) {
    fail(ErrorCode::invalid_argument, "n_seq_max is {}; at most {} are possible", params.n_seq_max,
         kMaxSequences);
  }
  params.n_seq_max = std::max(params.n_seq_max, 1U);
  resolve_batch_sizes(params);
  resolve_context_size(params, hparams);
  if (hparams.causal) params.n_batch = std::min(params.n_batch, params.n_ctx);
  params.n_ubatch = std::min(params.n_ubatch, params.n_batch);
  if (params.n_outputs_max == 0 || has_encoder(hparams)) params.n_outputs_max = params.n_batch;
  params.n_outputs_max = std::max(params.n_outputs_max, params.n_seq_max);
  params.n_threads = resolve_threads("n_threads", params.n_threads);
  params.n_threads_batch = resolve_threads("n_threads_batch", params.n_threads_batch);
  check_rope(params.rope);
  check_cache_types(params, hparams);
  params.rope.context_length = params.n_ctx_seq;
  return params;
}

}  // namespace quipu
