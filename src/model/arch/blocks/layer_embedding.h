// Embeddings of a token for each layer, beside the one that flows through all of them. Gemma Team 2025, Gemma
// 3n.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// From the token and from what flows into the first layer, x [n_tokens, n_embd]; given embeddings count as
/// token 0. -> [n_tokens, n_layers * width], or nothing where the model has none.
Value layer_embeddings(GraphScope& scope, Value x);

/// What the layer's own embedding adds. x: [rows, n_embd]; `all` from layer_embeddings(), of the same rows.
Value layer_embedding_block(LayerScope& layer, Value x, Value all);

}  // namespace quipu
