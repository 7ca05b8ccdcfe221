// Attention over the memory of past tokens. The node stores the batch's keys and values and then attends, so
// keys and values are always read as stored. Which cells a token sees is an input of the run
// (AttentionLayout); a mask is never materialized. Vaswani et al. 2017; grouped heads: Ainslie et al. 2023.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace quipu {

/// Where the tokens of a micro-batch stand in one part of the memory. Places and pages: docs/architecture.md,
/// "Memory".
struct AttentionLayout {
  struct Token {
    std::int32_t sequence;  ///< index into `page_tables`
    std::int32_t position;
    std::int32_t place;  ///< its own cell, in page page_tables[sequence][place / 16], slot place % 16
  };

  std::vector<Token> tokens;
  /// Page numbers by place / 16; -1 where a sequence has no page.
  std::vector<std::span<const std::int32_t>> page_tables;
  /// Position of the cell in [page * 16 + slot]; -1 where empty.
  std::span<const std::int32_t> cell_positions;
};

/// What is added to scores for the distance of key and query, after scale and soft-cap.
struct AttentionBias {
  enum class Kind : std::uint8_t {
    none,
    alibi,     ///< -values[head] * |key position - query position|. Press et al. 2021
    relative,  ///< values[head][clamp(key position - query position, -radius, radius) + radius]. Raffel et
               ///< al. 2019
  };
  Kind kind = Kind::none;
  std::vector<float> values;  ///< alibi: [n_heads]; relative: [n_heads][2 * radius + 1]
  std::int32_t radius = 0;    ///< of `relative`
};

struct AttentionParams {
  KvStorage* cache;         ///< the layer's cells
  std::size_t layout;       ///< which of the run's layouts applies
  float scale;              ///< on q k
  float soft_cap = 0;       ///< cap * tanh(score / cap), 0: none
  std::int32_t window = 0;  ///< only positions > own - window are seen, 0: all
  bool causal = true;
  bool symmetric_window = false;  ///< the window reaches both ways: |key position - own| <= window / 2
  bool chunked_window =
      false;  ///< only positions of the own chunk are seen: those with the same position / window
  AttentionBias bias{};
};

/// q: [n_tokens, n_heads, k_dim], k: [n_tokens, n_kv_heads, k_dim], v: [n_tokens, n_kv_heads, v_dim];
/// n_heads a multiple of n_kv_heads -> [n_tokens, n_heads * v_dim]. Without k and v (both invalid) nothing is
/// stored: the cells are those of an earlier node or run (cross-attention); then params.cache says n_kv_heads
/// and v_dim. `sinks`, if valid, is a vector weight [n_heads]: scores that take part in a head's softmax
/// without a value.
extern const Operation kAttention;
Value attention(Value q, Value k, Value v, const AttentionParams& params, Value sinks = {});

struct StoreCellsParams {
  KvStorage* cache;
  std::size_t layout;
};

/// Stores keys and values without attending, for attention nodes or graphs to come. The value that it gives
/// holds no data and has no use but its name.
extern const Operation kStoreCells;
Value store_cells(Value k, Value v, const StoreCellsParams& params);

}  // namespace quipu
