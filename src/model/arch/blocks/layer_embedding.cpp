#include "model/arch/blocks/layer_embedding.h"

#include <cmath>

#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"

namespace quipu {

Value layer_embeddings(GraphScope& scope, Value x) {
  const LayerEmbeddingWeights& w = scope.weights.layer_embedding;
  const std::size_t width = scope.hparams.layer_embedding_width;
  if (width == 0) return {};
  const std::size_t n_layers = scope.hparams.n_layers();
  const Value tokens =
      scale(look_up(scope.weight(w.tokens), scope.tokens), std::sqrt(static_cast<float>(width)));
  const float projection_scale = 1.0f / std::sqrt(static_cast<float>(scope.hparams.n_embd));
  const Value projected = scale(scope.linear(x, w.projection), projection_scale);
  const Value normed = scope.norm(view(projected, {projected.shape().rows(), n_layers, width}), w.norm);
  const Value sum = add(view(normed, projected.shape()), tokens);
  return scope.graph.label(scale(sum, std::sqrt(0.5f)), "inp_per_layer");
}

Value layer_embedding_block(LayerScope& layer, Value x, Value all) {
  const LayerEmbeddingBlockWeights& w = layer.weights.layer_embedding;
  const std::size_t width = layer.model.hparams.layer_embedding_width;
  const Value own = slice(all, layer.index * width, width);
  const Value gate = layer.linear(x, w.gate, "per_layer_gate");
  const Value gated_own = gated(layer.model.hparams.activation, gate, own);
  return layer.norm(layer.linear(gated_own, w.projection, "per_layer_proj"), w.post_norm,
                    "per_layer_embd_out");
}

}  // namespace quipu
