// Feed-forward blocks: from the normed input to what is added to the block's input.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// Dense, or a mixture of experts, as the layer has it. x: [rows, n_embd]; same shape.
Value feed_forward(LayerScope& layer, Value x);

/// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where there is no gate.
Value dense_feed_forward(LayerScope& layer, Value x, const FeedForwardWeights& weights);

/// A router's choice of experts, and those that see every token.
Value expert_feed_forward(LayerScope& layer, Value x);

}  // namespace quipu
