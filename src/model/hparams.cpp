#include "model/hparams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/math.h"
#include "model/arch/architecture.h"
#include "model/hparams_reader.h"

namespace quipu {
namespace {

/// Each layer's own number, or one for all. `key` is complete.
std::vector<float> read_numbers_of_layers(const gguf::Metadata& metadata, const std::string& key,
                                          float fallback, std::size_t n_layers) {
  const gguf::Value* value = metadata.find(key);
  std::vector<float> numbers(n_layers, fallback);
  if (value == nullptr) return numbers;
  if (gguf::type_of(*value) != gguf::ValueType::array) {
    numbers.assign(n_layers, *metadata.get_f32(key));
  } else {
    const auto given = metadata.get_f32s(key);
    if (!given || given->size() < n_layers)
      fail(ErrorCode::bad_file, "{}: key '{}' must have a number for each of {} layers", metadata.origin(),
           key, n_layers);
    numbers.assign(given->begin(), given->begin() + static_cast<std::ptrdiff_t>(n_layers));
  }
  for (const float number : numbers) {
    if (!std::isfinite(number))
      fail(ErrorCode::bad_file, "{}: key '{}' holds {}", metadata.origin(), key, number);
  }
  return numbers;
}

float softplus(float x) {
  return static_cast<float>(exact_math::log(1 + exact_math::exp(x)));
}

/// Files hold alphas before softplus, under keys without the architecture's name.
void read_xielu(const KeyReader& keys, Hparams& hparams) {
  const auto numbers = [&](const char* key) {
    return read_numbers_of_layers(keys.metadata(), key, 0, hparams.n_layers());
  };
  const auto alpha_n = numbers("xielu.alpha_n"), alpha_p = numbers("xielu.alpha_p");
  const auto beta = numbers("xielu.beta"), eps = numbers("xielu.eps");
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    hparams.layers[i].xielu = {.alpha_n = beta[i] + softplus(alpha_n[i]),
                               .alpha_p = softplus(alpha_p[i]),
                               .beta = beta[i],
                               .eps = eps[i]};
  }
}

void read_limits(const KeyReader& keys, Hparams& hparams) {
  const FeedForwardDescription& description = hparams.architecture->feed_forward;
  for (LayerHparams& layer : hparams.layers) layer.expert_limits = description.limits;
  if (!description.limit_keys) return;
  const auto experts = read_numbers_of_layers(keys.metadata(), keys.key("swiglu_clamp_exp"),
                                              description.limits.bound, hparams.n_layers());
  const auto others =
      read_numbers_of_layers(keys.metadata(), keys.key("swiglu_clamp_shexp"), 0, hparams.n_layers());
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    hparams.layers[i].expert_limits.bound = std::max(0.0f, experts[i]);
    hparams.layers[i].limits = description.limits;
    hparams.layers[i].limits.bound = std::max(0.0f, others[i]);
  }
}

void read_feed_forward(const KeyReader& keys, Hparams& hparams) {
  const FeedForwardDescription& description = hparams.architecture->feed_forward;
  const bool or_none = hparams.architecture->layers_lack_blocks;
  const auto n_ff = keys.sizes("feed_forward_length", hparams.n_layers(), kMaxHidden, or_none);
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    hparams.layers[i].n_ff = n_ff[i];
    if (or_none && n_ff[i] == 0) hparams.layers[i].n_heads = hparams.layers[i].n_kv_heads = 0;
  }
  hparams.activation = description.activation;
  read_limits(keys, hparams);
  if (description.xielu) read_xielu(keys, hparams);
  if (!description.activation_key) return;
  const std::string* name = keys.metadata().get_string(keys.key("hidden_activation"));
  if (name == nullptr || *name == "gelu") return;
  if (*name != "silu") keys.unsupported("hidden_activation", *name);
  hparams.activation = Activation::silu;
}

