// Attention over paged keys and values (kernels/kv_layout.h): the task that a kernel computes.
//
// Canonical arithmetic of one query row (one query, one head); fma where it says so and nowhere else, exp and
// tanh of base/math.h, max(a, b) = a > b ? a : b:
//  - Places are taken in chunks of 256 (places [256 c, 256 c + 256)) and tiles of 64 inside a chunk, both
//  counted from
//    place 0 of the sequence whatever is missing.
//  - Score of a visible cell, float types of K: s = fma(q[d], k[d], s) for d ascending, from 0.
//    Block types: the query is quantized like the input of a matrix product (ActivationBlock32 of
//    kernels/activation.h: int8 y, scale, sum). For each block of 32 ascending, with its scale and quants
//    less their zero point (IQ4_NL: the table's values), isum = sum of quants * y as int32, s =
//    fma(float(isum), scale_k * scale_q, s); then, for types with a minimum, s = fma(float(sum), min_k *
//    scale_q, s). After that s = s * scale; with a soft-cap, s = soft_cap * tanh(s / soft_cap); with slopes
//    (ALiBi) s = fma(-slope, float(|key position - query position|), s); with a table of biases, s = s + its
//    entry.
//  - A chunk starts with m = the lowest float, l[16] = 0, o[v_dim] = 0. Each tile: m' = max of m and its
//  scores,
//    a = exp(m - m'), l *= a, o *= a, m = m'; then for its places ascending, p = exp(s - m) if visible, else
//    0: l[place mod 16] += p; o[d] = fma(p, v[d], o[d]).
//  - Chunks are merged ascending into M, L, O, which start like m, l, o: M' = max(M, m), A = exp(M - M'),
//    B = exp(m - M'); L = fma(l, B, L * A); O = fma(o, B, O * A); M = M'.
//  - T = sum of L's 16 lanes, folded 8, 4, 2, 1 (lane i takes lane i + 8, ...). f = 1 / T; with a sink
//    M' = max(M, sink), A = exp(M - M'), f = A / fma(T, A, exp(sink - M')). out = O * f + 0, or 0 where T is
//    0.
// v[d] is the stored number as decode_row of quant/quant.h gives it.
// Cells that are missing, empty or not visible have p = 0 exactly: with them a tile or chunk multiplies by
// exp(0) = 1 and adds zeros. So an implementation may skip them, or not: at most the sign of a zero in l or o
// differs, which no later step can see before the final "+ 0" makes every zero positive. This needs cells
// that are finite (store_cell clamps), so that p * v = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kernels/kv_layout.h"

namespace quipu::cpu {

inline constexpr std::size_t kTilePlaces = 64;
inline constexpr std::size_t kChunkPlaces = 256;

/// Where one query looks. A cell at place l with position p >= 0 is visible if it is not in the future
/// (p < position, or p == position and l <= place; always true when not causal) and, with a window > 0,
/// p > position - window; where the window is symmetric, |p - position| <= window / 2; where it is chunked,
/// p / window = position / window (whole numbers).
struct AttentionQuery {
  std::int32_t position = 0;
  std::int32_t place = 0;
};

/// A block of query rows of one sequence, all heads of one key/value head.
struct AttentionTask {
  const KvLayout* layout;
  const std::byte* cache;  ///< the layer's first page
  std::size_t kv_head;
  std::span<const std::int32_t> pages;  ///< the sequence's table: page number by place / 16, -1 where missing
  const std::int32_t* cell_positions;   ///< [page * 16 + slot]: position of the cell, -1 empty
  std::span<const AttentionQuery> queries;  ///< n_queries
  const float* q;  ///< q[query * q_stride + head * k_dim + d]; first head of the group
  std::size_t q_stride;
  std::size_t group;  ///< query heads per kv head
  float* out;         ///< out[query * out_stride + head * v_dim + d]
  std::size_t out_stride;
  float scale;
  float soft_cap;       ///< 0: none
  std::int32_t window;  ///< 0: none
  bool causal;
  bool symmetric_window;
  bool chunked_window = false;
  const float* slopes;  ///< [group] of ALiBi, or null
  const float*
      bias_table;  ///< [group][2 * bias_radius + 1] by key position - query position, clamped, or null
  std::int32_t bias_radius;
  const float* sinks;            ///< [group] logits that take part in the softmax without a value, or null
  std::span<std::byte> scratch;  ///< attention_scratch_bytes(), 64-byte aligned
};

/// Queries that a task should have where there are enough: keys and values are then read from memory once for
/// many rows, and the scratch stays in the caches. More or fewer give the same bits.
inline constexpr std::size_t kQueryBlock = 32;

/// Where the parts of a task's scratch start, in floats; every part is a multiple of 16 floats. For kernels.
struct AttentionScratch {
  AttentionScratch(const KvLayout& layout, std::size_t n_queries, std::size_t group);

  std::size_t v_padded;  ///< v_dim rounded up to 16: the row length of the outputs below
  std::size_t q;         ///< [n_rows, k_dim], in the order that suits the kernel, or [n_rows] addresses
  std::size_t weights;   ///< [n_rows, kTilePlaces]: p
  std::size_t output;    ///< [n_rows, v_padded]: o
  std::size_t sum;       ///< [n_rows, 16]: l
  std::size_t max;       ///< [n_rows]: m
  std::size_t factor;    ///< [n_rows]: a
  std::size_t merged;    ///< [n_rows, v_padded]: O
  std::size_t merged_sum;  ///< [n_rows, 16]: L
  std::size_t merged_max;  ///< [n_rows]: M
  std::size_t visible;     ///< [n_rows] of 64 bits: which places of the tile the row sees
  std::size_t quantized;   ///< a query in ActivationFormat::q8_32
  std::size_t keys;        ///< a tile of keys of fewer than 8 bits, a byte each
  std::size_t values;      ///< [kTilePlaces, v_padded]: a tile of values of a block type
  std::size_t size;
};
std::size_t attention_scratch_bytes(const KvLayout& layout, std::size_t n_queries, std::size_t group);

}  // namespace quipu::cpu
