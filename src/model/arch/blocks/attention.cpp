// Attention with heads of its own: projections, norms, rotation, attention, output projection.
#include "model/arch/blocks/attention.h"

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"

namespace quipu {
namespace {

struct Heads {
  Value q, k, v;  ///< [n_tokens, heads * dim] at first, [n_tokens, heads, dim] in the end
};

Value split_heads(Value x, std::size_t n_heads) {
  return view(x, {x.shape().rows(), n_heads, x.shape().row_elements() / n_heads});
}

/// Bounded, where the model bounds them.
Value bounded(LayerScope& layer, Value x, std::string_view name) {
  const float bound = layer.model.hparams.clamp_qkv;
  return bound == 0 ? x : layer.label(clamp(x, -bound, bound), name);
}

Heads project(LayerScope& layer, Value x) {
  const AttentionWeights& w = layer.weights.attention;
  if (w.qkv.matrix == nullptr) {
    const Value q = bounded(layer, layer.linear(x, w.q, "Qcur"), "Qcur_clamped");
    if (layer.hparams.cache_of) return {.q = q, .k = {}, .v = {}};
    const Value k = bounded(layer, layer.linear(x, w.k, "Kcur"), "Kcur_clamped");
    if (w.v.matrix == nullptr) return {q, k, k};
    return {q, k, bounded(layer, layer.linear(x, w.v, "Vcur"), "Vcur_clamped")};
  }
  const Value qkv = bounded(layer, layer.linear(x, w.qkv, "wqkv"), "wqkv_clamped");
  const std::size_t q_width = std::size_t{layer.hparams.n_heads} * layer.hparams.k_dim;
  const std::size_t k_width = std::size_t{layer.hparams.n_kv_heads} * layer.hparams.k_dim;
  const std::size_t v_width = std::size_t{layer.hparams.n_kv_heads} * layer.hparams.v_dim;
  if (layer.hparams.cache_of) return {.q = layer.label(slice(qkv, 0, q_width), "Qcur"), .k = {}, .v = {}};
  const std::size_t third = qkv.shape().last() / 3;
  const bool in_thirds = layer.model.arch.attention.thirds_of_qkv;
  const std::size_t first_k = in_thirds ? third : q_width;
  const std::size_t first_v = in_thirds ? 2 * third : q_width + k_width;
  return {layer.label(slice(qkv, 0, q_width), "Qcur"), layer.label(slice(qkv, first_k, k_width), "Kcur"),
          layer.label(slice(qkv, first_v, v_width), "Vcur")};
}

/// Heads with factors of their own. x: [n_tokens, heads, dim]
Value norm_each(LayerScope& layer, Value x, const NormWeights& w, std::string_view name) {
  if (!w.exists()) return x;
  const Value normed = layer.model.norm(x, {.without_weights = true});
  return layer.label(w.factors == nullptr ? normed : multiply(normed, layer.model.weight(w.factors)), name);
}

void norm_queries_and_keys(LayerScope& layer, Heads& heads) {
  const AttentionWeights& w = layer.weights.attention;
  const QkNorm kind = layer.model.arch.attention.qk_norm;
  const bool by_head = kind == QkNorm::each || kind == QkNorm::gains;
  heads.q = by_head ? norm_each(layer, heads.q, w.q_norm, "Qcur_normed")
                    : layer.norm(heads.q, w.q_norm, "Qcur_normed");
  if (!heads.k.valid()) return;
  heads.k = by_head ? norm_each(layer, heads.k, w.k_norm, "Kcur_normed")
                    : layer.norm(heads.k, w.k_norm, "Kcur_normed");
}

void norm_and_split(LayerScope& layer, Heads& heads) {
  const AttentionDescription& description = layer.model.arch.attention;
  const bool whole = description.qk_norm == QkNorm::whole;
  if (whole) norm_queries_and_keys(layer, heads);
  heads.q = split_heads(heads.q, layer.hparams.n_heads);
  if (heads.k.valid()) {
    heads.k = split_heads(heads.k, layer.hparams.n_kv_heads);
    heads.v = split_heads(heads.v, layer.hparams.n_kv_heads);
    if (description.plain_v_norm)
      heads.v = layer.label(rms_norm(heads.v, {}, layer.model.hparams.norm_eps), "Vcur_normed");
  }
  if (!whole && !description.norm_after_rope) norm_queries_and_keys(layer, heads);
}

void rotate(LayerScope& layer, Heads& heads) {
  const AttentionDescription& description = layer.model.arch.attention;
  if (description.positions != PositionKind::rotation || !layer.hparams.rotates) return;
  const Value angles = layer.model.angles(layer.hparams);
  const RopeStyle style = layer.model.hparams.rope.style;
  heads.q = layer.label(rope(heads.q, angles, style), "Qcur_rope");
  if (heads.k.valid()) heads.k = layer.label(rope(heads.k, angles, style), "Kcur_rope");
}

/// What heads attended to, times the gate where there is one: a factor for each head or each element, made
/// from the block's input.
Value gated_attended(LayerScope& layer, Value attended, Value x) {
  const AttentionWeights& w = layer.weights.attention;
  if (w.gate.matrix == nullptr) return attended;
  Value gate = layer.linear(x, w.gate, "attn_gate");
  gate = activate(layer.model.arch.attention.gate_activation, gate);
  if (gate.shape() != attended.shape()) gate = view(gate, {gate.shape().rows(), gate.shape().last(), 1});
  return layer.label(multiply(attended, gate), "attn_gated");
}

}  // namespace

Value self_attention(LayerScope& layer, Value x) {
  if (!layer.hparams.attends()) return layer.linear(x, layer.weights.attention.output, "attn_out");
  if (layer.model.arch.attention.kind == AttentionKind::latent) return latent_attention(layer, x);
  Heads heads = project(layer, x);
  norm_and_split(layer, heads);
  rotate(layer, heads);
  if (layer.model.arch.attention.norm_after_rope) norm_queries_and_keys(layer, heads);
  heads.q = layer.tempered(heads.q);
  const AttentionWeights& w = layer.weights.attention;
  const AttentionParams params = layer.attention_params(layer.model.options.caches[layer.cache]);
  const Value attended =
      layer.label(attention(heads.q, heads.k, heads.v, params, layer.model.weight(w.sinks)), "kqv_out");
  const Value output = layer.linear(
      layer.norm(gated_attended(layer, attended, x), w.sub_norm, "attn_sub_norm"), w.output, "attn_out");
  const float value_scale = layer.model.hparams.value_scale;
  return value_scale == 1 ? output : layer.label(scale(output, value_scale), "attn_out_scaled");
}

Value cross_attention(LayerScope& layer, Value x) {
  const AttentionWeights& w = layer.weights.cross;
  const GraphOptions::LayerCache& cache = layer.model.options.cross_caches[layer.index];
  const Value q = split_heads(layer.linear(x, w.q, "Qcur_cross"), layer.hparams.n_heads);
  const AttentionParams params{.cache = cache.storage,
                               .layout = cache.layout,
                               .scale = layer.model.hparams.attention_scale,
                               .causal = false};
  const Value attended = layer.label(attention(q, {}, {}, params), "kqv_cross_out");
  return layer.linear(attended, w.output, "cross_attn_out");
}

void store_encoder_output(LayerScope& layer, Value x) {
  const AttentionWeights& w = layer.weights.cross;
  const GraphOptions::LayerCache& cache = layer.model.options.cross_caches[layer.index];
  const Value k = split_heads(layer.linear(x, w.k, "Kcur_cross"), layer.hparams.n_kv_heads);
  const Value v = split_heads(layer.linear(x, w.v, "Vcur_cross"), layer.hparams.n_kv_heads);
  layer.label(store_cells(k, v, {.cache = cache.storage, .layout = cache.layout}), "cross_cells");
}

}  // namespace quipu
