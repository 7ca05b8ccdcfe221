// Several copies of the stream of embeddings, of which only the first goes through a layer: the others are
// predicted, and then corrected by what the layer made of the first. Baykal et al. 2023, arXiv:2301.13310
// (AltUp), with a small detour around attention (LAuReL: Menghani et al. 2024, arXiv:2411.07501), as Gemma 3n
// has them.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// x: [n_tokens, n_embd] -> [n_tokens, n_streams, n_embd], all of x's magnitude.
Value split_streams(GraphScope& scope, Value x);

/// One layer. `embeddings` from layer_embeddings(). streams: [n_tokens, n_streams, n_embd]; same shape.
Value stream_layer(LayerScope& layer, Value streams, Value embeddings);

/// The mean of the streams. -> [n_tokens, n_embd]
Value merge_streams(GraphScope& scope, Value streams);

}  // namespace quipu
