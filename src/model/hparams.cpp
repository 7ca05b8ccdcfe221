#include "model/hparams.h"

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
  hparams.attention_scale = 1.0f / std::sqrt(static_cast<float>(hparams.k_dim));
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
}

void read_windows(const KeyReader& keys, Hparams& hparams) {
  const WindowPattern& pattern = hparams.architecture->windows;
  hparams.local_rope = hparams.rope;
  if (pattern.period == 0) return;
  const std::uint32_t window = keys.size("attention.sliding_window", 1u << 30);
  const std::string pattern_key = keys.key("attention.sliding_window_pattern");
  const gguf::Value* value = keys.metadata().find(pattern_key);
  std::vector<std::uint32_t> is_windowed(hparams.n_layers());
  if (value != nullptr && gguf::type_of(*value) == gguf::ValueType::array) {
    is_windowed = *keys.metadata().get_u32_per_layer(pattern_key, hparams.n_layers());
  } else {
    const std::uint32_t period = keys.metadata().get_u32(pattern_key).value_or(pattern.period);
    for (std::size_t i = 0; i < is_windowed.size(); ++i)
      is_windowed[i] = period != 0 && i % period < period - 1;
  }
  for (std::size_t i = 0; i < is_windowed.size(); ++i) {
    hparams.layers[i].window = is_windowed[i] != 0 ? window : 0;
    hparams.layers[i].local_rope = is_windowed[i] != 0;
  }
  hparams.local_rope.base = keys.positive("rope.freq_base_swa", pattern.local_rope_base);
  hparams.local_rope.scaling = RopeScaling::none;
  hparams.local_rope.factor = 1;
}

void read_feed_forward(const KeyReader& keys, Hparams& hparams) {
  const ExpertDescription& description = hparams.architecture->experts;
  const auto n_ff = keys.sizes("feed_forward_length", hparams.n_layers(), 1u << 24);
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) hparams.layers[i].n_ff = n_ff[i];
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
  experts.n_ff = n_ff[0];
  if (description.own_width) {
    experts.n_ff = keys.size("expert_feed_forward_length", 1u << 24, std::max(1u, n_ff[0] / experts.n_used));
  }
  const float scale = keys.number("expert_weights_scale", 1);
  experts.weight_scale = scale == 0 ? 1 : scale;
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
  hparams.layers.resize(keys.size("block_count", kMaxLayers));
  hparams.rms_eps = keys.positive("attention.layer_norm_rms_epsilon");
  hparams.causal = metadata.get_bool(keys.key("attention.causal")).value_or(true);
  read_heads(keys, hparams);
  read_rope(keys, hparams);
  read_windows(keys, hparams);
  read_feed_forward(keys, hparams);
  if (hparams.architecture->scale_embedding)
    hparams.embedding_scale = std::sqrt(static_cast<float>(hparams.n_embd));
  if (hparams.architecture->soft_cap_logits)
    hparams.final_soft_cap = keys.number("final_logit_softcapping", 0);
  return hparams;
}

}  // namespace quipu
