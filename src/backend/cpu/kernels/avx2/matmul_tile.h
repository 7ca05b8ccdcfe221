// What every product of this folder shares: a tile of 8 or 16 rows of a panel by a few tokens, and the order
// in which a task is cut into tiles. Everything is in an unnamed namespace: nothing compiled for AVX2 may be
// shared with other files.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/avx2/lanes.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"

namespace quipu::cpu::avx2 {
namespace {

/// Rows of a panel that one register holds.
constexpr std::size_t kHalfRows = kPanelRows / 2;

/// One half of a panel's rows, or both, by a few tokens by some blocks of k.
struct Tile {
  const std::byte* panel;  ///< the first of the blocks
  std::size_t half;        ///< the first
  std::size_t n_rows;      ///< to write, from the first of the half on
  const std::byte* activations;
  std::size_t activation_stride;
  std::size_t n_blocks;
  float* out;
  std::size_t out_stride;
  bool first;  ///< starts at zero; a later part of K goes on from what is in `out`
};
using TileKernel = void (*)(const Tile&);

inline std::size_t rows_of(const Tile& tile, std::size_t half) {
  return tile.n_rows > half * kHalfRows ? tile.n_rows - half * kHalfRows : 0;
}

inline __m256 start_sum(const Tile& tile, std::size_t half, std::size_t token) {
  if (tile.first) return _mm256_setzero_ps();
  return load_first(tile.out + token * tile.out_stride + half * kHalfRows, rows_of(tile, half));
}

inline void store_sum(const Tile& tile, std::size_t half, std::size_t token, __m256 sum) {
  store_first(tile.out + token * tile.out_stride + half * kHalfRows, rows_of(tile, half), sum);
}

constexpr std::size_t least(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}
constexpr std::size_t most(std::size_t a, std::size_t b) {
  return a < b ? b : a;
}
constexpr std::size_t parts(std::size_t n, std::size_t part) {
  return (n + part - 1) / part;
}

/// Weights of a panel that stay in the first cache while the tokens pass by.
constexpr std::size_t kWeightBytes = 16 << 10;
/// Activations that stay in the second cache while the panels pass by, but for fewer tokens it does not pay.
constexpr std::size_t kActivationBytes = 200 << 10;
constexpr std::size_t kLeastTokenPart = 48;

/// The tiles that suit a number of tokens.
struct TileSet {
  std::size_t n_halves;    ///< of each
  std::size_t max_tokens;  ///< of the largest
  const TileKernel* of;    ///< [n - 1]: for n tokens
};

/// Tiles of nearly equal size for a panel, some blocks of K and some tokens.
inline void run_tiles(const TileSet& tiles, Tile tile, std::size_t n_rows, std::size_t n_tokens) {
  const std::size_t n_tiles = parts(n_tokens, tiles.max_tokens);
  const std::byte* activations = tile.activations;
  float* out = tile.out;
  for (std::size_t row = 0; row < n_rows; row += tiles.n_halves * kHalfRows) {
    tile.half = row / kHalfRows;
    tile.n_rows = n_rows - row;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      const std::size_t begin = n_tokens * i / n_tiles;
      const std::size_t end = n_tokens * (i + 1) / n_tiles;
      tile.activations = activations + begin * tile.activation_stride;
      tile.out = out + begin * tile.out_stride + row;
      tiles.of[end - begin - 1](tile);
    }
  }
}

/// Runs a task. `Kernel` has: kBlock (k per block), kBlockBytes (of a panel), kActivationBlockBytes, and
/// tiles(n_tokens). Cutting changes no result: inside a block sums are integers, and an output element is one
/// chain over the blocks, interrupted at most by a store and a load.
template <typename Kernel>
void run(const MatmulTask& task) {
  if (task.n_tokens == 0) return;
  const TileSet tiles = Kernel::tiles(task.n_tokens);
  const std::size_t n_blocks = parts(task.n_cols, Kernel::kBlock);
  const std::size_t row_bytes = most(1, n_blocks * Kernel::kActivationBlockBytes);
  const std::size_t n_token_parts = parts(task.n_tokens, most(kLeastTokenPart, kActivationBytes / row_bytes));
  const bool is_reused = task.n_tokens > tiles.max_tokens;
  const std::size_t n_block_parts =
      is_reused ? parts(most(1, n_blocks), most(1, kWeightBytes / Kernel::kBlockBytes)) : 1;
  for (std::size_t i = 0; i < n_token_parts; ++i) {
    const std::size_t token = task.n_tokens * i / n_token_parts;
    const std::size_t n_tokens = task.n_tokens * (i + 1) / n_token_parts - token;
    for (std::size_t row = 0; row < task.n_rows; row += kPanelRows) {
      for (std::size_t part = 0; part < n_block_parts; ++part) {
        const std::size_t block = n_blocks * part / n_block_parts;
        Tile tile;
        tile.panel = task.panels + row / kPanelRows * task.panel_stride + block * Kernel::kBlockBytes;
        tile.activations =
            task.activations + token * task.activation_stride + block * Kernel::kActivationBlockBytes;
        tile.activation_stride = task.activation_stride;
        tile.n_blocks = n_blocks * (part + 1) / n_block_parts - block;
        tile.out = task.out + token * task.out_stride + row;
        tile.out_stride = task.out_stride;
        tile.first = part == 0;
        run_tiles(tiles, tile, least(task.n_rows - row, kPanelRows), n_tokens);
      }
    }
  }
}

}  // namespace
}  // namespace quipu::cpu::avx2
