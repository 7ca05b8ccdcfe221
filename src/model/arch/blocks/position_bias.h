// Biases that tell attention of positions: ALiBi's slopes and T5's learned ones.
#pragma once

#include <vector>

#include "graph/ops/attention.h"
#include "model/arch/blocks/scope.h"

namespace quipu {

/// The layer's, by its architecture's kind of positions; none for rotation.
AttentionBias position_bias(const Hparams& hparams, const LayerScope& layer);

/// Slope of each head: powers of 2^(-max_bias / n), n the largest power of two that is not above n_heads;
/// heads beyond n take the odd powers of that number's square root. Press et al. 2021, arXiv:2108.12409
std::vector<float> alibi_slopes(std::size_t n_heads, float max_bias);

/// Bucket of a key at `distance` = its position minus the query's: one each for small distances, then
/// logarithmically wider ones up to 128. Where the layer sees only what came before, keys that come after are
/// at distance 0. Raffel et al. 2019, arXiv:1910.10683
std::size_t relative_bucket(std::int32_t distance, std::size_t n_buckets, bool both_ways);

}  // namespace quipu
