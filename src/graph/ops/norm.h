// Normalizations over the last dimension.
#pragma once

#include "graph/graph.h"

namespace quipu {

struct RmsNormParams {
  float eps;
};

/// x / sqrt(mean(x^2) + eps) * weight, over the last dimension. `weight`: [last], or absent. Same shape as x.
/// Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
extern const Operation kRmsNorm;
Value rms_norm(Value x, Value weight, float eps);

struct LayerNormParams {
  float eps;
};

/// (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, over the last dimension. `weight` and `bias`:
/// [last]; either may be absent, the bias only with a weight at hand. Same shape as x. Ba et al. 2016, "Layer
/// Normalization".
extern const Operation kLayerNorm;
Value layer_norm(Value x, Value weight, Value bias, float eps);

}  // namespace quipu
