// Attention blocks: from the normed input of a layer to what is added to its input.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// By the architecture's kind of attention. x: [n_tokens, n_embd]; same shape.
Value self_attention(LayerScope& layer, Value x);

/// To the encoder's output, as store_encoder_output() has left it.
Value cross_attention(LayerScope& layer, Value x);
/// Keys and values of an encoder's output x [n_tokens, n_embd], for a decoder layer.
void store_encoder_output(LayerScope& layer, Value x);

/// The latent kind of self_attention().
Value latent_attention(LayerScope& layer, Value x);

}  // namespace quipu
