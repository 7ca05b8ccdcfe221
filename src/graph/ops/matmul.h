// Matrix products with weights.
#pragma once

#include "graph/graph.h"

namespace quipu {

/// out[t, r] = sum over k of weight[r, k] * x[t, k]. x: [rows, n_cols]; weight: [n_rows, n_cols] -> [rows,
/// n_rows].
extern const Operation kMatmul;
Value matmul(Value x, Value weight);

}  // namespace quipu
