#include "model/hparams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "model/arch/architecture.h"

namespace quipu {
namespace {

/// Limits that keep all later arithmetic far from overflow; published models are well below them.
constexpr std::uint32_t kMaxWidth = 1u << 20;
constexpr std::uint32_t kMaxLayers = 1u << 12;
constexpr std::uint32_t kMaxExperts = 1u << 12;
constexpr std::uint32_t kMaxHidden = 1u << 24;
constexpr std::uint32_t kMaxPositionBuckets = 128;

/// Reads keys "<architecture>.NAME".
class KeyReader {
 public:
  KeyReader(const gguf::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  std::optional<std::uint32_t> u32(std::string_view name) const { return metadata_.get_u32(key(name)); }
  std::uint32_t size(std::string_view name, std::uint32_t max,
                     std::optional<std::uint32_t> fallback = {}) const {
    const std::optional<std::uint32_t> value = u32(name);
    if (!value && !fallback) missing(name);
    return checked(name, value.value_or(fallback.value_or(0)), max);
  }
  std::vector<std::uint32_t> sizes(std::string_view name, std::size_t n_layers, std::uint32_t max) const {
    auto values = metadata_.get_u32_per_layer(key(name), n_layers);
    if (!values) missing(name);
    values->resize(n_layers);
    for (const std::uint32_t value : *values) checked(name, value, max);
    return *std::move(values);
  }
  float number(std::string_view name, float fallback) const {
    const float value = metadata_.get_f32(key(name)).value_or(fallback);
    if (!std::isfinite(value))
      fail(ErrorCode::bad_file, "{}: key '{}' is {}", metadata_.origin(), key(name), value);
    return value;
  }
  float positive(std::string_view name, std::optional<float> fallback = {}) const {
    if (!fallback && !metadata_.contains(key(name))) missing(name);
    const float value = number(name, fallback.value_or(0));
    if (value <= 0)
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, not above 0", metadata_.origin(), key(name), value);
    return value;
  }
  bool flag(std::string_view name, bool fallback) const {
    return metadata_.get_bool(key(name)).value_or(fallback);
  }
  /// For values that Quipu does not have: names the key and the value.
  template <typename Value>
  [[noreturn]] void unsupported(std::string_view name, const Value& value) const {
    fail(ErrorCode::unsupported, "{}: key '{}' is {}, which is not supported", metadata_.origin(), key(name),
         value);
  }
  const gguf::Metadata& metadata() const { return metadata_; }

 private:
  [[noreturn]] void missing(std::string_view name) const {
    fail(ErrorCode::bad_file, "{}: key '{}' is missing", metadata_.origin(), key(name));
  }
  std::uint32_t checked(std::string_view name, std::uint32_t value, std::uint32_t max) const {
    if (value == 0 || value > max) {
      fail(ErrorCode::bad_file, "{}: key '{}' is {}, outside 1 to {}", metadata_.origin(), key(name), value,
           max);
    }
    return value;
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
};

void read_heads(const KeyReader& keys, Hparams& hparams) {
  const std::size_t n_layers = hparams.n_layers();
  const auto n_heads = keys.sizes("attention.head_count", n_layers, kMaxWidth);
  const bool grouped = keys.metadata().contains(keys.key("attention.head_count_kv"));
  const auto n_kv_heads = grouped ? keys.sizes("attention.head_count_kv", n_layers, kMaxWidth) : n_heads;
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (n_heads[i] % n_kv_heads[i] != 0) {
      fail(ErrorCode::bad_file, "{}: layer {} has {} query heads, which {} key/value heads do not divide",
           keys.metadata().origin(), i, n_heads[i], n_kv_heads[i]);
    }
    hparams.layers[i].n_heads = n_heads[i];
    hparams.layers[i].n_kv_heads = n_kv_heads[i];
  }
  const std::uint32_t even_share = hparams.n_embd / n_heads[0];
  hparams.k_dim = keys.size("attention.key_length", kMaxWidth, even_share);
  hparams.v_dim = keys.size("attention.value_length", kMaxWidth, even_share);
}

/// attn_qkv has 3 n_embd rows, and heads must not take more.
void check_square_qkv(const KeyReader& keys, const Hparams& hparams) {
  for (const LayerHparams& layer : hparams.layers) {
    const std::uint64_t rows = std::uint64_t{layer.n_heads} * hparams.k_dim +
                               std::uint64_t{layer.n_kv_heads} * hparams.k_dim +
                               std::uint64_t{layer.n_kv_heads} * hparams.v_dim;
    if (rows <= 3 * std::uint64_t{hparams.n_embd}) continue;
    fail(ErrorCode::bad_file, "{}: heads take {} rows of attn_qkv, which has 3 times '{}', {}",
         keys.metadata().origin(), rows, keys.key("embedding_length"), hparams.n_embd);
  }
}

void read_attention(const KeyReader& keys, Hparams& hparams) {
  const AttentionDescription& description = hparams.architecture->attention;
  read_heads(keys, hparams);
  if (description.scaled) hparams.attention_scale = 1.0f / std::sqrt(static_cast<float>(hparams.k_dim));
  if (description.square_qkv) check_square_qkv(keys, hparams);
  if (description.clamp) hparams.clamp_qkv = std::max(0.0f, keys.number("attention.clamp_kqv", 0));
  if (description.positions == PositionKind::alibi) {
    hparams.max_alibi_bias = description.max_alibi_bias != 0 ? description.max_alibi_bias
                                                             : keys.number("attention.max_alibi_bias", 0);
    if (hparams.max_alibi_bias < 0) keys.unsupported("attention.max_alibi_bias", hparams.max_alibi_bias);
  }
  if (description.positions == PositionKind::relative) {
    hparams.n_position_buckets = keys.size("attention.relative_buckets_count", kMaxPositionBuckets);
    if (hparams.n_position_buckets % 4 != 0)
      keys.unsupported("attention.relative_buckets_count", hparams.n_position_buckets);
  }
}

/// Heads and the cache's widths follow from the ranks; needs the rotation.
void read_latent(const KeyReader& keys, Hparams& hparams) {
  LatentHparams& latent = hparams.latent;
  const std::uint32_t n_rot = hparams.rope.n_rot;
  latent.q_rank = keys.u32("attention.q_lora_rank").value_or(0);
  if (latent.q_rank != 0) keys.size("attention.q_lora_rank", kMaxWidth);
  latent.kv_rank = keys.size("attention.kv_lora_rank", kMaxWidth);
  latent.absorbed = keys.u32("attention.key_length_mla").value_or(0) != 0;
  latent.k_dim = latent.absorbed ? keys.size("attention.key_length_mla", kMaxWidth) : hparams.k_dim;
  latent.v_dim = latent.absorbed ? keys.size("attention.value_length_mla", kMaxWidth) : hparams.v_dim;
  if (latent.k_dim <= n_rot) {
    fail(ErrorCode::bad_file, "{}: heads of {} elements have no part that is not rotated ('{}' is {})",
         keys.metadata().origin(), latent.k_dim, keys.key("rope.dimension_count"), n_rot);
  }
  hparams.attention_scale = 1.0f / std::sqrt(static_cast<float>(latent.k_dim));
  if (latent.absorbed) {
    hparams.k_dim = latent.kv_rank + n_rot;
    hparams.v_dim = latent.kv_rank;
  }
  for (LayerHparams& layer : hparams.layers) layer.n_kv_heads = latent.absorbed ? 1 : layer.n_heads;
}

RopeScaling read_scaling(const KeyReader& keys) {
  const std::string* name = keys.metadata().get_string(keys.key("rope.scaling.type"));
  if (name == nullptr || *name == "linear") return RopeScaling::linear;
  if (*name == "none") return RopeScaling::none;
  if (*name == "yarn") return RopeScaling::yarn;
  fail(ErrorCode::unsupported, "{}: rotation scaling '{}' is not supported", keys.metadata().origin(), *name);
}

void read_rope(const KeyReader& keys, Hparams& hparams) {
  RopeHparams& rope = hparams.rope;
  rope.n_rot = keys.size("rope.dimension_count", kMaxWidth, hparams.k_dim);
  if (rope.n_rot > hparams.k_dim || rope.n_rot % 2 != 0) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}; it must be even and at most the head's {}",
         keys.metadata().origin(), keys.key("rope.dimension_count"), rope.n_rot, hparams.k_dim);
  }
  rope.base = keys.positive("rope.freq_base", 10000.0f);
  rope.scaling = read_scaling(keys);
  const float factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 0));
  rope.factor = factor == 0 ? 1 : factor;
  if (rope.factor < 0)
    fail(ErrorCode::bad_file, "{}: key '{}' is {}, below 0", keys.metadata().origin(),
         keys.key("rope.scaling.factor"), rope.factor);
  rope.original_context = keys.u32("rope.scaling.original_context_length").value_or(hparams.n_ctx_train);
  rope.attention_factor = keys.number("rope.scaling.attn_factor", 1);
  rope.yarn_extrapolation = keys.number("rope.scaling.yarn_ext_factor", -1);
  rope.yarn_attention_factor = keys.number("rope.scaling.yarn_attn_factor", 1);
  rope.yarn_beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32);
  rope.yarn_beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1);
  const YarnLogMultiplier use = hparams.architecture->attention.yarn_log_multiplier;
  if (use == YarnLogMultiplier::none) return;
  rope.yarn_log_multiplier = keys.number("rope.scaling.yarn_log_multiplier", 0) / 0.1f;  // files hold a tenth
  if (use == YarnLogMultiplier::cancels && rope.yarn_log_multiplier != 0)
    rope.yarn_dividend_multiplier = rope.yarn_log_multiplier;
}

