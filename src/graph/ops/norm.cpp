#include "graph/ops/norm.h"

namespace quipu {

const Operation kRmsNorm{"rms_norm"};
const Operation kLayerNorm{"layer_norm"};

namespace {

void require_vector(const Operation& operation, Value x, Value vector) {
  require_shape(x.type() == ElementType::f32, operation, "needs float32", x);
  if (!vector.valid()) return;
  require_shape(vector.shape() == Shape{x.shape().last()}, operation,
                "must be as long as the last dimension of " + to_string(x.shape()), vector);
}

}  // namespace

Value rms_norm(Value x, Value weight, float eps) {
  require_vector(kRmsNorm, x, weight);
  return x.graph().add_node(kRmsNorm, RmsNormParams{eps}, {x, weight}, ElementType::f32, x.shape());
}

Value layer_norm(Value x, Value weight, Value bias, float eps) {
  require_vector(kLayerNorm, x, weight);
  require_vector(kLayerNorm, x, bias);
  require_shape(weight.valid() || !bias.valid(), kLayerNorm, "a bias needs a weight", x);
  return x.graph().add_node(kLayerNorm, LayerNormParams{eps}, {x, weight, bias}, ElementType::f32, x.shape());
}

}  // namespace quipu
