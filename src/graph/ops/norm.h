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

}  // namespace quipu
