#include "model/arch/blocks/feed_forward.h"

#include "graph/ops/elementwise.h"

namespace quipu {

Value feed_forward(LayerScope& layer, Value x, Value logits) {
  if (layer.weights.experts.router.matrix != nullptr && !layer.model.arch.experts.beside_dense)
    return expert_feed_forward(layer, x, logits);
  return layer.label(dense_feed_forward(layer, x, layer.weights.feed_forward), "ffn_out");
}

namespace {

Value ungated(LayerScope& layer, Value up) {
  const FeedForwardDescription& description = layer.model.arch.feed_forward;
  return description.xielu ? xielu(up, layer.hparams.xielu) : activate(description.ungated_activation, up);
}

}  // namespace

Value dense_feed_forward(LayerScope& layer, Value x, const FeedForwardWeights& weights) {
  const Activation activation = layer.model.hparams.activation;
  if (weights.down.matrix == nullptr) return activate(activation, x);
  const std::size_t width = weights.down.matrix->shape.last();
  Value gate;
  if (weights.gate.matrix != nullptr) gate = layer.linear(x, weights.gate, "ffn_gate");
  Value up = layer.linear(x, weights.up, "ffn_up");
  if (!gate.valid() && up.shape().last() == 2 * width) {
    gate = slice(up, 0, width);
    up = slice(up, width, width);
  }
  const StreamDescription& streams = layer.model.arch.streams;
  if (layer.index < streams.n_sparse_layers) gate = sparsify(gate, streams.deviations);
  const Value hidden = gate.valid() ? gated(activation, gate, up, layer.hparams.limits) : ungated(layer, up);
  return layer.model.linear(layer.norm(hidden, weights.sub_norm, "ffn_sub_norm"), weights.down);
}

}  // namespace quipu
