// Attention over paged keys and values: the layout of a page, and the task that a kernel computes.
//
// Canonical arithmetic: for one query row and head, places are taken in chunks of 256 (places [256 c, 256 c + 256)) and
// tiles of 64 inside a chunk, both counted from place 0 of the sequence whatever is missing. Each chunk keeps its own
// running maximum, sum (16 interleaved partial sums, by place mod 16) and output, rescaled tile by tile; chunks are
// merged in ascending order; the sinks' logit, if any, is merged last. A score is one chain of fused multiply-adds over
// the head's dimension ascending, then times scale, then soft-cap. Cells that are missing, empty or not visible give
// an exact zero, so skipping them changes no bit. Cells hold finite numbers only (store_* clamps), so that a zero
// weight times a cell is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/element_type.h"

namespace quipu::cpu {

/// Places in a page of the cache; slot = place mod 16.
inline constexpr std::size_t kPageSlots = 16;
inline constexpr std::size_t kTilePlaces = 64;
inline constexpr std::size_t kChunkPlaces = 256;

/// Byte layout of one layer's cache: [page][kv_head]{K: [dim][16 slots], V: [16 slots][dim rounded up to 16]}.
/// Element types: f32 or f16. Offsets are multiples of 64 bytes.
struct KvLayout {
  ElementType k_type = ElementType::f16;
  ElementType v_type = ElementType::f16;
  std::size_t n_kv_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;

  std::size_t k_bytes() const;     ///< K part of one head in one page
  std::size_t v_bytes() const;     ///< V part of one head in one page
  std::size_t head_bytes() const;  ///< both
  std::size_t page_bytes() const;
};

/// Puts one token's keys [n_kv_heads, k_dim] and values [n_kv_heads, v_dim] into a slot. Numbers past the type's
/// range become its largest, NaN becomes 0: a cell is always finite.
void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v);
/// Reads a slot back (exactly the stored numbers).
void load_cell(const KvLayout& layout, const std::byte* page, std::size_t slot, float* k, float* v);

/// Where one query looks. A cell at place l with position p >= 0 is visible if it is not in the future
/// (p < position, or p == position and l <= place; always true when not causal) and, with a window > 0,
/// p > position - window.
struct AttentionQuery {
  std::int32_t position = 0;
  std::int32_t place = 0;
};

/// A block of query rows of one sequence, all heads of one key/value head.
struct AttentionTask {
  const KvLayout* layout;
  const std::byte* cache;                   ///< the layer's first page
  std::size_t kv_head;
  std::span<const std::int32_t> pages;      ///< the sequence's table: page number by place / 16, -1 where missing
  const std::int32_t* cell_positions;       ///< [page * 16 + slot]: position of the cell, -1 empty
  std::span<const AttentionQuery> queries;  ///< n_queries
  const float* q;                           ///< q[query * q_stride + head * k_dim + d]; first head of the group
  std::size_t q_stride;
  std::size_t group;                        ///< query heads per kv head
  float* out;                               ///< out[query * out_stride + head * v_dim + d]
  std::size_t out_stride;
  float scale;
  float soft_cap;                           ///< 0: none
  std::int32_t window;                      ///< 0: none
  bool causal;
  const float* sinks;                       ///< [group] logits that take part in the softmax without a value, or null
  std::span<std::byte> scratch;             ///< attention_scratch_bytes(), 64-byte aligned
};

/// Query rows (queries x group) that a kernel works on at once; callers give blocks of up to this many queries.
inline constexpr std::size_t kQueryBlock = 32;
std::size_t attention_scratch_bytes(const KvLayout& layout, std::size_t n_queries, std::size_t group);

}  // namespace quipu::cpu