void read_embedding(const KeyReader& keys, Hparams& hparams) {
  const EmbeddingDescription& description = hparams.architecture->embedding;
  if (description.scaled) hparams.token_scale = std::sqrt(static_cast<float>(hparams.n_embd));
  hparams.layer_embedding_width = description.layer_width;
  if (description.layer_width_key) {
    constexpr std::string_view kKey = "embedding_length_per_layer_input";
    hparams.layer_embedding_width = keys.u32(kKey).value_or(0);
    if (hparams.layer_embedding_width != 0) keys.size(kKey, kMaxWidth);
  }
  if (description.token_types != Presence::absent) {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type_count";
    hparams.n_token_types = keys.metadata().get_u32(kKey).value_or(0);
    if (hparams.n_token_types == 0 || hparams.n_token_types > kMaxWidth) {
      fail(ErrorCode::bad_file, "{}: key '{}' is {}", keys.metadata().origin(), kKey, hparams.n_token_types);
    }
  }
  if (description.positions == Presence::required) keys.size("context_length", kMaxHidden);
}

void read_scales(const KeyReader& keys, Hparams& hparams) {
  using LogitKey = ScaleDescription::LogitKey;
  const ScaleDescription& scales = hparams.architecture->scales;
  const float depth = std::sqrt(static_cast<float>(hparams.n_layers()));
  hparams.input_scale = scales.embedding;
  if (scales.depth_residual != 0) hparams.residual_scale = scales.depth_residual / depth;
  if (scales.width_logits != 0)
    hparams.logit_scale = scales.width_logits / static_cast<float>(hparams.n_embd);
  const auto override = [&](std::string_view key, float& scale) {
    if (const float value = keys.number(key, 0); value != 0) scale = value;
  };
  if (scales.keys) {
    override("embedding_scale", hparams.input_scale);
    override("residual_scale", hparams.residual_scale);
    override("attention.scale", hparams.attention_scale);
  }
  if (scales.logit_key == LogitKey::none) return;
  override("logit_scale", hparams.logit_scale);
  if (scales.logit_key == LogitKey::divides) hparams.logit_scale = 1 / hparams.logit_scale;
}

void read_head(const KeyReader& keys, Hparams& hparams) {
  const HeadDescription& description = hparams.architecture->head;
  if (description.soft_cap)
    hparams.final_soft_cap = keys.not_negative("final_logit_softcapping", *description.soft_cap);
  if (const auto pooling = keys.u32("pooling_type")) {
    if (*pooling > static_cast<std::uint32_t>(Pooling::rank)) keys.unsupported("pooling_type", *pooling);
    hparams.pooling = static_cast<Pooling>(*pooling);
  }
  if (const auto* labels = keys.metadata().get_strings(keys.key("classifier.output_labels"))) {
    if (labels->empty() || labels->size() > kMaxWidth)
      keys.unsupported("classifier.output_labels", fmt::format("a list of {}", labels->size()));
    hparams.n_classes = static_cast<std::uint32_t>(labels->size());
  }
  if (description.dense) {
    hparams.dense_2_width = keys.u32("dense_2_feat_out").value_or(0);
    hparams.dense_3_width = keys.u32("dense_3_feat_in").value_or(0);
    if (hparams.dense_2_width != 0) keys.size("dense_2_feat_out", kMaxWidth);
    if (hparams.dense_3_width != 0) keys.size("dense_3_feat_in", kMaxWidth);
    const std::uint32_t width = hparams.dense_2_width != 0 ? hparams.dense_2_width : hparams.n_embd;
    if (hparams.dense_3_width != 0 && hparams.dense_3_width != width) {
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, but what comes before has {} elements",
           keys.metadata().origin(), keys.key("dense_3_feat_in"), hparams.dense_3_width, width);
    }
  }
}

/// Layers: the file counts those of next-token prediction, too, and those of an encoder apart.
void read_layers(const KeyReader& keys, Hparams& hparams) {
  const std::uint32_t n_blocks = keys.size("block_count", kMaxLayers);
  if (hparams.architecture->next_token_layers)
    hparams.n_next_token_layers = keys.u32("nextn_predict_layers").value_or(0);
  if (hparams.n_next_token_layers >= n_blocks) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}, of {} layers in all", keys.metadata().origin(),
         keys.key("nextn_predict_layers"), hparams.n_next_token_layers, n_blocks);
  }
  hparams.layers.resize(n_blocks - hparams.n_next_token_layers);
}

