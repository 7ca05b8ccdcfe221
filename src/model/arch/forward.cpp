#include "model/arch/forward.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "model/arch/architecture.h"
#include "model/arch/blocks/attention.h"
#include "model/arch/blocks/ends.h"
#include "model/arch/blocks/feed_forward.h"
#include "model/arch/blocks/layer_embedding.h"
#include "model/arch/blocks/streams.h"
#include "model/rope_frequencies.h"

namespace quipu {
namespace {

/// x and what a block adds to it, normed where the architecture norms that.
Value add_normed(LayerScope& layer, Value x, Value added, const NormWeights& post_norm,
                 const NormWeights& sum_norm, std::string_view block) {
  const std::string name(block);
  const Value sum = add(x, layer.scaled_residual(layer.norm(added, post_norm, name + "_post_norm")));
  return layer.norm(sum, sum_norm, name + "_out_norm");
}

/// The feed-forward block of a layer that has no attention.
Value build_feed_forward_alone(LayerScope& layer, Value x) {
  const Value hidden = feed_forward(layer, layer.norm(x, layer.weights.ffn_norm, "ffn_norm"));
  return layer.label(add(x, hidden), "l_out");
}

/// Attention, cross-attention where there is any, feed-forward. `rows`, if valid: the rows that matter after
/// this layer.
Value build_layer(LayerScope& layer, Value x, Value rows, Value embeddings) {
  const LayerWeights& w = layer.weights;
  if (layer.hparams.n_heads == 0) {
    if (rows.valid()) x = select_rows(x, rows);
    return layer.hparams.n_ff == 0 ? x : build_feed_forward_alone(layer, x);
  }
  const ExpertDescription& experts = layer.model.arch.experts;
  const bool is_parallel = layer.is_parallel();
  Value logits;
  if (experts.route_layer_input && w.experts.router.matrix != nullptr) logits = router_logits(layer, x);
  Value normed = layer.norm(x, w.attn_norm, "attn_norm");
  Value attended = self_attention(
      layer, w.attn_own_norm.exists() ? layer.norm(x, w.attn_own_norm, "attn_norm_2") : normed);
  if (w.cross.q.matrix != nullptr) {
    x = layer.label(add(x, attended), "cross_inp");
    attended = cross_attention(layer, layer.norm(x, w.cross_norm, "attn_norm_cross"));
  }
  if (rows.valid()) {
    x = select_rows(x, rows);
    attended = select_rows(attended, rows);
    if (is_parallel) normed = select_rows(normed, rows);
    if (logits.valid()) logits = select_rows(logits, rows);
    if (embeddings.valid()) embeddings = select_rows(embeddings, rows);
  }
  Value sum = add_normed(layer, x, attended, w.attn_post_norm, w.attn_sum_norm, "attn");
  if (w.attn_second_sum_norm.exists()) sum = layer.norm(add(sum, x), w.attn_second_sum_norm, "attn_norm_2");
  layer.label(sum, "ffn_inp");
  const bool shares_norm = is_parallel && !w.ffn_norm.exists();
  const Value hidden = feed_forward(
      layer, shares_norm ? normed : layer.norm(is_parallel ? x : sum, w.ffn_norm, "ffn_norm"), logits);
  if (experts.beside_dense && w.experts.router.matrix != nullptr) {
    const Value chosen = expert_feed_forward(layer, layer.norm(x, w.experts.norm, "ffn_norm_exps"));
    sum = add(sum, chosen);
  }
  Value out = add_normed(layer, sum, hidden, w.ffn_post_norm, w.ffn_sum_norm, "ffn");
  if (embeddings.valid()) out = add(out, layer_embedding_block(layer, out, embeddings));
  if (w.scale != nullptr) out = scale(out, read_numbers(*w.scale).front());
  if (w.output_scale != nullptr) {
    const Value embedded = layer.model.embedded;
    const Value skipped = rows.valid() ? select_rows(embedded, rows) : embedded;
    out = add(out, layer.label(multiply(skipped, layer.model.weight(w.output_scale)), "embd_skip"));
  }
  return layer.label(out, "l_out");
}

Value build_layers(GraphScope& scope, const std::vector<LayerHparams>& layers,
                   const std::vector<LayerWeights>& weights, bool is_encoder, bool select) {
  Value x = scope.embedded = token_embedding(scope);
  const Value embeddings = layer_embeddings(scope, x);
  const bool has_streams = scope.arch.streams.count > 1;
  if (has_streams) x = split_streams(scope, x);
  std::vector<std::size_t> cache_of_layer(layers.size());
  const std::size_t n_runs = layers.size() * scope.hparams.n_loops;
  std::size_t n_caches = 0;
  for (std::size_t run = 0; run < n_runs; ++run) {
    const std::size_t i = run % layers.size();
    if (i == 0 && run != 0 && scope.hparams.norm_between_loops)
      x = scope.graph.label(scope.norm(x, scope.weights.output_norm), fmt::format("loop_norm-{}", run));
    LayerScope layer(scope, layers[i], weights[i], run);
    layer.is_encoder = is_encoder;
    layer.cache = cache_of_layer[i] = layers[i].cache_of ? cache_of_layer[*layers[i].cache_of] : n_caches;
    if (layers[i].keeps_cells()) ++n_caches;
    const Value rows = select && run + 1 == n_runs ? scope.output_rows : Value();
    x = has_streams ? stream_layer(layer, x, embeddings) : build_layer(layer, x, rows, embeddings);
  }
  if (has_streams) x = select_rows(merge_streams(scope, x), scope.output_rows);
  QUIPU_CHECK(scope.options.caches.size() == n_caches);
  return x;
}

/// Marks what the options ask for as outputs. x: [n_outputs, n_embd], normed.
void add_outputs(GraphScope& scope, Value x, ModelGraph& result) {
  std::size_t n = 0;
  if (scope.options.logits && scope.arch.head.logits) {
    scope.graph.output(logits_head(scope, x));
    result.logits_output = n++;
  }
  if (scope.options.embeddings) {
    scope.graph.output(embedding_head(scope, x));
    result.embeddings_output = n++;
  }
}

}  // namespace

ModelGraph build_forward(const Hparams& hparams, const ModelWeights& weights, const GraphOptions& options) {
  ModelGraph result{.graph = std::make_unique<Graph>()};
  GraphScope scope(hparams, weights, options, *result.graph);
  const bool is_encoder = scope.arch.structure == Structure::encoder;
  QUIPU_CHECK(scope.arch.structure != Structure::encoder_decoder ||
              options.cross_caches.size() == hparams.n_layers());
  Value x = build_layers(scope, hparams.layers, weights.layers, is_encoder, true);
  if (weights.output_norm.exists()) x = scope.graph.label(scope.norm(x, weights.output_norm), "result_norm");
  add_outputs(scope, x, result);
  return result;
}

ModelGraph build_encoder(const Hparams& hparams, const ModelWeights& weights,
                         const GraphOptions& given_options) {
  ModelGraph result{.graph = std::make_unique<Graph>()};
  GraphOptions options = given_options;
  options.causal = false;
  GraphScope scope(hparams, weights, options, *result.graph);
  QUIPU_CHECK(options.cross_caches.size() == hparams.n_layers());
  const Value x = build_layers(scope, hparams.encoder_layers, weights.encoder_layers, true, false);
  const Value encoded = scope.graph.label(scope.norm(x, weights.encoder_norm), "result_norm");
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    LayerScope layer(scope, hparams.layers[i], weights.layers[i], i);
    store_encoder_output(layer, encoded);
  }
  if (options.embeddings) {
    scope.graph.output(select_rows(encoded, scope.output_rows));
    result.embeddings_output = 0;
  }
  return result;
}