/// An array of booleans or integers, one for each layer.
std::vector<std::uint32_t> read_flags(const KeyReader& keys, const std::string& key, const gguf::Array& array,
                                      std::size_t n_layers) {
  const auto* flags = std::get_if<std::vector<gguf::Bool>>(&array);
  if (flags == nullptr) return *keys.metadata().get_u32_per_layer(key, n_layers);
  if (flags->size() < n_layers) {
    fail(ErrorCode::bad_file, "{}: key '{}': {} elements for {} layers", keys.metadata().origin(), key,
         flags->size(), n_layers);
  }
  std::vector<std::uint32_t> values(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) values[i] = (*flags)[i].value ? 1 : 0;
  return values;
}

/// Which layers have windows: 1 where so.
std::vector<std::uint32_t> read_window_pattern(const KeyReader& keys, const Hparams& hparams) {
  const WindowPattern& pattern = hparams.architecture->attention.windows;
  const std::string key = keys.key("attention.sliding_window_pattern");
  const gguf::Value* value = keys.metadata().find(key);
  if (value != nullptr && gguf::type_of(*value) == gguf::ValueType::array)
    return read_flags(keys, key, std::get<gguf::Array>(*value), hparams.n_layers());
  const std::uint32_t period = keys.metadata().get_u32(key).value_or(pattern.period);
  std::vector<std::uint32_t> is_windowed(hparams.n_layers());
  for (std::size_t i = 0; i < is_windowed.size() && period != 0; ++i)
    is_windowed[i] = i % period != (pattern.first_sees_all ? 0 : period - 1);
  return is_windowed;
}

