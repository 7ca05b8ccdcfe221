// Matrix products with weights.
#pragma once

#include "graph/graph.h"

namespace quipu {

/// out[t, r] = sum over k of weight[r, k] * x[t, k]. x: [rows, n_cols]; weight: [n_rows, n_cols] -> [rows,
/// n_rows].
extern const Operation kMatmul;
Value matmul(Value x, Value weight);

/// Each head with its own matrix: out[t, h, r] = sum over k of weight[h, r, k] * x[t, h, k]. x: [rows, heads,
/// n_cols]; weight: [heads, n_rows, n_cols] -> [rows, heads, n_rows].
extern const Operation kHeadMatmul;
Value head_matmul(Value x, Value weight);

}  // namespace quipu
