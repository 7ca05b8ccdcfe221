#include "graph/ops/norm.h"

namespace quipu {

const Operation kRmsNorm{"rms_norm"};

Value rms_norm(Value x, Value weight, float eps) {
  require_shape(x.type() == ElementType::f32, kRmsNorm, "needs float32", x);
  if (weight.valid()) {
    require_shape(weight.shape() == Shape{x.shape().last()}, kRmsNorm,
                  "the weight must be as long as the last dimension", weight);
  }
  return x.graph().add_node(kRmsNorm, RmsNormParams{eps}, {x, weight}, ElementType::f32, x.shape());
}

}  // namespace quipu
