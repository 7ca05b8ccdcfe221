// Packing sixteen rows at once: four words of four rows become one word of each, by transposing.
#include <cstddef>

#include "backend/cpu/kernels/panel_write.h"

namespace quipu::cpu {
namespace {

using namespace panel_write;

constexpr std::size_t kQuad = 4;
constexpr Word kQ8Flip = 0x80808080;
using Quad [[gnu::vector_size(16)]] = Word;

/// A word of each of the panel's rows.
struct Lanes {
  Quad quads[kPanelRows / kQuad];
};

template <typename Function>
Lanes combine(const Lanes& a, const Lanes& b, Function function) {
  Lanes result;
  for (std::size_t i = 0; i < kPanelRows / kQuad; ++i) result.quads[i] = function(a.quads[i], b.quads[i]);
  return result;
}

template <typename Function>
Lanes change(const Lanes& a, Function function) {
  Lanes result;
  for (std::size_t i = 0; i < kPanelRows / kQuad; ++i) result.quads[i] = function(a.quads[i]);
  return result;
}

Lanes operator|(const Lanes& a, const Lanes& b) {
  return combine(a, b, [](Quad x, Quad y) { return x | y; });
}
Lanes& operator|=(Lanes& a, const Lanes& b) {
  return a = a | b;
}
Lanes operator&(const Lanes& a, Word mask) {
  return change(a, [mask](Quad x) { return x & mask; });
}
Lanes operator^(const Lanes& a, Word mask) {
  return change(a, [mask](Quad x) { return x ^ mask; });
}
template <typename Integer>
Lanes operator<<(const Lanes& a, Integer by) {
  return change(a, [by](Quad x) { return x << static_cast<Word>(by); });
}
template <typename Integer>
Lanes operator>>(const Lanes& a, Integer by) {
  return change(a, [by](Quad x) { return x >> static_cast<Word>(by); });
}

void store_word(const Lanes& lanes, std::byte* to) {
  std::memcpy(to, lanes.quads, sizeof lanes.quads);
}

Quad load_quad(const std::byte* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

/// Words 0 .. n - 1 behind `at` in the first row and behind the same place in the others.
template <std::size_t n>
std::array<Lanes, n> load_words(const std::byte* at, std::size_t row_bytes) {
  std::array<Lanes, n> words;
  for (std::size_t row = 0; row < kPanelRows; row += kQuad) {
    for (std::size_t w = 0; w < n; w += kQuad) {
      const std::byte* from = at + row * row_bytes + w * sizeof(Word);
      const Quad a = load_quad(from), b = load_quad(from + row_bytes);
      const Quad c = load_quad(from + 2 * row_bytes), d = load_quad(from + 3 * row_bytes);
      const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      words[w].quads[row / kQuad] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      words[w + 1].quads[row / kQuad] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      words[w + 2].quads[row / kQuad] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      words[w + 3].quads[row / kQuad] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
  return words;
}

Lanes load_word(const std::byte* at, std::size_t row_bytes) {
  Word words[kPanelRows];
  for (std::size_t row = 0; row < kPanelRows; ++row)
    std::memcpy(words + row, at + row * row_bytes, sizeof(Word));
  Lanes lanes;
  std::memcpy(lanes.quads, words, sizeof words);
  return lanes;
}

// ---- The quants of a block, slice by slice (quant/blocks.h says where they lie)

template <typename Block>
using Slices = std::array<Words<Lanes>, Block::kElements / kSlice>;

/// Adds bit `shift` of each byte of 8 words as bit `to` of the quants.
void add_bits(const std::array<Lanes, kGroups>& bits, std::size_t shift, unsigned to, Words<Lanes>& groups) {
  for (std::size_t g = 0; g < kGroups; ++g) groups[g] |= (bits[g] >> shift & kBits) << to;
}

Slices<BlockQ8_0> unpack_bytes(const std::byte* block, std::size_t row_bytes) {
  using Block = BlockQ8_0;
  Slices<Block> slices{load_words<sizeof(Block::qs) / sizeof(Word)>(block + offsetof(Block, qs), row_bytes)};
  for (Lanes& group : slices[0]) group = group ^ kQ8Flip;
  return slices;
}

/// Byte i of 16 holds elements i and i + 16 of a slice; the fifth bits, if any, are in element order.
template <typename Block>
Slices<Block> unpack_halves(const std::byte* block, std::size_t row_bytes) {
  const auto words = load_words<sizeof(Block::qs) / sizeof(Word)>(block + offsetof(Block, qs), row_bytes);
  Slices<Block> slices;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::size_t g = 0; g < kGroups; ++g) slices[s][g] = words[4 * s + g % 4] >> (g / 4 * 4) & kNibbles;
  }
  if constexpr (requires { &Block::qh; }) {
    constexpr Word kSpread = 0x00204081;  // moves bit j of four to the lowest of byte j
    const Lanes bits = load_word(block + offsetof(Block, qh), row_bytes);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const Lanes spread = change(bits >> (4 * g) & 15, [](Quad x) { return x * kSpread; });
      slices[0][g] |= (spread & kBits) << 4;
    }
  }
  return slices;
}

/// Q4_K and Q5_K.
template <typename Block>
Slices<Block> unpack_nibble_planes(const std::byte* block, std::size_t row_bytes) {
  const auto words = load_words<sizeof(Block::qs) / sizeof(Word)>(block + offsetof(Block, qs), row_bytes);
  Slices<Block> slices;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::size_t g = 0; g < kGroups; ++g)
      slices[s][g] = words[s / 2 * kGroups + g] >> (s % 2 * 4) & kNibbles;
  }
  if constexpr (requires { &Block::qh; }) {
    const auto bits = load_words<sizeof(Block::qh) / sizeof(Word)>(block + offsetof(Block, qh), row_bytes);
    for (std::size_t s = 0; s < slices.size(); ++s) add_bits(bits, s, 4, slices[s]);
  }
  return slices;
}

