#include "graph/ops/elementwise.h"

namespace quipu {

const Operation kAdd{"add"};
const Operation kScale{"scale"};
const Operation kGated{"gated"};
const Operation kActivate{"activate"};
const Operation kSoftCap{"soft_cap"};
const Operation kView{"view"};

Value add(Value a, Value b) {
  const bool is_bias =
      a.graph().info(b).source == ValueSource::weight && b.shape() == Shape{a.shape().last()};
  require_shape(is_bias || b.shape() == a.shape(), kAdd, "cannot be added to " + to_string(a.shape()), b);
  return a.graph().add_node(kAdd, {}, {a, b}, ElementType::f32, a.shape());
}

Value scale(Value x, float factor) {
  return x.graph().add_node(kScale, ScaleParams{factor}, {x}, ElementType::f32, x.shape());
}

Value gated(Activation activation, Value gate, Value up) {
  require_shape(gate.shape() == up.shape(), kGated,
                "gate and up must be alike; the gate is " + to_string(gate.shape()), up);
  return gate.graph().add_node(kGated, ActivationParams{activation}, {gate, up}, ElementType::f32,
                               gate.shape());
}

Value activate(Activation activation, Value x) {
  return x.graph().add_node(kActivate, ActivationParams{activation}, {x}, ElementType::f32, x.shape());
}

Value soft_cap(Value x, float cap) {
  return x.graph().add_node(kSoftCap, SoftCapParams{cap}, {x}, ElementType::f32, x.shape());
}

Value view(Value x, Shape shape) {
  require_shape(shape.rows() == x.shape().rows() && shape.row_elements() == x.shape().row_elements(), kView,
                "cannot be seen as " + to_string(shape), x);
  return x.graph().add_node(kView, {}, {x}, x.type(), shape);
}

}  // namespace quipu
