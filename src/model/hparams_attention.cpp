// Hyper-parameters of attention: heads, rotation, windows.
#include "model/hparams_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/arch/architecture.h"

namespace quipu {
namespace {

void read_heads(const KeyReader& keys, Hparams& hparams) {
  const std::size_t n_layers = hparams.n_layers();
  const bool or_none = hparams.architecture->layers_lack_blocks;
  const auto n_heads = keys.sizes("attention.head_count", n_layers, kMaxWidth, or_none);
  const bool grouped = keys.metadata().contains(keys.key("attention.head_count_kv"));
  const auto n_kv_heads =
      grouped ? keys.sizes("attention.head_count_kv", n_layers, kMaxWidth, or_none) : n_heads;
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (n_kv_heads[i] != 0 && n_heads[i] % n_kv_heads[i] != 0) {
      fail(ErrorCode::bad_file, "{}: layer {} has {} query heads, which {} key/value heads do not divide",
           keys.metadata().origin(), i, n_heads[i], n_kv_heads[i]);
    }
    hparams.layers[i].n_heads = n_heads[i];
    hparams.layers[i].n_kv_heads = n_kv_heads[i];
  }
  const std::uint32_t most_heads = *std::max_element(n_heads.begin(), n_heads.end());
  if (most_heads == 0)
    fail(ErrorCode::bad_file, "{}: no layer has heads ('{}')", keys.metadata().origin(),
         keys.key("attention.head_count"));
  const std::uint32_t even_share = hparams.n_embd / (n_heads[0] != 0 ? n_heads[0] : most_heads);
  hparams.k_dim = keys.size("attention.key_length", kMaxWidth, even_share);
  hparams.v_dim = keys.size("attention.value_length", kMaxWidth, even_share);
}

float score_scale(ScoreScale kind, std::uint32_t head_size) {
  switch (kind) {
    case ScoreScale::inverse_root: return 1.0f / std::sqrt(static_cast<float>(head_size));
    case ScoreScale::inverse: return 1.0f / static_cast<float>(head_size);
    case ScoreScale::none: break;
  }
  return 1;
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

RopeScaling read_scaling(const KeyReader& keys, const AttentionDescription& description) {
  const std::string* name = keys.metadata().get_string(keys.key("rope.scaling.type"));
  if (name == nullptr || *name == "linear") return RopeScaling::linear;
  if (*name == "none") return RopeScaling::none;
  if (*name == "yarn") return RopeScaling::yarn;
  if (*name == "longrope" && description.rope_factors) return RopeScaling::long_rope;
  fail(ErrorCode::unsupported, "{}: rotation scaling '{}' is not supported", keys.metadata().origin(), *name);
}

/// The dimension that turns each pair: each section as long as it lasts, or one pair of each in turn. Pairs
/// of no section are the fourth dimension's.
void read_sections(const KeyReader& keys, Hparams& hparams) {
  constexpr std::string_view kKey = "rope.dimension_sections";
  const AttentionDescription& description = hparams.architecture->attention;
  if (description.rope_sections == RopeSections::none) return;
  std::vector<std::uint32_t> sections =
      keys.metadata().get_u32s(keys.key(kKey)).value_or(std::vector<std::uint32_t>{});
  sections.resize(4);
  std::uint64_t n_pairs = 0;
  for (const std::uint32_t section : sections) n_pairs += section;
  if (n_pairs == 0) {
    if (description.optional_sections) return;
    fail(ErrorCode::bad_file, "{}: key '{}' is missing or empty", keys.metadata().origin(), keys.key(kKey));
  }
  if (n_pairs > kMaxWidth) keys.unsupported(kKey, fmt::format("{} pairs", n_pairs));
  RopeHparams& rope = hparams.rope;
  rope.style = RopeStyle::halves;
  rope.pair_dimensions.resize(rope.n_rot / 2);
  for (std::size_t i = 0; i < rope.pair_dimensions.size(); ++i) {
    const std::size_t place = i % n_pairs;  // sections begin again where there are more pairs
    std::size_t dimension = 0;
    if (description.rope_sections == RopeSections::interleaved) {
      dimension = place % 3;
      if (place >= std::size_t{3} * sections[dimension]) dimension = 3;
    } else {
      std::size_t end = sections[0];
      while (dimension < 3 && place >= end) end += sections[++dimension];
    }
    rope.pair_dimensions[i] = static_cast<std::uint8_t>(dimension);
  }
}

/// An array of booleans or integers, one for each layer; nothing where the key is absent or no array.
std::optional<std::vector<std::uint32_t>> read_flags(const KeyReader& keys, const std::string& key,
                                                     std::size_t n_layers) {
  const gguf::Value* value = keys.metadata().find(key);
  if (value == nullptr || gguf::type_of(*value) != gguf::ValueType::array) return std::nullopt;
  const auto* flags = std::get_if<std::vector<gguf::Bool>>(&std::get<gguf::Array>(*value));
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
  if (auto flags = read_flags(keys, key, hparams.n_layers())) return *std::move(flags);
  if (pattern.listed) keys.unsupported("attention.sliding_window_pattern", "no list");
  const std::uint32_t period = keys.metadata().get_u32(key).value_or(pattern.period);
  std::vector<std::uint32_t> is_windowed(hparams.n_layers());
  for (std::size_t i = 0; i < is_windowed.size() && period != 0; ++i)
    is_windowed[i] = i % period != (pattern.first_sees_all ? 0 : period - 1);
  return is_windowed;
}

/// Rotation of the windowed layers.
void read_local_rope(const KeyReader& keys, Hparams& hparams) {
  const WindowPattern& pattern = hparams.architecture->attention.windows;
  RopeHparams& rope = hparams.local_rope;
  rope.base =
      keys.positive("rope.freq_base_swa", pattern.local_rope_base != 0 ? pattern.local_rope_base : rope.base);
  if (keys.u32("rope.dimension_count_swa")) {
    rope.n_rot = keys.size("rope.dimension_count_swa", kMaxWidth);
    if (rope.n_rot % 2 != 0) keys.unsupported("rope.dimension_count_swa", rope.n_rot);
  }
  if (pattern.full_half_rotation) hparams.rope.n_rot = hparams.rope.n_rot / 4 * 2;
  if (pattern.local_rope_scaled) return;
  rope.scaling = RopeScaling::none;
  rope.factor = 1;
}

/// Windowed layers may have heads of their own size.
void read_head_sizes(const KeyReader& keys, Hparams& hparams) {
  const bool own = hparams.architecture->attention.windows.own_head_sizes;
  const std::uint32_t k_dim = own ? keys.size("attention.key_length_swa", kMaxWidth) : hparams.k_dim;
  const std::uint32_t v_dim = own ? keys.size("attention.value_length_swa", kMaxWidth) : hparams.v_dim;
  for (LayerHparams& layer : hparams.layers) {
    layer.k_dim = layer.window != 0 ? k_dim : hparams.k_dim;
    layer.v_dim = layer.window != 0 ? v_dim : hparams.v_dim;
  }
  if (hparams.local_rope.n_rot <= k_dim) return;
  fail(ErrorCode::bad_file, "{}: key '{}' is {}, above the head's {}", keys.metadata().origin(),
       keys.key("rope.dimension_count_swa"), hparams.local_rope.n_rot, k_dim);
}

/// Layers that read the cells of an earlier one, which must have the same heads.
void read_shared_caches(const KeyReader& keys, Hparams& hparams) {
  const AttentionDescription& description = hparams.architecture->attention;
  const auto n_layers = static_cast<std::uint32_t>(hparams.n_layers());
  std::uint32_t n_own =
      description.n_own_caches != 0 ? std::min(description.n_own_caches, n_layers) : n_layers;
  if (description.shared_caches_key) {
    const std::uint32_t n_shared = keys.u32("attention.shared_kv_layers").value_or(0);
    if (n_shared >= n_layers) keys.unsupported("attention.shared_kv_layers", n_shared);
    n_own = n_layers - n_shared;
  }
  for (std::uint32_t i = n_own; i < n_layers; ++i) {
    LayerHparams& layer = hparams.layers[i];
    std::uint32_t source = n_own;
    while (source > 0 && hparams.layers[source - 1].window != layer.window) --source;
    if (source == 0 || hparams.layers[source - 1].n_kv_heads != layer.n_kv_heads) {
      fail(ErrorCode::bad_file, "{}: layer {} has no cells of its own, and no earlier layer has such",
           keys.metadata().origin(), i);
    }
    layer.cache_of = source - 1;
  }
}

void read_unrotated(const KeyReader& keys, Hparams& hparams, bool has_windows) {
  const UnrotatedLayers& unrotated = hparams.architecture->attention.unrotated;
  const bool by_period = unrotated.period != 0 && (has_windows || !unrotated.with_windows);
  const std::uint32_t n_leading =
      unrotated.but_leading_dense ? keys.u32("leading_dense_block_count").value_or(0) : 0;
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    LayerHparams& layer = hparams.layers[i];
    if (unrotated.without_window && layer.window == 0 && i >= n_leading) layer.rotates = false;
    if (by_period && i % unrotated.period == (unrotated.first ? 0 : unrotated.period - 1))
      layer.rotates = false;
    if (unrotated.key && !keys.flag("rope.scaling.finetuned", true)) layer.rotates = false;
  }
  if (!unrotated.pattern_key) return;
  const auto rotates = read_flags(keys, keys.key("attention.rope_pattern"), hparams.n_layers());
  for (std::size_t i = 0; rotates && i < rotates->size(); ++i) hparams.layers[i].rotates = (*rotates)[i] != 0;
}

void read_temperature(const KeyReader& keys, Hparams& hparams, bool has_windows) {
  const TemperatureDescription& temperature = hparams.architecture->attention.temperature;
  if (temperature.unrotated && !has_windows) return;
  hparams.temperature_scale = temperature.scale;
  hparams.temperature_length = temperature.length;
  if (!temperature.keys) return;
  hparams.temperature_scale = keys.number("attention.temperature_scale", temperature.scale);
  if (hparams.temperature_scale != 0)
    hparams.temperature_length =
        keys.size("attention.temperature_length", 1u << 30, hparams.rope.original_context);
}

}  // namespace

