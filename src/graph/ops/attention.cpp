#include "graph/ops/attention.h"

namespace quipu {

const Operation kAttention{"attention"};

Value attention(Value q, Value k, Value v, const AttentionParams& params) {
  for (const Value& x : {q, k, v}) {
    require_shape(x.shape().rank() == 3 && x.shape().rows() == q.shape().rows(), kAttention,
                  "the input must be [n_tokens, heads, dim]", x);
  }
  require_shape(k.shape().last() == q.shape().last(), kAttention,
                "keys and queries must be equally wide; queries are " + to_string(q.shape()), k);
  require_shape(v.shape().dim(1) == k.shape().dim(1), kAttention,
                "there must be as many values as keys; keys are " + to_string(k.shape()), v);
  require_shape(q.shape().dim(1) % k.shape().dim(1) == 0, kAttention,
                "query heads must be a multiple of key heads; keys are " + to_string(k.shape()), q);
  const Shape shape{q.shape().rows(), q.shape().dim(1) * v.shape().last()};
  return q.graph().add_node(kAttention, params, {q, k, v}, ElementType::f32, shape);
}

}  // namespace quipu