/// Q2_K and Q3_K, and the upper bits of Q6_K.
template <typename Block>
Slices<Block> two_bit_planes(const std::array<Lanes, 2 * kGroups>& words) {
  Slices<Block> slices;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::size_t g = 0; g < kGroups; ++g)
      slices[s][g] = words[s / 4 * kGroups + g] >> (s % 4 * 2) & kCrumbs;
  }
  return slices;
}

template <typename Block>
Slices<Block> unpack_two_bit_planes(const std::byte* block, std::size_t row_bytes) {
  Slices<Block> slices = two_bit_planes<Block>(
      load_words<sizeof(Block::qs) / sizeof(Word)>(block + offsetof(Block, qs), row_bytes));
  if constexpr (requires { &Block::hmask; }) {
    const auto bits =
        load_words<sizeof(Block::hmask) / sizeof(Word)>(block + offsetof(Block, hmask), row_bytes);
    for (std::size_t s = 0; s < slices.size(); ++s) add_bits(bits, s, 2, slices[s]);
  }
  return slices;
}

Slices<BlockQ6_K> unpack_six(const std::byte* block, std::size_t row_bytes) {
  using Block = BlockQ6_K;
  const auto low = load_words<sizeof(Block::ql) / sizeof(Word)>(block + offsetof(Block, ql), row_bytes);
  Slices<Block> slices = two_bit_planes<Block>(
      load_words<sizeof(Block::qh) / sizeof(Word)>(block + offsetof(Block, qh), row_bytes));
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const std::size_t first = s / 4 * 2 * kGroups + s % 2 * kGroups;
    for (std::size_t g = 0; g < kGroups; ++g)
      slices[s][g] = slices[s][g] << 4 | (low[first + g] >> (s % 4 / 2 * 4) & kNibbles);
  }
  return slices;
}

// ---- Whole panels

template <typename Block, typename Unpack>
void pack_blocks(const PanelBlockLayout& layout, std::size_t n_cols, const std::byte* rows,
                 std::size_t row_bytes, Unpack unpack, std::byte* panel) {
  const std::size_t slice_bytes = kSliceBytes[static_cast<std::size_t>(layout.slice)];
  for (std::size_t i = 0; i < n_cols / Block::kElements; ++i, rows += sizeof(Block), panel += layout.bytes) {
    const Slices<Block> slices = unpack(rows, row_bytes);
    for (std::size_t s = 0; s < slices.size(); ++s)
      write_slice(layout.slice, slices[s], panel + layout.quants + slice_bytes * s);
    PanelBlockRow scales;
    for (std::size_t lane = 0; lane < kPanelRows; ++lane) {
      take_scales(load_block<Block>(rows + lane * row_bytes), scales);
      write_scales(layout, scales, lane, panel);
    }
  }
}