void read_windows(const KeyReader& keys, Hparams& hparams) {
  const WindowPattern& pattern = hparams.architecture->attention.windows;
  hparams.local_rope = hparams.rope;
  if (pattern.period == 0) return;
  if (!pattern.required && keys.u32("attention.sliding_window").value_or(0) == 0) return;
  const std::uint32_t window = keys.size("attention.sliding_window", 1u << 30);
  const std::vector<std::uint32_t> is_windowed = read_window_pattern(keys, hparams);
  for (std::size_t i = 0; i < is_windowed.size(); ++i) {
    hparams.layers[i].window = is_windowed[i] != 0 ? window : 0;
    hparams.layers[i].local_rope = is_windowed[i] != 0;
  }
  hparams.local_rope.base = keys.positive("rope.freq_base_swa", pattern.local_rope_base);
  hparams.local_rope.scaling = RopeScaling::none;
  hparams.local_rope.factor = 1;
}

/// The file's numbers of gating kinds.
ExpertGating read_gating(const KeyReader& keys, const Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  if (!description.gating_key) return description.gating;
  const std::uint32_t kind = keys.u32("expert_gating_func").value_or(0);
  switch (kind) {
    case 0: break;
    case 1: return ExpertGating::softmax;
    case 2: return ExpertGating::sigmoid;
    case 3: return ExpertGating::chosen_softmax;
    default: keys.unsupported("expert_gating_func", kind);
  }
  // GLM 4.7 Flash was published as deepseek2 before the key was.
  const bool is_glm = (hparams.n_layers() == 47 || hparams.n_layers() == 48) && hparams.n_vocab == 154880;
  return is_glm ? ExpertGating::sigmoid : description.gating;
}

void read_expert_groups(const KeyReader& keys, ExpertHparams& experts) {
  const std::uint32_t n_groups = keys.u32("expert_group_count").value_or(0);
  if (n_groups <= 1) return;
  experts.n_groups = keys.size("expert_group_count", kMaxExpertGroups);
  experts.n_groups_used = keys.size("expert_group_used_count", n_groups);
  if (experts.n_experts % n_groups != 0 ||
      experts.n_used > experts.n_experts / n_groups * experts.n_groups_used) {
    fail(ErrorCode::bad_file, "{}: {} of {} experts cannot be chosen from {} of {} groups ('{}')",
         keys.metadata().origin(), experts.n_used, experts.n_experts, experts.n_groups_used, n_groups,
         keys.key("expert_group_count"));
  }
}

