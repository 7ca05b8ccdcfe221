// What the files of attention share: a task taken apart, its tiles and blocks of rows. Only files compiled
// for AVX-512 may include it.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/attention_range.h"

namespace quipu::cpu::avx512 {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kTilePages = kTilePlaces / kPageSlots;
constexpr int kRowBlock =
    6;  // 6 rows x 4 vectors of results, 4 vectors of K or V and a broadcast: 29 registers

/// 64 places: their cells' positions, and where their keys and values are.
struct Tile {
  std::size_t place;  ///< the first
  __m512i positions[kTilePages];
  std::int32_t first_position, last_position;  ///< least and greatest of these; kNoCell where a cell is empty
  const std::byte* keys[kTilePages];           ///< a missing page has the address of another one of the tile
  const std::byte* values[kTilePages];
};

/// What the next tile will read: a page's keys and values are a few kilobytes each, too short for the
/// processor to see a stream in them. The first block of rows of a tile asks for it on the way, a bit in each
/// step, into the second-level cache.
struct Ahead {
  const std::byte* const* at;  ///< [kTilePages]
  std::size_t bytes;           ///< of each
};

static inline void prefetch(const std::byte* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
}

/// The n-th of n_steps shares.
static inline void prefetch_share(const Ahead& ahead, std::size_t n, std::size_t n_steps) {
  const std::size_t share = ahead.bytes / n_steps;
  for (std::size_t i = 0; i < kTilePages; ++i) {
    for (std::size_t line = 0; line < share; line += 64) prefetch(ahead.at[i] + n * share + line);
  }
}

/// A task with its layout and its scratch taken apart.
struct Job {
  const AttentionTask* task;
  std::size_t n_rows;
  std::size_t page_bytes;
  std::size_t head_offset;
  std::size_t k_dim;
  std::size_t k_bytes;
  bool has_key_blocks;
  CellBlockForm key_form;  ///< where keys have blocks
  KeyParts key_parts;
  std::size_t v_dim;
  std::size_t v_bytes;
  std::size_t v_row_bytes;
  std::size_t v_padded;
  float* q;  ///< what prepare_queries makes of the queries
  float* weights;
  float* output;
  float* sum;
  float* max;
  float* factor;
  float* merged;
  float* merged_sum;
  float* merged_max;
  std::uint64_t* visible;
  std::byte* quantized;
  std::byte* keys;
  float* values;
  std::int32_t least_after;  ///< over the queries
  std::int32_t greatest_after;
  std::int32_t least_last;
  std::int32_t greatest_last;  ///< over the queries
};

/// Rows go in blocks of equal size, but for one: 64 rows are nine blocks of six and two of five.
struct RowBlocks {
  explicit RowBlocks(std::size_t n_rows)
      : count((n_rows + kRowBlock - 1) / kRowBlock),
        size(count == 0 ? 0 : n_rows / count),
        larger(count == 0 ? 0 : n_rows % count) {}

  template <typename Step>
  void for_each(Step step) const {
    std::size_t row = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t n = size + (i < larger ? 1 : 0);
      step(row, n);
      row += n;
    }
  }

  std::size_t count;
  std::size_t size;
  std::size_t larger;  ///< the first so many blocks have one row more
};

/// Places that any of the rows [row, row + n) sees.
static inline std::uint64_t seen_by(const Job& job, std::size_t row, std::size_t n) {
  std::uint64_t places = 0;
  for (std::size_t i = 0; i < n; ++i) places |= job.visible[row + i];
  return places;
}

static inline __m512 load_halves(const std::byte* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

static inline __m512 load_brains(const std::byte* at) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/// 16 numbers of a float type.
template <ElementType type>
static inline __m512 load_elements(const std::byte* at) {
  if constexpr (type == ElementType::f32) return _mm512_loadu_ps(at);
  if constexpr (type == ElementType::bf16) return load_brains(at);
  return load_halves(at);
}

static inline float larger(float a, float b) {
  return a > b ? a : b;
}

/// Brings into job.q where the rows' queries are, or the queries themselves, quantized, for keys of block
/// types.
void prepare_queries(const Job& job, const RowBlocks& blocks);
/// Weights of a tile for all rows that see any of it; `next` is the tile after this one, or null.
void score_tile(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks);
/// output = output * factor + weights * values for these rows.
void add_tile_values(const Job& job, const Tile& tile, const Tile* next, const RowBlocks& blocks);

}  // namespace quipu::cpu::avx512