/// F32, and BF16 as pairs.
void pack_words(std::size_t n_words, const std::byte* rows, std::size_t row_bytes, std::byte* panel) {
  for (std::size_t w = 0; w < n_words; w += kQuad) {
    const auto words = load_words<kQuad>(rows + w * sizeof(Word), row_bytes);
    for (std::size_t i = 0; i < kQuad; ++i) store_word(words[i], panel + (w + i) * sizeof(Lanes));
  }
}

void store_halves(const Lanes& lanes, std::byte* to) {
  using Halves [[gnu::vector_size(8)]] = std::uint16_t;
  for (const Quad quad : lanes.quads) {
    const auto halves = __builtin_convertvector(quad, Halves);
    std::memcpy(to, &halves, sizeof halves);
    to += sizeof halves;
  }
}

void pack_halves(std::size_t n_cols, const std::byte* rows, std::size_t row_bytes, std::byte* panel) {
  constexpr std::size_t kBytes = kPanelRows * sizeof(Half);
  for (std::size_t k = 0; k < n_cols; k += 2 * kQuad) {
    for (const Lanes& pairs : load_words<kQuad>(rows + k * sizeof(Half), row_bytes)) {
      store_halves(pairs, panel);
      store_halves(pairs >> 16, panel + kBytes);
      panel += 2 * kBytes;
    }
  }
}

}  // namespace

bool write_panel(ElementType type, std::size_t n_cols, const std::byte* rows, std::size_t row_bytes,
                 std::byte* panel) {
  const PanelBlockLayout& layout = panel_block_layout(type);
  const auto pack = [&]<typename Block>(Block, auto unpack) {
    pack_blocks<Block>(layout, n_cols, rows, row_bytes, unpack, panel);
    return true;
  };
  switch (type) {
    case ElementType::f32:
      if (n_cols % 4 != 0) return false;
      pack_words(n_cols, rows, row_bytes, panel);
      return true;
    case ElementType::f16:
      if (n_cols % 8 != 0) return false;
      pack_halves(n_cols, rows, row_bytes, panel);
      return true;
    case ElementType::bf16:
      if (n_cols % 8 != 0) return false;
      pack_words(n_cols / 2, rows, row_bytes, panel);
      return true;
    case ElementType::q4_0: return pack(BlockQ4_0{}, unpack_halves<BlockQ4_0>);
    case ElementType::q4_1: return pack(BlockQ4_1{}, unpack_halves<BlockQ4_1>);
    case ElementType::q5_0: return pack(BlockQ5_0{}, unpack_halves<BlockQ5_0>);
    case ElementType::q5_1: return pack(BlockQ5_1{}, unpack_halves<BlockQ5_1>);
    case ElementType::q8_0: return pack(BlockQ8_0{}, unpack_bytes);
    case ElementType::iq4_nl: return pack(BlockIQ4_NL{}, unpack_halves<BlockIQ4_NL>);
    case ElementType::mxfp4: return pack(BlockMXFP4{}, unpack_halves<BlockMXFP4>);
    case ElementType::iq4_xs: return pack(BlockIQ4_XS{}, unpack_halves<BlockIQ4_XS>);
    case ElementType::q2_k: return pack(BlockQ2_K{}, unpack_two_bit_planes<BlockQ2_K>);
    case ElementType::q3_k: return pack(BlockQ3_K{}, unpack_two_bit_planes<BlockQ3_K>);
    case ElementType::q4_k: return pack(BlockQ4_K{}, unpack_nibble_planes<BlockQ4_K>);
    case ElementType::q5_k: return pack(BlockQ5_K{}, unpack_nibble_planes<BlockQ5_K>);
    case ElementType::q6_k: return pack(BlockQ6_K{}, unpack_six);
    default: return false;
  }
}

}  // namespace quipu::cpu
