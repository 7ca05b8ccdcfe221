// The blocks of a decoder, built from an architecture's description. The order of the code is the order of
// the computation.
#pragma once

#include "graph/graph.h"
#include "model/model.h"
#include "model/weights.h"

namespace quipu {

/// The forward pass from tokens (or embeddings) to the logits of the output rows.
ModelGraph build_decoder(const Hparams& hparams, const ModelWeights& weights,
                         std::span<const float> rope_factors, const GraphOptions& options);

}  // namespace quipu
