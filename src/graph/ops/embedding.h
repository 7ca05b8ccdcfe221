// Looking up rows: token embeddings, and the rows of a micro-batch whose results are asked for.
#pragma once

#include "graph/graph.h"

namespace quipu {

struct EmbedParams {
  float token_scale;
};

/// Row tokens[t] of `table` [n_vocab, width] as float32, times token_scale; where tokens[t] is negative, row
/// t of `embeddings` [n_tokens, width] instead, as it is. -> [n_tokens, width]
extern const Operation kEmbed;
Value embed(Value table, Value tokens, Value embeddings, float token_scale = 1);

/// Row rows[t] of `table` [n, width] as float32, rows beyond the table taken as its last one. rows: i32
/// [n_tokens] -> [n_tokens, width]
extern const Operation kLookUp;
Value look_up(Value table, Value rows);

struct AddRowParams {
  std::size_t row;
};
/// x + row number `row` of `table`, a vector weight [n, width]. x: [rows, width]; same shape.
extern const Operation kAddRow;
Value add_row(Value x, Value table, std::size_t row);

/// Rows of `x` [n_tokens, ...] by number: `rows` is i32 [n_outputs]. -> [n_outputs, ...]
extern const Operation kSelectRows;
Value select_rows(Value x, Value rows);

}  // namespace quipu
