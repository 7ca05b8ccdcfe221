// What packing one row and packing sixteen at once share: how quants and scales become the bytes of a panel
// (panel.h). A "word" is four quants of one row, or of 16 rows side by side.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"
#include "quant/blocks.h"

namespace quipu::cpu::panel_write {

inline constexpr std::size_t kSlice = 32;  // k in a slice
inline constexpr std::size_t kGroups = 8;  // groups of 4 k in a slice
inline constexpr std::size_t kPlane = 64;  // bytes of 16 rows x 4 k

using Word = std::uint32_t;
template <typename W>
using Words = std::array<W, kGroups>;

inline constexpr Word kNibbles = 0x0f0f0f0f;
inline constexpr Word kCrumbs = 0x03030303;
inline constexpr Word kBits = 0x01010101;

inline void store_word(Word word, std::byte* to) {
  std::memcpy(to, &word, sizeof word);
}

// A slice as its row sees it: `at` is the lane's first byte in the slice.

template <typename W>
void write_nibbles(const Words<W>& words, std::size_t first, std::size_t n_planes, std::byte* at) {
  for (std::size_t j = 0; j < n_planes; ++j) {
    const W low = words[first + 2 * j] & kNibbles;
    const W high = words[first + 2 * j + 1] & kNibbles;
    store_word(low | high << 4, at + kPlane * j);
  }
}

/// Bits [shift, shift + 2) of the groups of a half.
template <typename W>
void write_crumbs(const Words<W>& words, std::size_t first, unsigned shift, std::byte* at) {
  W plane{};
  for (std::size_t n = 0; n < 4; ++n) plane |= (words[first + n] >> shift & kCrumbs) << (2 * n);
  store_word(plane, at);
}

/// Bit `shift` of all groups.
template <typename W>
void write_bits(const Words<W>& words, unsigned shift, std::byte* at) {
  W plane{};
  for (std::size_t g = 0; g < kGroups; ++g) plane |= (words[g] >> shift & kBits) << g;
  store_word(plane, at);
}

template <typename W>
void write_slice(SliceKind kind, const Words<W>& words, std::byte* at) {
  switch (kind) {
    case SliceKind::none: return;
    case SliceKind::two:
      for (std::size_t half = 0; half < 2; ++half) write_crumbs(words, 4 * half, 0, at + kPlane * half);
      return;
    case SliceKind::three:
      for (std::size_t half = 0; half < 2; ++half) write_crumbs(words, 4 * half, 0, at + kPlane * (1 + half));
      write_bits(words, 2, at);
      return;
    case SliceKind::four: write_nibbles(words, 0, 4, at); return;
    case SliceKind::five:
      write_bits(words, 4, at);
      write_nibbles(words, 0, 4, at + kPlane);
      return;
    case SliceKind::six:
      for (std::size_t half = 0; half < 2; ++half) {
        write_crumbs(words, 4 * half, 4, at + 3 * kPlane * half);
        write_nibbles(words, 4 * half, 2, at + 3 * kPlane * half + kPlane);
      }
      return;
    case SliceKind::eight:
      for (std::size_t g = 0; g < kGroups; ++g) store_word(words[g], at + kPlane * g);
      return;
  }
}

// Scales

template <typename Block>
inline constexpr bool kHasM = requires(Block block) { block.m; };
template <typename Block>
inline constexpr bool kHasDmin = requires(Block block) { block.dmin; };

/// All that a block has besides quants.
template <typename Block>
void take_scales(const Block& block, PanelBlockRow& row) {
  if constexpr (requires { block.scale; }) {
    row.scales[0] = block.scale;
  } else {
    row.d = block.d;
  }
  if constexpr (kHasM<Block>) row.m = block.m;
  if constexpr (kHasDmin<Block>) row.m = block.dmin;
  if constexpr (Block::kElements == 256) {
    const auto scales = unpack_scales(block);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if constexpr (kHasDmin<Block>) {
        row.scales[i] = scales[i].scale;
        row.mins[i] = scales[i].min;
      } else {
        row.scales[i] = scales[i];
      }
    }
  }
}

inline void write_scales(const PanelBlockLayout& layout, const PanelBlockRow& row, std::size_t lane,
                         std::byte* block) {
  const std::size_t n_runs = layout.run == 0 ? 0 : layout.elements / layout.run;
  for (std::size_t i = 0; i < n_runs; ++i) {
    const bool nibbles = layout.slice == SliceKind::two;
    const int scale = nibbles ? row.scales[i] | row.mins[i] << 4 : row.scales[i];
    block[layout.sub_scales + kPanelRows * i + lane] = static_cast<std::byte>(scale);
    if (layout.sub_mins > 0) {
      block[layout.sub_mins + kPanelRows * i + lane] = static_cast<std::byte>(row.mins[i]);
    }
  }
  if (layout.d > 0) std::memcpy(block + layout.d + sizeof(Half) * lane, &row.d, sizeof(Half));
  if (layout.m > 0) std::memcpy(block + layout.m + sizeof(Half) * lane, &row.m, sizeof(Half));
}

}  // namespace quipu::cpu::panel_write
