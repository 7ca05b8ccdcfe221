// What the files of attention share: a task taken apart, and its tiles. Only files compiled for AVX2 may
// include it.
#pragma once

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/kernels/avx2/lanes.h"

namespace quipu::cpu::avx2 {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kTilePages = kTilePlaces / kPageSlots;
constexpr std::size_t kRowBlock =
    6;  // 6 rows x 2 vectors of results, 2 vectors of K or V and a broadcast: 15 registers

/// 64 places: their cells' positions, and where their keys and values are.
struct Tile {
  std::size_t place;                                ///< the first
  alignas(32) std::int32_t positions[kTilePlaces];  ///< -1: no cell
  const std::byte* keys[kTilePages];  ///< a missing page has the address of another one of the tile
  const std::byte* values[kTilePages];
};

/// A task with its layout and its scratch taken apart. A row is a query's head.
struct Job {
  const AttentionTask* task;
  std::size_t n_rows;
  bool has_key_blocks;
  CellBlockForm key_form;  ///< where keys have blocks
  KeyParts key_parts;
  std::size_t v_padded;
  float* q;  ///< where keys have blocks: rows in ActivationFormat::q8_32, each in the room of k_dim floats
  float* weights;
  float* output;
  float* sum;
  float* max;
  float* factor;
  float* merged;
  float* merged_sum;
  float* merged_max;
  std::uint64_t* visible;
  std::byte* keys;
  float* values;
};

/// Calls step(first row, rows) for blocks of up to `size` rows of which one sees a place of the tile.
template <typename Step>
static inline void for_each_block(const Job& job, std::size_t size, Step step) {
  for (std::size_t row = 0; row < job.n_rows; row += size) {
    const std::size_t n = job.n_rows - row < size ? job.n_rows - row : size;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < n; ++i) seen |= job.visible[row + i];
    if (seen != 0) step(row, n);
  }
}

/// 16 numbers of a float type.
template <ElementType type>
static inline Floats16 load_elements(const std::byte* at) {
  if constexpr (type == ElementType::f32) return load_16(reinterpret_cast<const float*>(at));
  if constexpr (type == ElementType::bf16) return {load_brains(at), load_brains(at + 16)};
  return {load_halves(at), load_halves(at + 16)};
}

static inline float larger(float a, float b) {
  return a > b ? a : b;
}

/// Quantizes the task's queries into job.q, where keys have blocks.
void quantize_queries(const Job& job);
/// Weights of a tile for all rows that see any of it, and the factors of what came before.
void score_tile(const Job& job, const Tile& tile);
/// output = output * factor + weights * values for these rows.
void add_tile_values(const Job& job, const Tile& tile);

}  // namespace quipu::cpu::avx2
