// Forward passes, built from an architecture's description. The order of the code is the order of the
// computation; what each block does is in blocks/.
#pragma once

#include "graph/graph.h"
#include "graph/ops/rope.h"
#include "model/model.h"
#include "model/weights.h"

namespace quipu {

/// From tokens (or embeddings) to logits and embeddings of the output rows: a decoder, or an encoder that is
/// all of its model.
ModelGraph build_forward(const Hparams& hparams, const ModelWeights& weights, const GraphOptions& options);

/// The encoder of an encoder-decoder model: every token's output becomes the keys and values that the
/// decoder's layers attend to.
ModelGraph build_encoder(const Hparams& hparams, const ModelWeights& weights, const GraphOptions& options);

/// The layers between pooled embeddings and scores; see RankGraph.
std::unique_ptr<Graph> build_rank_head(const Hparams& hparams, const ModelWeights& weights);

/// The rotation of a layer, with a context's parameters. A windowed layer's is the model's own.
RopeAnglesParams layer_rope(const Hparams& hparams, const ModelWeights& weights, const LayerHparams& layer,
                            const RopeOverrides& overrides);

}  // namespace quipu
