// What every product of this folder shares: a tile of one or two panels by a few tokens, and the order in
// which a task is cut into tiles. Everything is in an unnamed namespace: nothing compiled for AVX-512 may be
// shared with other files.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"

namespace quipu::cpu::avx512 {
namespace {

/// Panels of a wide tile: one broadcast of an activation serves both.
constexpr std::size_t kWidePanels = 2;

/// 16 or 32 rows by a few tokens by some blocks of k.
struct Tile {
  const std::byte* panels[kWidePanels];
  __mmask16 rows[kWidePanels];  ///< rows to write; no row for a second panel that is not there
  const std::byte* activations;
  std::size_t activation_stride;
  std::size_t n_blocks;
  float* out;
  std::size_t out_stride;
  bool first;  ///< starts at zero; a later part of K goes on from what is in `out`
};
using TileKernel = void (*)(const Tile&);

inline __m512i load(const std::byte* from) {
  return _mm512_loadu_si512(from);
}

/// The four bytes at `from` in all lanes.
inline __m512i broadcast(const std::byte* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}

inline __m512 broadcast_float(const std::byte* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof value);
  return _mm512_set1_ps(value);
}

/// 16 f16.
inline __m512 load_halves(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

inline __m512 start_sum(const Tile& tile, std::size_t panel, int token) {
  if (tile.first) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(tile.rows[panel], tile.out + token * tile.out_stride + panel * kPanelRows);
}

inline void store_sum(const Tile& tile, std::size_t panel, int token, __m512 sum) {
  _mm512_mask_storeu_ps(tile.out + token * tile.out_stride + panel * kPanelRows, tile.rows[panel], sum);
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

/// Weights of a tile that stay in the first cache while the tokens pass by.
constexpr std::size_t kWeightBytes = 20 << 10;
/// Activations that stay in the second cache while the panels pass by.
constexpr std::size_t kActivationBytes = 400 << 10;

__mmask16 rows_of(const MatmulTask& task, std::size_t panel) {
  const std::size_t begin = panel * kPanelRows;
  if (begin >= task.n_rows) return 0;
  return static_cast<__mmask16>((1u << least(task.n_rows - begin, kPanelRows)) - 1);
}

/// One panel or two, and the blocks of K, that tiles of tokens pass by.
struct Weights {
  std::size_t panel;
  std::size_t n_panels;
  std::size_t block;
  std::size_t n_blocks;
};

template <typename Kernel>
void run_tiles(const MatmulTask& task, const Weights& weights, std::size_t token0, std::size_t n_tokens) {
  const std::size_t n_panels = parts(task.n_rows, kPanelRows);
  Tile tile;
  for (std::size_t p = 0; p < weights.n_panels; ++p) {
    const std::size_t panel = weights.panel + p;
    const std::size_t source =
        panel < n_panels ? panel : weights.panel;  // an odd one out keeps itself company
    tile.panels[p] = task.panels + source * task.panel_stride + weights.block * Kernel::kBlockBytes;
    tile.rows[p] = rows_of(task, panel);
  }
  tile.activation_stride = task.activation_stride;
  tile.n_blocks = weights.n_blocks;
  tile.out_stride = task.out_stride;
  tile.first = weights.block == 0;
  const std::size_t n_tiles = parts(n_tokens, Kernel::kMaxTokens);
  for (std::size_t i = 0; i < n_tiles; ++i) {  // of nearly equal size
    const std::size_t begin = token0 + n_tokens * i / n_tiles;
    const std::size_t end = token0 + n_tokens * (i + 1) / n_tiles;
    tile.activations =
        task.activations + begin * task.activation_stride + weights.block * Kernel::kActivationBlockBytes;
    tile.out = task.out + begin * task.out_stride + weights.panel * kPanelRows;
    Kernel::tile(weights.n_panels, end - begin)(tile);
  }
}

/// Runs a task. `Kernel` has: kBlock (k per block), kBlockBytes (of a panel), kActivationBlockBytes,
/// kMaxTokens (of a tile), kNarrowTokens, and tile(panels, tokens): the TileKernel for that shape. Up to
/// kNarrowTokens the weights come from memory, once, panel after panel: one stream. Cutting changes no
/// result: an output element is one chain over k, interrupted at most by a store and a load.
template <typename Kernel>
void run(const MatmulTask& task) {
  if (task.n_tokens == 0) return;
  const std::size_t n_blocks = parts(task.n_cols, Kernel::kBlock);
  const std::size_t n_panels = parts(task.n_rows, kPanelRows);
  const std::size_t width = task.n_tokens <= Kernel::kNarrowTokens ? 1 : kWidePanels;

  // With one tile of tokens weights are used once: no reason to cut K.
  const bool is_reused = task.n_tokens > Kernel::kMaxTokens;
  const std::size_t most_blocks =
      is_reused ? most(1, kWeightBytes / (width * Kernel::kBlockBytes)) : n_blocks;
  const std::size_t n_k_parts = n_blocks == 0 ? 1 : parts(n_blocks, most_blocks);
  const std::size_t k_part = most(1, parts(n_blocks, n_k_parts));
  const std::size_t row_bytes = most(1, n_blocks * Kernel::kActivationBlockBytes);
  const std::size_t token_part = most(Kernel::kMaxTokens, kActivationBytes / row_bytes);

  for (std::size_t token = 0; token < task.n_tokens; token += token_part) {
    const std::size_t n_tokens = least(token_part, task.n_tokens - token);
    for (std::size_t panel = 0; panel < n_panels; panel += width) {
      for (std::size_t block = 0; block < most(1, n_blocks); block += k_part) {
        run_tiles<Kernel>(task, {panel, width, block, least(k_part, n_blocks - block)}, token, n_tokens);
      }
    }
  }
}

}  // namespace
}  // namespace quipu::cpu::avx512
