// What comes before the first layer and after the last one.
#pragma once

#include "model/arch/blocks/scope.h"

namespace quipu {

/// Token embeddings (or those given), with what the architecture adds to them. -> [n_tokens, n_embd]
Value token_embedding(GraphScope& scope);

/// The scores of the vocabulary. x: [n_outputs, n_embd], normed -> [n_outputs, n_vocab]
Value logits_head(GraphScope& scope, Value x);

/// What a caller gets as embeddings. x: [n_outputs, n_embd], normed -> [n_outputs, n_embd_out]
Value embedding_head(GraphScope& scope, Value x);

}  // namespace quipu
