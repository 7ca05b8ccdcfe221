// Feed-forward blocks: from the normed input to what is added to the block's input.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// Dense, or a mixture of experts, as the layer has it. x: [rows, n_embd]; same shape. `logits`: the
/// router's, where they are not of x.
Value feed_forward(LayerScope& layer, Value x, Value logits = {});

/// down(activation(gate(x)) * up(x)), or down(activation(up(x))) where there is no gate, or
/// activation(x) where there is nothing.
Value dense_feed_forward(LayerScope& layer, Value x, const FeedForwardWeights& weights);

/// What the router says of each expert: [rows, n_experts].
Value router_logits(LayerScope& layer, Value x);

/// A router's choice of experts, and those that see every token. The router sees x, unless its `logits` are
/// given.
Value expert_feed_forward(LayerScope& layer, Value x, Value logits = {});

}  // namespace quipu