std::unique_ptr<Graph> build_rank_head(const Hparams& hparams, const ModelWeights& weights) {
  const RankDescription& rank = hparams.architecture->head.rank;
  auto graph = std::make_unique<Graph>();
  const auto weight = [&](const Weight* w) { return w == nullptr ? Value() : graph->weight(*w); };
  const auto linear = [&](Value x, const LinearWeights& w) {
    const Value product = matmul(x, weight(w.matrix));
    return w.bias == nullptr ? product : add(product, weight(w.bias));
  };
  Value x = graph->input("pooled", ElementType::f32, {Dim::outputs(), hparams.n_embd});
  if (weights.cls.matrix != nullptr) {
    x = linear(x, weights.cls);
    x = rank.gelu ? activate(Activation::gelu_tanh, x) : soft_cap(x, 1);  // soft_cap at 1 is tanh
    if (weights.cls_norm.factors != nullptr)
      x = layer_norm(x, weight(weights.cls_norm.factors), {}, hparams.norm_eps);
  }
  if (weights.cls_output.matrix != nullptr) x = linear(x, weights.cls_output);
  if (rank.softmax) x = softmax(x);
  graph->output(graph->label(x, "result_embd_pooled"));
  return graph;
}

RopeAnglesParams layer_rope(const Hparams& hparams, const ModelWeights& weights, const LayerHparams& layer,
                            const RopeOverrides& overrides) {
  if (layer.local_rope && !hparams.architecture->attention.windows.local_rope_scaled)
    return rope_frequencies(hparams.local_rope, {}, {});
  const RopeHparams& rope = layer.local_rope ? hparams.local_rope : hparams.rope;
  RopeOverrides own = overrides;
  if (layer.local_rope) {
    own.base.reset();
    own.frequency_scale.reset();
  }
  const Weight* factors = weights.rope_factors;
  if (factors == nullptr)
    factors = takes_long_factors(rope, own) ? weights.rope_factors_long : weights.rope_factors_short;
  return rope_frequencies(rope, own, factors == nullptr ? std::vector<float>() : read_numbers(*factors));
}

}  // namespace quipu
