#include "graph/ops/embedding.h"

namespace quipu {

const Operation kEmbed{"embed"};
const Operation kLookUp{"look_up"};
const Operation kAddRow{"add_row"};
const Operation kSelectRows{"select_rows"};

Value embed(Value table, Value tokens, Value embeddings, float token_scale) {
  require_shape(table.shape().rank() == 2, kEmbed, "the table must be [n_vocab, width]", table);
  require_shape(tokens.type() == ElementType::i32 && tokens.shape().rank() == 1, kEmbed,
                "tokens must be a list of i32", tokens);
  const Shape shape{tokens.shape().rows(), table.shape().last()};
  require_shape(embeddings.shape() == shape, kEmbed, "embeddings must be as wide as the table", embeddings);
  return table.graph().add_node(kEmbed, EmbedParams{token_scale}, {table, tokens, embeddings},
                                ElementType::f32, shape);
}

Value look_up(Value table, Value rows) {
  require_shape(table.shape().rank() == 2, kLookUp, "the table must be [n, width]", table);
  require_shape(rows.type() == ElementType::i32 && rows.shape().rank() == 1, kLookUp,
                "rows must be a list of i32", rows);
  return table.graph().add_node(kLookUp, {}, {table, rows}, ElementType::f32,
                                {rows.shape().rows(), table.shape().last()});
}

Value add_row(Value x, Value table, std::size_t row) {
  require_shape(x.shape().rank() == 2, kAddRow, "the input must be [rows, width]", x);
  require_shape(
      table.shape().rank() == 2 && row < table.shape().dim(0) && table.shape().last() == x.shape().last(),
      kAddRow, "has no row " + std::to_string(row) + " for " + to_string(x.shape()), table);
  return x.graph().add_node(kAddRow, AddRowParams{row}, {x, table}, ElementType::f32, x.shape());
}

Value select_rows(Value x, Value rows) {
  require_shape(rows.type() == ElementType::i32 && rows.shape().rank() == 1, kSelectRows,
                "rows must be a list of i32", rows);
  require_shape(x.shape().rank() == 2, kSelectRows, "needs rows of one dimension", x);
  return x.graph().add_node(kSelectRows, {}, {x, rows}, ElementType::f32,
                            {rows.shape().rows(), x.shape().last()});
}

}  // namespace quipu
