#include "graph/ops/rope.h"

#include <utility>

namespace quipu {

const Operation kRopeAngles{"rope_angles"};
const Operation kPositionTemperature{"position_temperature"};
const Operation kRope{"rope"};

Value rope_angles(Value positions, RopeAnglesParams params) {
  require_shape(positions.type() == ElementType::i32 && positions.shape().rank() == 1, kRopeAngles,
                "positions must be a list of i32", positions);
  const Shape shape{positions.shape().rows(), params.frequencies.size(), 2};
  return positions.graph().add_node(kRopeAngles, std::move(params), {positions}, ElementType::f32, shape);
}

Value position_temperature(Value positions, const PositionTemperatureParams& params) {
  require_shape(positions.type() == ElementType::i32 && positions.shape().rank() == 1 && params.length > 0,
                kPositionTemperature, "positions must be a list of i32", positions);
  return positions.graph().add_node(kPositionTemperature, params, {positions}, ElementType::f32,
                                    {positions.shape().rows(), 1});
}

Value rope(Value x, Value angles, RopeStyle style) {
  require_shape(x.shape().rank() == 3, kRope, "the input must be [rows, heads, head_dim]", x);
  require_shape(
      angles.shape().rank() == 3 && angles.shape().rows() == x.shape().rows() &&
          2 * angles.shape().dim(1) <= x.shape().last(),
      kRope, "the angles must be [rows, pairs, 2] with no more pairs than " + to_string(x.shape()) + " has",
      angles);
  return x.graph().add_node(kRope, RopeParams{style}, {x, angles}, ElementType::f32, x.shape());
}

}  // namespace quipu
