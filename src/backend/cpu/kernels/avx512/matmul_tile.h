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
  const std::byte* expanded[kWidePanels];  ///< one byte a quant, for kernels that want it so
  __mmask16 rows[kWidePanels];             ///< rows to write; no row for a second panel that is not there
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

/// A value that the compiler must have made here, in a register: where it would else put off additions and
/// run out of registers, or fold what it should not.
inline void keep_here(__m512i& value) {
  asm("" : "+v"(value));
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
/// Activations that stay in the second cache while the panels pass by, but for fewer tokens it does not pay.
constexpr std::size_t kActivationBytes = 400 << 10;
constexpr std::size_t kLeastTokenPart = 48;
/// k of a panel whose quants are expanded to bytes, and from how many tokens on.
constexpr std::size_t kExpandedColumns = 512;
constexpr std::size_t kExpandTokens = 13;

/// Of a tile; see run().
struct TileShape {
  std::size_t n_panels;
  std::size_t n_tokens;
  bool is_expanded;
};

__mmask16 rows_of(const MatmulTask& task, std::size_t panel) {
  const std::size_t begin = panel * kPanelRows;
  if (begin >= task.n_rows) return 0;
  return static_cast<__mmask16>((1u << least(task.n_rows - begin, kPanelRows)) - 1);
}

/// What a task is cut into: these panels, blocks of K and tokens, which is some tiles of tokens.
struct Cut {
  std::size_t panel, n_panels;
  std::size_t block, n_blocks;
  std::size_t token, n_tokens;
  std::byte*
      expanded;  ///< room for kWidePanels x kExpandedColumns x kPanelRows quants; null: not to be expanded
};

template <typename Kernel>
Tile first_tile(const MatmulTask& task, const Cut& cut) {
  const std::size_t n_panels = parts(task.n_rows, kPanelRows);
  Tile tile;
  for (std::size_t p = 0; p < cut.n_panels; ++p) {
    const std::size_t panel = cut.panel + p;
    const std::size_t source = panel < n_panels ? panel : cut.panel;  // an odd one out keeps itself company
    tile.panels[p] = task.panels + source * task.panel_stride + cut.block * Kernel::kBlockBytes;
    tile.rows[p] = rows_of(task, panel);
    if (cut.expanded != nullptr) {
      std::byte* to = cut.expanded + p * kExpandedColumns * kPanelRows;
      Kernel::expand(tile.panels[p], cut.n_blocks, to);
      tile.expanded[p] = to;
    }
  }
  tile.activation_stride = task.activation_stride;
  tile.n_blocks = cut.n_blocks;
  tile.out_stride = task.out_stride;
  tile.first = cut.block == 0;
  return tile;
}

template <typename Kernel>
void run_cut(const MatmulTask& task, const Cut& cut) {
  Tile tile = first_tile<Kernel>(task, cut);
  const std::size_t n_tiles = parts(cut.n_tokens, Kernel::kMaxTokens);
  for (std::size_t i = 0; i < n_tiles; ++i) {  // of nearly equal size
    const std::size_t begin = cut.token + cut.n_tokens * i / n_tiles;
    const std::size_t end = cut.token + cut.n_tokens * (i + 1) / n_tiles;
    tile.activations =
        task.activations + begin * task.activation_stride + cut.block * Kernel::kActivationBlockBytes;
    tile.out = task.out + begin * task.out_stride + cut.panel * kPanelRows;
    Kernel::tile({cut.n_panels, end - begin, cut.expanded != nullptr})(tile);
  }
}

/// Blocks of K to take at once.
template <typename Kernel>
std::size_t k_part(std::size_t n_blocks, bool is_reused, bool is_expanded) {
  if (!is_reused || n_blocks == 0) return most(1, n_blocks);
  const std::size_t most_blocks = is_expanded ? kExpandedColumns / Kernel::kBlock
                                              : most(1, kWeightBytes / (kWidePanels * Kernel::kBlockBytes));
  return parts(n_blocks, parts(n_blocks, most_blocks));
}

/// Runs a task. `Kernel` has: kBlock (k per block), kBlockBytes (of a panel), kActivationBlockBytes,
/// kMaxTokens (of a tile), kNarrowTokens, kExpands, expand(block, n_blocks, to), and tile(shape): the
/// TileKernel for that shape. Up to kNarrowTokens the weights come from memory, once, panel after panel: one
/// stream. With many tokens quants are expanded to bytes once for all of them. Cutting changes no result:
/// inside a block sums are integers, and an output element is one chain over the blocks, interrupted at most
/// by a store and a load.
template <typename Kernel>
void run(const MatmulTask& task) {
  if (task.n_tokens == 0) return;
  const std::size_t n_blocks = parts(task.n_cols, Kernel::kBlock);
  const std::size_t n_panels = parts(task.n_rows, kPanelRows);
  const std::size_t width = task.n_tokens <= Kernel::kNarrowTokens ? 1 : kWidePanels;
  const std::size_t row_bytes = most(1, n_blocks * Kernel::kActivationBlockBytes);
  const std::size_t n_token_parts = parts(task.n_tokens, most(kLeastTokenPart, kActivationBytes / row_bytes));
  const std::size_t least_tokens = task.n_tokens / n_token_parts;
  const bool is_expanded = Kernel::kExpands && least_tokens >= kExpandTokens;
  const std::size_t part = k_part<Kernel>(n_blocks, least_tokens > Kernel::kMaxTokens, is_expanded);
  alignas(64) std::byte expanded[Kernel::kExpands ? kWidePanels * kExpandedColumns * kPanelRows : 1];

  for (std::size_t i = 0; i < n_token_parts; ++i) {
    const std::size_t token = task.n_tokens * i / n_token_parts;
    const std::size_t end = task.n_tokens * (i + 1) / n_token_parts;
    for (std::size_t panel = 0; panel < n_panels; panel += width) {
      for (std::size_t block = 0; block < most(1, n_blocks); block += part) {
        run_cut<Kernel>(task, {panel, width, block, least(part, n_blocks - block), token, end - token,
                               is_expanded ? expanded : nullptr});
      }
    }
  }
}

}  // namespace
}  // namespace quipu::cpu::avx512
