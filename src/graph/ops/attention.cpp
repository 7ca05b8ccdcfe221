#include "graph/ops/attention.h"

#include <fmt/format.h>

#include "base/error.h"

namespace quipu {

const Operation kAttention{"attention"};
const Operation kStoreCells{"store_cells"};

namespace {

void require_heads(const Operation& operation, Value x, const Dim& rows) {
  require_shape(x.shape().rank() == 3 && x.shape().rows() == rows, operation,
                "the input must be [n_tokens, heads, dim]", x);
}

void require_cells(const Operation& operation, Value k, Value v, const KvStorage* cache) {
  require_heads(operation, k, k.shape().rows());
  require_heads(operation, v, k.shape().rows());
  require_shape(v.shape().dim(1) == k.shape().dim(1), operation,
                "there must be as many values as keys; keys are " + to_string(k.shape()), v);
  if (cache == nullptr) return;
  const KvShape cells = cache->shape();
  require_shape(k.shape().dim(1) == cells.n_kv_heads && k.shape().last() == cells.k_dim, operation,
                fmt::format("the cache holds {} keys of {} elements", cells.n_kv_heads, cells.k_dim), k);
  require_shape(v.shape().last() == cells.v_dim, operation,
                fmt::format("the cache holds values of {} elements", cells.v_dim), v);
}

void require_bias(const AttentionBias& bias, Value q) {
  const std::size_t n_heads = q.shape().dim(1);
  if (bias.kind == AttentionBias::Kind::alibi) {
    require_shape(bias.values.size() == n_heads, kAttention,
                  fmt::format("{} slopes for the heads of the queries", bias.values.size()), q);
  } else if (bias.kind == AttentionBias::Kind::relative) {
    const std::size_t columns = 2 * static_cast<std::size_t>(bias.radius < 0 ? 0 : bias.radius) + 1;
    require_shape(bias.radius >= 0 && bias.values.size() == n_heads * columns, kAttention,
                  fmt::format("a table of {} biases, of radius {}, for the heads of the queries",
                              bias.values.size(), bias.radius),
                  q);
  }
}

}  // namespace

Value attention(Value q, Value k, Value v, const AttentionParams& params, Value sinks) {
  require_heads(kAttention, q, q.shape().rows());
  KvShape cells;
  if (k.valid() || v.valid()) {
    QUIPU_CHECK(k.valid() && v.valid());
    require_heads(kAttention, k, q.shape().rows());
    require_cells(kAttention, k, v, params.cache);
    cells.n_kv_heads = k.shape().dim(1);
    cells.k_dim = k.shape().last();
    cells.v_dim = v.shape().last();
  } else {
    QUIPU_CHECK(params.cache != nullptr);
    cells = params.cache->shape();
  }
  require_shape(q.shape().last() == cells.k_dim, kAttention,
                fmt::format("keys and queries must be equally wide; keys have {} elements", cells.k_dim), q);
  require_shape(cells.n_kv_heads > 0 && q.shape().dim(1) % cells.n_kv_heads == 0, kAttention,
                fmt::format("query heads must be a multiple of the {} key heads", cells.n_kv_heads), q);
  if (sinks.valid()) {
    require_shape(sinks.shape() == Shape{q.shape().dim(1)}, kAttention,
                  "there must be a sink for each head; queries are " + to_string(q.shape()), sinks);
  }
  require_bias(params.bias, q);
  const Shape shape{q.shape().rows(), q.shape().dim(1) * cells.v_dim};
  return q.graph().add_node(kAttention, params, {q, k, v, sinks}, ElementType::f32, shape);
}

Value store_cells(Value k, Value v, const StoreCellsParams& params) {
  require_cells(kStoreCells, k, v, params.cache);
  return k.graph().add_node(kStoreCells, params, {k, v}, ElementType::f32, {k.shape().rows(), 1});
}

}  // namespace quipu
