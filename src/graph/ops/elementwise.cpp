#include "graph/ops/elementwise.h"

namespace quipu {

const Operation kAdd{"add"};
const Operation kMultiply{"multiply"};
const Operation kScale{"scale"};
const Operation kMix{"mix"};
const Operation kMagnitude{"magnitude"};
const Operation kSparsify{"sparsify"};
const Operation kGated{"gated"};
const Operation kActivate{"activate"};
const Operation kSoftCap{"soft_cap"};
const Operation kXielu{"xielu"};
const Operation kClamp{"clamp"};
const Operation kSoftmax{"softmax"};
const Operation kView{"view"};
const Operation kSlice{"slice"};
const Operation kConcat{"concat"};

namespace {

/// The same shape with another last dimension.
Shape with_last(const Shape& shape, std::size_t last) {
  if (shape.rank() == 2) return {shape.rows(), last};
  return {shape.rows(), shape.dim(1), last};
}

bool is_rows_or_heads(Value x) {
  return x.type() == ElementType::f32 && (x.shape().rank() == 2 || x.shape().rank() == 3);
}

}  // namespace

Value add(Value a, Value b) {
  const bool is_bias =
      a.graph().info(b).source == ValueSource::weight && b.shape() == Shape{a.shape().last()};
  require_shape(is_bias || b.shape() == a.shape(), kAdd, "cannot be added to " + to_string(a.shape()), b);
  return a.graph().add_node(kAdd, {}, {a, b}, ElementType::f32, a.shape());
}

Value multiply(Value a, Value b) {
  const bool is_weight = a.graph().info(b).source == ValueSource::weight;
  const bool fits =
      is_weight ? b.shape() == Shape{a.shape().last()} || b.shape() == Shape{1} ||
                      (a.shape().rank() == 3 && (b.shape() == Shape{a.shape().dim(1), a.shape().last()} ||
                                                 b.shape() == Shape{a.shape().dim(1), 1}))
                : b.type() == ElementType::f32 && b.shape().rows() == a.shape().rows() &&
                      (b.shape() == a.shape() ||
                       (b.shape().last() == 1 && a.shape().row_elements() % b.shape().row_elements() == 0));
  require_shape(fits, kMultiply, "cannot multiply " + to_string(a.shape()), b);
  return a.graph().add_node(kMultiply, {}, {a, b}, ElementType::f32, a.shape());
}

Value scale(Value x, float factor, float offset) {
  return x.graph().add_node(kScale, ScaleParams{factor, offset}, {x}, ElementType::f32, x.shape());
}

Value mix(Value x, Value factors) {
  require_shape(x.shape().rank() == 3, kMix, "the input must be [rows, n, width]", x);
  require_shape(factors.shape().rank() == 3 && factors.shape().rows() == x.shape().rows() &&
                    factors.shape().last() == x.shape().dim(1),
                kMix, "factors must be [rows, m, n] for " + to_string(x.shape()), factors);
  return x.graph().add_node(kMix, {}, {x, factors}, ElementType::f32,
                            {x.shape().rows(), factors.shape().dim(1), x.shape().last()});
}

Value magnitude(Value x) {
  require_shape(is_rows_or_heads(x), kMagnitude, "the input must be [rows, width] or [rows, heads, width]",
                x);
  return x.graph().add_node(kMagnitude, {}, {x}, ElementType::f32, with_last(x.shape(), 1));
}

Value sparsify(Value x, float deviations) {
  require_shape(is_rows_or_heads(x) && x.shape().last() > 1, kSparsify, "needs more than one element", x);
  return x.graph().add_node(kSparsify, SparsifyParams{deviations}, {x}, ElementType::f32, x.shape());
}

Value gated(Activation activation, Value gate, Value up, const GateLimits& limits) {
  require_shape(gate.shape() == up.shape(), kGated,
                "gate and up must be alike; the gate is " + to_string(gate.shape()), up);
  return gate.graph().add_node(kGated, GatedParams{activation, limits}, {gate, up}, ElementType::f32,
                               gate.shape());
}

Value activate(Activation activation, Value x) {
  return x.graph().add_node(kActivate, ActivationParams{activation}, {x}, ElementType::f32, x.shape());
}

Value soft_cap(Value x, float cap) {
  return x.graph().add_node(kSoftCap, SoftCapParams{cap}, {x}, ElementType::f32, x.shape());
}

Value xielu(Value x, const XieluParams& params) {
  return x.graph().add_node(kXielu, params, {x}, ElementType::f32, x.shape());
}

Value clamp(Value x, float low, float high) {
  require_shape(low <= high, kClamp, "the bounds are in the wrong order", x);
  return x.graph().add_node(kClamp, ClampParams{low, high}, {x}, ElementType::f32, x.shape());
}

Value softmax(Value x) {
  return x.graph().add_node(kSoftmax, {}, {x}, ElementType::f32, x.shape());
}

Value view(Value x, Shape shape) {
  require_shape(shape.rows() == x.shape().rows() && shape.row_elements() == x.shape().row_elements(), kView,
                "cannot be seen as " + to_string(shape), x);
  return x.graph().add_node(kView, {}, {x}, x.type(), shape);
}

Value slice(Value x, std::size_t first, std::size_t count) {
  require_shape(is_rows_or_heads(x), kSlice, "the input must be [rows, width] or [rows, heads, width]", x);
  const std::size_t width = x.shape().last();
  require_shape(count > 0 && first <= width && count <= width - first, kSlice,
                "has no elements " + std::to_string(first) + " to " + std::to_string(first + count), x);
  return x.graph().add_node(kSlice, SliceParams{first}, {x}, ElementType::f32, with_last(x.shape(), count));
}

Value concat(Value a, Value b) {
  require_shape(is_rows_or_heads(a), kConcat, "the input must be [rows, width] or [rows, heads, width]", a);
  const bool fits = is_rows_or_heads(b) && b.shape().rank() == a.shape().rank() &&
                    b.shape().rows() == a.shape().rows() &&
                    (a.shape().rank() == 2 || b.shape().dim(1) == 1 || b.shape().dim(1) == a.shape().dim(1));
  require_shape(fits, kConcat, "cannot stand beside " + to_string(a.shape()), b);
  return a.graph().add_node(kConcat, {}, {a, b}, ElementType::f32,
                            with_last(a.shape(), a.shape().last() + b.shape().last()));
}

}  // namespace quipu