void read_loops(const KeyReader& keys, Hparams& hparams) {
  if (!hparams.architecture->loops) return;
  hparams.n_loops = keys.size("num_loops", static_cast<std::uint32_t>(kMaxLayers / hparams.n_layers()), 1);
  hparams.norm_between_loops = !keys.flag("skip_loop_final_norm", false);
}

/// The encoder's layers are like the decoder's, of which there may be more or fewer.
void split_encoder(const KeyReader& keys, Hparams& hparams) {
  if (hparams.architecture->structure != Structure::encoder_decoder) return;
  hparams.encoder_layers = hparams.layers;
  const std::uint32_t n_decoder_layers =
      keys.size("decoder_block_count", kMaxLayers, static_cast<std::uint32_t>(hparams.n_layers()));
  hparams.layers.resize(n_decoder_layers, hparams.layers.back());
  hparams.decoder_start_token = keys.u32("decoder_start_token_id");
  if (hparams.decoder_start_token && *hparams.decoder_start_token >= hparams.n_vocab) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}, of {} tokens", keys.metadata().origin(),
         keys.key("decoder_start_token_id"), *hparams.decoder_start_token, hparams.n_vocab);
  }
}

}  // namespace

std::vector<std::size_t> Hparams::attending_layers() const {
  std::vector<std::size_t> result;
  for (std::uint32_t loop = 0; loop < n_loops; ++loop) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].keeps_cells()) result.push_back(i);
    }
  }
  return result;
}

Hparams read_hparams(const gguf::Metadata& metadata, std::size_t n_vocab, std::set<std::string>* keys_read) {
  const std::string* name = metadata.get_string("general.architecture");
  if (name == nullptr)
    fail(ErrorCode::bad_file, "{}: key 'general.architecture' is missing", metadata.origin());
  Hparams hparams;
  hparams.architecture = find_architecture(*name);
  if (hparams.architecture == nullptr) {
    fail(ErrorCode::unsupported, "{}: architecture '{}' is not supported", metadata.origin(), *name);
  }
  const KeyReader keys(metadata, *name, keys_read);
  if (n_vocab == 0 || n_vocab > (std::size_t{1} << 30)) {
    fail(ErrorCode::bad_file, "{}: the vocabulary has {} tokens", metadata.origin(), n_vocab);
  }
  hparams.n_vocab = static_cast<std::uint32_t>(n_vocab);
  hparams.n_ctx_train = keys.u32("context_length").value_or(0);
  hparams.n_embd = keys.size("embedding_length", kMaxWidth);
  const Architecture& architecture = *hparams.architecture;
  for (const std::string_view key : architecture.unsupported_keys) {
    const float value = keys.number(key, 0);
    if (value != 0) keys.unsupported(key, value);
  }
  constexpr std::string_view kRmsEps = "attention.layer_norm_rms_epsilon";
  hparams.layer_norms =
      architecture.norm.kind == NormKind::layer ||
      (architecture.norm.kind == NormKind::rms_or_layer && !metadata.contains(keys.key(kRmsEps)));
  hparams.norm_eps = keys.positive(hparams.layer_norms ? "attention.layer_norm_epsilon" : kRmsEps);
  hparams.causal = !architecture.never_causal &&
                   keys.flag("attention.causal", architecture.structure != Structure::encoder);
  if (architecture.norm.parallel_key) hparams.parallel_blocks = keys.flag("use_parallel_residual", true);
  read_layers(keys, hparams);
  read_loops(keys, hparams);
  read_attention(keys, hparams);
  if (architecture.attention.positions == PositionKind::rotation) read_rope(keys, hparams);
  if (architecture.attention.kind == AttentionKind::latent) read_latent(keys, hparams);
  read_windows(keys, hparams);
  read_feed_forward(keys, hparams);
  read_experts(keys, hparams);
  read_scales(keys, hparams);
  read_embedding(keys, hparams);
  read_head(keys, hparams);
  split_encoder(keys, hparams);
  if (architecture.adjust != nullptr) architecture.adjust(metadata, hparams);
  return hparams;
}

}  // namespace quipu