void read_attention(const KeyReader& keys, Hparams& hparams) {
  const AttentionDescription& description = hparams.architecture->attention;
  read_heads(keys, hparams);
  hparams.attention_scale = score_scale(description.score_scale, hparams.k_dim);
  if (description.soft_cap)
    hparams.score_soft_cap = keys.not_negative("attn_logit_softcapping", *description.soft_cap);
  if (description.square_qkv) check_square_qkv(keys, hparams);
  if (description.value_scale_key) {
    const float scale = keys.number("attention.value_scale", 1);
    hparams.value_scale = scale == 0 ? 1 : scale;
  }
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

void read_latent(const KeyReader& keys, Hparams& hparams) {
  LatentHparams& latent = hparams.latent;
  const std::uint32_t n_rot = hparams.rope.n_rot;
  if (hparams.architecture->attention.compressed_queries)
    latent.q_rank = keys.u32("attention.q_lora_rank").value_or(0);
  if (latent.q_rank != 0) keys.size("attention.q_lora_rank", kMaxWidth);
  latent.kv_rank = keys.size("attention.kv_lora_rank", kMaxWidth);
  latent.absorbed = keys.u32("attention.key_length_mla").value_or(0) != 0;
  latent.k_dim = latent.absorbed ? keys.size("attention.key_length_mla", kMaxWidth) : hparams.k_dim;
  latent.v_dim = latent.absorbed ? keys.size("attention.value_length_mla", kMaxWidth) : hparams.v_dim;
  if (latent.k_dim < n_rot || (latent.absorbed && latent.k_dim == n_rot)) {
    fail(ErrorCode::bad_file, "{}: heads of {} elements have no part that is not rotated ('{}' is {})",
         keys.metadata().origin(), latent.k_dim, keys.key("rope.dimension_count"), n_rot);
  }
  hparams.attention_scale = score_scale(hparams.architecture->attention.score_scale, latent.k_dim);
  if (latent.absorbed) {
    hparams.k_dim = latent.kv_rank + n_rot;
    hparams.v_dim = latent.kv_rank;
  }
  for (LayerHparams& layer : hparams.layers) layer.n_kv_heads = latent.absorbed ? 1 : layer.n_heads;
}

void read_rope(const KeyReader& keys, Hparams& hparams) {
  RopeHparams& rope = hparams.rope;
  rope.n_rot = keys.size("rope.dimension_count", kMaxWidth, hparams.k_dim);
  if (rope.n_rot > hparams.k_dim || rope.n_rot % 2 != 0) {
    fail(ErrorCode::bad_file, "{}: key '{}' is {}; it must be even and at most the head's {}",
         keys.metadata().origin(), keys.key("rope.dimension_count"), rope.n_rot, hparams.k_dim);
  }
  rope.base = keys.positive("rope.freq_base", 10000.0f);
  rope.style = hparams.architecture->attention.rope;
  read_sections(keys, hparams);
  rope.scaling = read_scaling(keys, hparams.architecture->attention);
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
  rope.yarn_log_multiplier = keys.number("rope.scaling.yarn_log_multiplier", 0);
  if (use == YarnLogMultiplier::divisor || rope.yarn_log_multiplier == 0) return;
  rope.yarn_log_multiplier /= 0.1f;  // of such models files hold a tenth
  rope.yarn_dividend_multiplier = rope.yarn_log_multiplier;
}

void read_windows(const KeyReader& keys, Hparams& hparams) {
  const WindowPattern& pattern = hparams.architecture->attention.windows;
  hparams.local_rope = hparams.rope;
  const bool may_have = pattern.period != 0 || pattern.listed;
  const std::uint32_t size =
      may_have ? keys.u32("attention.sliding_window").value_or(pattern.default_size) : 0;
  const bool has_windows = may_have && (pattern.required || size != 0);
  if (has_windows) {
    std::optional<std::uint32_t> fallback;
    if (pattern.default_size != 0) fallback = pattern.default_size;
    const std::uint32_t window =
        pattern.size != 0 ? pattern.size : keys.size("attention.sliding_window", 1u << 30, fallback);
    const std::vector<std::uint32_t> is_windowed = read_window_pattern(keys, hparams);
    for (std::size_t i = 0; i < is_windowed.size(); ++i) {
      hparams.layers[i].window = is_windowed[i] != 0 ? window : 0;
      hparams.layers[i].local_rope = is_windowed[i] != 0;
    }
    read_local_rope(keys, hparams);
  }
  read_head_sizes(keys, hparams);
  read_shared_caches(keys, hparams);
  read_unrotated(keys, hparams, has_windows);
  read_temperature(keys, hparams, has_windows);
}

}  // namespace quipu