void read_experts(const KeyReader& keys, Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  const std::uint32_t n_experts = keys.u32("expert_count").value_or(0);
  if (!description.available) {
    if (n_experts > 0) {
      fail(ErrorCode::unsupported, "{}: '{}' models with experts are not supported", keys.metadata().origin(),
           hparams.architecture->name);
    }
    return;
  }
  if (n_experts == 0) return;
  ExpertHparams& experts = hparams.experts;
  experts.n_experts = keys.size("expert_count", kMaxExperts);
  experts.n_used = keys.size("expert_used_count", experts.n_experts);
  const std::uint32_t dense_width = hparams.layers[0].n_ff;
  experts.n_ff = dense_width;
  if (description.own_width) {
    experts.n_ff =
        keys.size("expert_feed_forward_length", kMaxHidden, std::max(1u, dense_width / experts.n_used));
  }
  if (description.shared && keys.u32("expert_shared_count").value_or(0) > 0) {
    experts.n_ff_shared = experts.n_ff * keys.size("expert_shared_count", kMaxHidden / experts.n_ff);
  }
  experts.gating = read_gating(keys, hparams);
  experts.normalize_weights = description.normalize_key
                                  ? keys.flag("expert_weights_norm", description.normalize_weights)
                                  : description.normalize_weights;
  const float scale = keys.number("expert_weights_scale", 1);
  experts.weight_scale = scale == 0 ? 1 : scale;
  if (description.groups) read_expert_groups(keys, experts);
  const std::uint32_t n_dense =
      description.leading_dense ? keys.u32("leading_dense_block_count").value_or(0) : 0;
  for (std::size_t i = n_dense; i < hparams.n_layers(); ++i) hparams.layers[i].has_experts = true;
}

void read_feed_forward(const KeyReader& keys, Hparams& hparams) {
  const FeedForwardDescription& description = hparams.architecture->feed_forward;
  const auto n_ff = keys.sizes("feed_forward_length", hparams.n_layers(), kMaxHidden);
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) hparams.layers[i].n_ff = n_ff[i];
  hparams.activation = description.activation;
  if (!description.activation_key) return;
  const std::string* name = keys.metadata().get_string(keys.key("hidden_activation"));
  if (name == nullptr || *name == "gelu") return;
  if (*name != "silu") keys.unsupported("hidden_activation", *name);
  hparams.activation = Activation::silu;
}

void read_embedding(const KeyReader& keys, Hparams& hparams) {
  const EmbeddingDescription& description = hparams.architecture->embedding;
  if (description.scaled) hparams.token_scale = std::sqrt(static_cast<float>(hparams.n_embd));
  if (description.token_types != Presence::absent) {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type_count";
    hparams.n_token_types = keys.metadata().get_u32(kKey).value_or(0);
    if (hparams.n_token_types == 0 || hparams.n_token_types > kMaxWidth) {
      fail(ErrorCode::bad_file, "{}: key '{}' is {}", keys.metadata().origin(), kKey, hparams.n_token_types);
    }
  }
  if (description.positions == Presence::required) keys.size("context_length", kMaxHidden);
}

void read_head(const KeyReader& keys, Hparams& hparams) {
  const HeadDescription& description = hparams.architecture->head;
  if (description.soft_cap) hparams.final_soft_cap = keys.number("final_logit_softcapping", 0);
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

Hparams read_hparams(const gguf::Metadata& metadata, std::size_t n_vocab) {
  const std::string* name = metadata.get_string("general.architecture");
  if (name == nullptr)
    fail(ErrorCode::bad_file, "{}: key 'general.architecture' is missing", metadata.origin());
  Hparams hparams;
  hparams.architecture = find_architecture(*name);
  if (hparams.architecture == nullptr) {
    fail(ErrorCode::unsupported, "{}: architecture '{}' is not supported", metadata.origin(), *name);
  }
  const KeyReader keys(metadata, *name);
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
  hparams.norm_eps =
      keys.positive(architecture.norm.kind == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                            : "attention.layer_norm_epsilon");
  hparams.causal = keys.flag("attention.causal", architecture.structure != Structure::encoder);
  read_layers(keys, hparams);
  read_attention(keys, hparams);
  if (architecture.attention.positions == PositionKind::rotation) read_rope(keys, hparams);
  if (architecture.attention.kind == AttentionKind::latent) read_latent(keys, hparams);
  read_windows(keys, hparams);
  read_feed_forward(keys, hparams);
  read_experts(keys, hparams);
  read_embedding(keys, hparams);
  read_head(keys, hparams);
  split_encoder(keys, hparams);
  return hparams;
}

}  // namespace quipu
