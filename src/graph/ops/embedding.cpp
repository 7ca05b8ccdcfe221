#include "graph/ops/embedding.h"

namespace quipu {

const Operation kEmbed{"embed"};
const Operation kSelectRows{"select_rows"};

Value embed(Value table, Value tokens, Value embeddings) {
  require_shape(table.shape().rank() == 2, kEmbed, "the table must be [n_vocab, width]", table);
  require_shape(tokens.type() == ElementType::i32 && tokens.shape().rank() == 1, kEmbed,
                "tokens must be a list of i32", tokens);
  const Shape shape{tokens.shape().rows(), table.shape().last()};
  require_shape(embeddings.shape() == shape, kEmbed, "embeddings must be as wide as the table", embeddings);
  return table.graph().add_node(kEmbed, {}, {table, tokens, embeddings}, ElementType::f32, shape);
}

Value select_rows(Value x, Value rows) {
  require_shape(rows.type() == ElementType::i32 && rows.shape().rank() == 1, kSelectRows,
                "rows must be a list of i32", rows);
  require_shape(x.shape().rank() == 2, kSelectRows, "needs rows of one dimension", x);
  return x.graph().add_node(kSelectRows, {}, {x, rows}, ElementType::f32,
                            {rows.shape().rows(), x.shape().last()});
}

}  // namespace quipu
