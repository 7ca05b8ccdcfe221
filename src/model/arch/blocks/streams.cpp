#include "model/arch/blocks/streams.h"

#include <cmath>

#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "model/arch/blocks/attention.h"
#include "model/arch/blocks/feed_forward.h"
#include "model/arch/blocks/layer_embedding.h"

namespace quipu {
namespace {

std::size_t n_streams(const GraphScope& scope) {
  return scope.arch.streams.count;
}

Value flat(Value streams) {
  return view(streams, {streams.shape().rows(), streams.shape().row_elements()});
}

Value as_streams(Value x, std::size_t count) {
  return view(x, {x.shape().rows(), count, x.shape().row_elements() / count});
}

/// `count` copies of x side by side.
Value repeated(Value x, std::size_t count) {
  Value result = x;
  for (std::size_t i = 1; i < count; ++i) result = concat(result, x);
  return result;
}

/// x [rows, count, width] through a matrix for each, brought to the magnitude of `like` [rows, width].
Value projected(GraphScope& scope, Value x, const Weight* matrices, Value like) {
  const Value products = head_matmul(x, scope.weight(matrices));
  const float width = static_cast<float>(like.shape().last());
  return multiply(scale(rms_norm(products, {}, 0), 1.0f / std::sqrt(width)), magnitude(like));
}

/// How the streams are mixed: [rows, n_streams].
Value modalities(LayerScope& layer, Value x) {
  const StreamWeights& w = layer.weights.streams;
  const Value normed = layer.norm(x, w.router_norm, "altup_router_norm");
  const Value scaled = scale(normed, 1.0f / static_cast<float>(layer.model.hparams.n_embd));
  return soft_cap(layer.linear(scaled, w.router, "altup_router"), 1);  // soft_cap at 1 is tanh
}

Value predict(LayerScope& layer, Value streams) {
  const std::size_t count = n_streams(layer.model);
  const Value active = slice(flat(streams), 0, layer.model.hparams.n_embd);
  const Value factors =
      layer.linear(modalities(layer, active), layer.weights.streams.predict, "altup_predict");
  return layer.label(add(streams, mix(streams, view(factors, {factors.shape().rows(), count, count}))),
                     "predictions");
}

/// `made`: what the layer made of the first of the predictions. [rows, n_embd]
Value correct(LayerScope& layer, Value predictions, Value made) {
  const std::size_t count = n_streams(layer.model);
  const Value predicted = slice(flat(predictions), 0, layer.model.hparams.n_embd);
  const Value innovation = add(made, scale(predicted, -1));
  const Value factors = layer.linear(modalities(layer, made), layer.weights.streams.correct, "altup_correct");
  const Value by_stream = view(scale(factors, 1, 1), {factors.shape().rows(), count, 1});
  return layer.label(add(predictions, mix(as_streams(innovation, 1), by_stream)), "corrected");
}

Value laurel(LayerScope& layer, Value x) {
  const StreamWeights& w = layer.weights.streams;
  const Value low = layer.linear(x, w.laurel_l, "laurel_l");
  return layer.label(
      add(layer.norm(layer.linear(low, w.laurel_r, "laurel_r"), w.laurel_norm, "laurel_norm"), x),
      "laurel_out");
}

}  // namespace

Value split_streams(GraphScope& scope, Value x) {
  const std::size_t others = n_streams(scope) - 1;
  const Value added =
      projected(scope, as_streams(repeated(x, others), others), scope.weights.split_streams, x);
  return as_streams(concat(x, flat(added)), others + 1);
}

Value stream_layer(LayerScope& layer, Value streams, Value embeddings) {
  const LayerWeights& w = layer.weights;
  const std::size_t n_embd = layer.model.hparams.n_embd;
  const Value predictions = predict(layer, streams);
  const Value active = slice(flat(predictions), 0, n_embd);
  const Value normed = layer.norm(active, w.attn_norm, "attn_norm");
  const Value attended = layer.norm(self_attention(layer, normed), w.attn_post_norm, "attn_post_norm");
  const Value sum = scale(add(add(attended, active), laurel(layer, normed)), std::sqrt(0.5f));
  const Value hidden =
      feed_forward(layer, layer.norm(layer.label(sum, "attn_laurel"), w.ffn_norm, "ffn_norm"));
  const Value made = add(layer.norm(hidden, w.ffn_post_norm, "ffn_post_norm"), sum);
  const Value corrected = flat(correct(layer, predictions, made));

  const Value first = slice(corrected, 0, n_embd);
  const Value own =
      layer_embedding_block(layer, multiply(first, layer.model.weight(w.streams.correct_scale)), embeddings);
  const std::size_t others = n_streams(layer.model) - 1;
  const Value rest = add(slice(corrected, n_embd, others * n_embd), repeated(own, others));
  return layer.label(as_streams(concat(first, rest), others + 1), "l_out");
}

Value merge_streams(GraphScope& scope, Value streams) {
  const std::size_t others = n_streams(scope) - 1;
  const std::size_t n_embd = scope.hparams.n_embd;
  const Value first = slice(flat(streams), 0, n_embd);
  const Value rest = as_streams(slice(flat(streams), n_embd, others * n_embd), others);
  const Value merged = flat(projected(scope, rest, scope.weights.merge_streams, first));
  Value sum = first;
  for (std::size_t i = 0; i < others; ++i) sum = add(sum, slice(merged, i * n_embd, n_embd));
  return scope.graph.label(scale(sum, 1.0f / static_cast<float>(others + 1)), "unembd_merged");
}

}  // namespace quipu
