// Latent attention: keys and values come from one compressed vector a token, beside which a small rotated key
// is shared by all heads. In the absorbed form the cache holds the compressed vector itself: it is the value,
// and together with the rotated key it is the key of a single key head; each query head is taken through its
// part of the matrix that would have made its keys, and what it attended to through that of its values.
// DeepSeek-AI 2024, arXiv:2405.04434
#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "graph/ops/rope.h"
#include "model/arch/blocks/attention.h"
#include "model/rope_frequencies.h"

namespace quipu {
namespace {

/// The parts of queries, and of what keys and values are made of.
struct LatentParts {
  Value q_plain;     ///< [n_tokens, n_heads, k_dim - n_rot]; absent where all of a head is rotated
  Value q_rotated;   ///< [n_tokens, n_heads, n_rot]
  Value compressed;  ///< [n_tokens, kv_rank]
  Value k_rotated;   ///< [n_tokens, 1, n_rot]
};

Value queries(LayerScope& layer, Value x) {
  const AttentionWeights& w = layer.weights.attention;
  const LatentHparams& latent = layer.model.hparams.latent;
  Value q;
  if (latent.q_rank == 0) {
    q = layer.linear(x, w.q, "q");
  } else {
    const Value compressed = layer.norm(layer.linear(x, w.q_a, "q_a"), w.q_a_norm, "q_a_normed");
    q = layer.linear(compressed, w.q_b, "q");
  }
  return view(q, {q.shape().rows(), layer.hparams.n_heads, latent.k_dim});
}

LatentParts split(LayerScope& layer, Value x) {
  const AttentionWeights& w = layer.weights.attention;
  const LatentHparams& latent = layer.model.hparams.latent;
  const std::size_t n_rot = layer.model.hparams.rope.n_rot;
  const std::size_t n_plain = latent.k_dim - n_rot;
  const Value angles = layer.model.angles(layer.hparams);
  const RopeStyle style = layer.model.hparams.rope.style;

  const Value q = queries(layer, x);
  const Value kv = layer.linear(x, w.kv_a, "kv_cmpr_pe");
  const Value k_rotated = view(slice(kv, latent.kv_rank, n_rot), {kv.shape().rows(), 1, n_rot});
  return {.q_plain = n_plain == 0 ? Value() : layer.label(slice(q, 0, n_plain), "q_nope"),
          .q_rotated = layer.label(rope(slice(q, n_plain, n_rot), angles, style), "q_pe"),
          .compressed = layer.norm(slice(kv, 0, latent.kv_rank), w.kv_a_norm, "kv_cmpr"),
          .k_rotated = layer.label(rope(k_rotated, angles, style), "k_pe")};
}

Value attend_absorbed(LayerScope& layer, const LatentParts& parts, const AttentionParams& params) {
  const AttentionWeights& w = layer.weights.attention;
  const Value compressed =
      view(parts.compressed, {parts.compressed.shape().rows(), 1, layer.model.hparams.latent.kv_rank});
  const Value q_absorbed =
      layer.label(head_matmul(parts.q_plain, layer.model.weight(w.k_b)), "q_nope_absorbed");
  const Value q = layer.label(layer.tempered(concat(q_absorbed, parts.q_rotated)), "Qcur");
  const Value k = layer.label(concat(compressed, parts.k_rotated), "Kcur");
  const Value attended = attention(q, k, compressed, params);
  const Value by_head =
      view(attended, {attended.shape().rows(), layer.hparams.n_heads, layer.model.hparams.latent.kv_rank});
  const Value values = head_matmul(by_head, layer.model.weight(w.v_b));
  return view(values, {values.shape().rows(), values.shape().row_elements()});
}

Value attend_expanded(LayerScope& layer, const LatentParts& parts, const AttentionParams& params) {
  const LatentHparams& latent = layer.model.hparams.latent;
  const std::size_t n_heads = layer.hparams.n_heads;
  const std::size_t n_plain = latent.k_dim - layer.model.hparams.rope.n_rot;
  const Value expanded = layer.linear(parts.compressed, layer.weights.attention.kv_b, "kv");
  const Value kv = view(expanded, {expanded.shape().rows(), n_heads, n_plain + latent.v_dim});
  const Value v = layer.label(slice(kv, n_plain, latent.v_dim), "Vcur");
  const Value q = layer.tempered(n_plain == 0 ? parts.q_rotated : concat(parts.q_plain, parts.q_rotated));
  // Beside any part of the heads, the rotated key is given to each of them.
  const Value k = n_plain == 0
                      ? slice(concat(v, parts.k_rotated), latent.v_dim, layer.model.hparams.rope.n_rot)
                      : concat(slice(kv, 0, n_plain), parts.k_rotated);
  return attention(layer.label(q, "Qcur"), layer.label(k, "Kcur"), v, params);
}

}  // namespace

Value latent_attention(LayerScope& layer, Value x) {
  const GraphScope& model = layer.model;
  const LatentParts parts = split(layer, x);
  AttentionParams params = layer.attention_params(model.options.caches[layer.cache]);
  if (model.arch.attention.yarn_log_multiplier != YarnLogMultiplier::none)
    params.scale *= yarn_score_scale(model.hparams.rope, model.options.rope);
  const Value attended = model.hparams.latent.absorbed ? attend_absorbed(layer, parts, params)
                                                       : attend_expanded(layer, parts, params);
  return layer.linear(layer.label(attended, "kqv_out"), layer.weights.attention.output, "attn_out");
}

}  // namespace quipu
