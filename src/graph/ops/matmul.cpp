#include "graph/ops/matmul.h"

namespace quipu {

const Operation kMatmul{"matmul"};
const Operation kHeadMatmul{"head_matmul"};

Value matmul(Value x, Value weight) {
  require_shape(weight.shape().rank() == 2, kMatmul, "the weight must be [n_rows, n_cols]", weight);
  require_shape(x.type() == ElementType::f32 && x.shape().rank() == 2, kMatmul,
                "the input must be float32 [rows, n_cols]", x);
  require_shape(
      x.shape().last() == weight.shape().last(), kMatmul,
      "the input must be as wide as the weight '" + weight.name() + "' " + to_string(weight.shape()), x);
  return x.graph().add_node(kMatmul, {}, {x, weight}, ElementType::f32,
                            {x.shape().rows(), weight.shape().dim(0)});
}

Value head_matmul(Value x, Value weight) {
  require_shape(weight.shape().rank() == 3, kHeadMatmul, "the weight must be [heads, n_rows, n_cols]",
                weight);
  require_shape(x.type() == ElementType::f32 && x.shape().rank() == 3 &&
                    x.shape().dim(1) == weight.shape().dim(0) && x.shape().last() == weight.shape().last(),
                kHeadMatmul,
                "the input must have the heads and columns of the weight '" + weight.name() + "' " +
                    to_string(weight.shape()),
                x);
  return x.graph().add_node(kHeadMatmul, {}, {x, weight}, ElementType::f32,
                            {x.shape().rows(), weight.shape().dim(0), weight.shape().dim(1)});
}

}  // namespace quipu
