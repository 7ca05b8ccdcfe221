#include "backend/cpu/kernels/panel.h"

#include <cstring>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel_write.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/blocks.h"

namespace quipu::cpu {
namespace {

using namespace panel_write;

constexpr std::uint8_t kQ8Zero = 128;

Word load_word(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

void read_nibbles(const std::byte* at, std::size_t first, std::size_t n_planes, Words<Word>& words) {
  for (std::size_t j = 0; j < n_planes; ++j) {
    const Word both = load_word(at + kPlane * j);
    words[first + 2 * j] = both & kNibbles;
    words[first + 2 * j + 1] = both >> 4 & kNibbles;
  }
}

void read_crumbs(const std::byte* at, std::size_t first, unsigned shift, Words<Word>& words) {
  const Word plane = load_word(at);
  for (std::size_t n = 0; n < 4; ++n) words[first + n] |= (plane >> (2 * n) & kCrumbs) << shift;
}

void read_bits(const std::byte* at, unsigned shift, Words<Word>& words) {
  const Word plane = load_word(at);
  for (std::size_t g = 0; g < kGroups; ++g) words[g] |= (plane >> g & kBits) << shift;
}

Words<Word> read_slice(SliceKind kind, const std::byte* at) {
  Words<Word> words{};
  switch (kind) {
    case SliceKind::none: break;
    case SliceKind::two:
      for (std::size_t half = 0; half < 2; ++half) read_crumbs(at + kPlane * half, 4 * half, 0, words);
      break;
    case SliceKind::three:
      for (std::size_t half = 0; half < 2; ++half) read_crumbs(at + kPlane * (1 + half), 4 * half, 0, words);
      read_bits(at, 2, words);
      break;
    case SliceKind::four: read_nibbles(at, 0, 4, words); break;
    case SliceKind::five:
      read_nibbles(at + kPlane, 0, 4, words);
      read_bits(at, 4, words);
      break;
    case SliceKind::six:
      for (std::size_t half = 0; half < 2; ++half) {
        read_nibbles(at + 3 * kPlane * half + kPlane, 4 * half, 2, words);
        read_crumbs(at + 3 * kPlane * half, 4 * half, 4, words);
      }
      break;
    case SliceKind::eight:
      for (std::size_t g = 0; g < kGroups; ++g) words[g] = load_word(at + kPlane * g);
      break;
  }
  return words;
}

// ---- From the file's blocks to rows taken apart, and back
// -----------------------------------------------------

template <typename Block>
void put_scales(const PanelBlockRow& row, Block& block) {
  auto scales = decltype(unpack_scales(block)){};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if constexpr (kHasDmin<Block>) {
      scales[i].scale = static_cast<std::uint8_t>(row.scales[i]);
      scales[i].min = static_cast<std::uint8_t>(row.mins[i]);
    } else {
      scales[i] = static_cast<std::int8_t>(row.scales[i]);
    }
  }
  pack_scales(scales, block);
}

/// Panel blocks that a block of a file becomes.
template <typename Block>
constexpr std::size_t kParts = 1;
template <>
constexpr std::size_t kParts<BlockNVFP4> = BlockNVFP4::kElements / kSlice;

template <typename Block>
void take_apart(const Block& block, PanelBlockRow* row) {
  const auto quants = unpack_quants(block);
  std::memcpy(row->quants.data(), quants.data(), quants.size());
  take_scales(block, *row);
}

template <typename Block>
void put_together(const PanelBlockRow* row, Block& block) {
  decltype(unpack_quants(block)) quants;
  std::memcpy(quants.data(), row->quants.data(), quants.size());
  pack_quants(quants, block);
  block.d = row->d;
  if constexpr (kHasM<Block>) block.m = row->m;
  if constexpr (kHasDmin<Block>) block.dmin = row->m;
  if constexpr (Block::kElements == 256) put_scales(*row, block);
}

template <>
void take_apart(const BlockQ8_0& block, PanelBlockRow* row) {
  for (std::size_t i = 0; i < kSlice; ++i) row->quants[i] = static_cast<std::uint8_t>(block.qs[i]) ^ kQ8Zero;
  take_scales(block, *row);
}

template <>
void put_together(const PanelBlockRow* row, BlockQ8_0& block) {
  for (std::size_t i = 0; i < kSlice; ++i) {
    block.qs[i] = static_cast<std::int8_t>(static_cast<std::uint8_t>(row->quants[i] ^ kQ8Zero));
  }
  block.d = row->d;
}

template <>
void take_apart(const BlockMXFP4& block, PanelBlockRow* row) {
  const Quants32 quants = unpack_quants(block);
  std::memcpy(row->quants.data(), quants.data(), quants.size());
  take_scales(block, *row);
}

template <>
void put_together(const PanelBlockRow* row, BlockMXFP4& block) {
  Quants32 quants;
  std::memcpy(quants.data(), row->quants.data(), quants.size());
  pack_quants(quants, block);
  block.scale = static_cast<std::uint8_t>(row->scales[0]);
}

template <>
void take_apart(const BlockNVFP4& block, PanelBlockRow* rows) {
  const Quants64 quants = unpack_quants(block);
  for (std::size_t i = 0; i < kParts<BlockNVFP4>; ++i) {
    std::memcpy(rows[i].quants.data(), quants.data() + kSlice * i, kSlice);
    for (std::size_t run = 0; run < 2; ++run) rows[i].scales[run] = block.scales[2 * i + run];
  }
}

template <>
void put_together(const PanelBlockRow* rows, BlockNVFP4& block) {
  Quants64 quants;
  for (std::size_t i = 0; i < kParts<BlockNVFP4>; ++i) {
    std::memcpy(quants.data() + kSlice * i, rows[i].quants.data(), kSlice);
    for (std::size_t run = 0; run < 2; ++run) {
      block.scales[2 * i + run] = static_cast<std::uint8_t>(rows[i].scales[run]);
    }
  }
  pack_quants(quants, block);
}

// ---- Whole rows
// --------------------------------------------------------------------------------------------------

template <typename Block>
void write_blocks(const PanelBlockLayout& layout, std::size_t n_cols, const std::byte* from, std::size_t lane,
                  std::byte* panel) {
  std::array<PanelBlockRow, kParts<Block>> rows;
  for (std::size_t i = 0; i < n_cols / Block::kElements; ++i) {
    take_apart(load_block<Block>(from + i * sizeof(Block)), rows.data());
    for (const PanelBlockRow& row : rows) {
      write_panel_block(layout, row, lane, panel);
      panel += layout.bytes;
    }
  }
}

template <typename Block>
void read_blocks(const PanelBlockLayout& layout, std::size_t n_cols, const std::byte* panel, std::size_t lane,
                 std::byte* to) {
  std::array<PanelBlockRow, kParts<Block>> rows;
  for (std::size_t i = 0; i < n_cols / Block::kElements; ++i) {
    for (PanelBlockRow& row : rows) {
      row = read_panel_block(layout, panel, lane);
      panel += layout.bytes;
    }
    Block block{};
    put_together(rows.data(), block);
    std::memcpy(to + i * sizeof(Block), &block, sizeof block);
  }
}

/// Calls `visit` with an object of the type's block struct.
template <typename Visit>
void with_block(ElementType type, Visit visit) {
  switch (type) {
    case ElementType::q4_0: return visit(BlockQ4_0{});
    case ElementType::q4_1: return visit(BlockQ4_1{});
    case ElementType::q5_0: return visit(BlockQ5_0{});
    case ElementType::q5_1: return visit(BlockQ5_1{});
    case ElementType::q8_0: return visit(BlockQ8_0{});
    case ElementType::iq4_nl: return visit(BlockIQ4_NL{});
    case ElementType::q2_k: return visit(BlockQ2_K{});
    case ElementType::q3_k: return visit(BlockQ3_K{});
    case ElementType::q4_k: return visit(BlockQ4_K{});
    case ElementType::q5_k: return visit(BlockQ5_K{});
    case ElementType::q6_k: return visit(BlockQ6_K{});
    case ElementType::iq4_xs: return visit(BlockIQ4_XS{});
    case ElementType::mxfp4: return visit(BlockMXFP4{});
    case ElementType::nvfp4: return visit(BlockNVFP4{});
    default: QUIPU_CHECK(!"a type without blocks");
  }
}

/// Where element k of a row of floats lies in its panel.
std::size_t float_offset(ElementType type, std::size_t k, std::size_t lane) {
  switch (type) {
    case ElementType::f32: return (k * kPanelRows + lane) * 4;
    case ElementType::f16: return (k * kPanelRows + lane) * 2;
    default: return ((k / 2 * kPanelRows + lane) * 2 + k % 2) * 2;
  }
}

bool is_float(ElementType type) {
  return panel_block_layout(type).slice == SliceKind::none;
}

}  // namespace

const PanelBlockLayout& panel_block_layout(ElementType type) {
  switch (type) {
    case ElementType::f32: return kPanelF32;
    case ElementType::f16: return kPanelF16;
    case ElementType::bf16: return kPanelBF16;
    case ElementType::q4_0: return kPanelQ4_0;
    case ElementType::q4_1: return kPanelQ4_1;
    case ElementType::q5_0: return kPanelQ5_0;
    case ElementType::q5_1: return kPanelQ5_1;
    case ElementType::q8_0: return kPanelQ8_0;
    case ElementType::iq4_nl: return kPanelIQ4_NL;
    case ElementType::q2_k: return kPanelQ2_K;
    case ElementType::q3_k: return kPanelQ3_K;
    case ElementType::q4_k: return kPanelQ4_K;
    case ElementType::q5_k: return kPanelQ5_K;
    case ElementType::q6_k: return kPanelQ6_K;
    case ElementType::iq4_xs: return kPanelIQ4_XS;
    case ElementType::mxfp4: return kPanelMXFP4;
    case ElementType::nvfp4: return kPanelNVFP4;
    default: fail(ErrorCode::unsupported, "matrices of type {} cannot be packed", info(type).name);
  }
}

std::size_t panel_bytes(ElementType type, std::size_t n_cols) {
  const PanelBlockLayout& layout = panel_block_layout(type);
  const auto used = checked_mul(ceil_div(n_cols, layout.elements), layout.bytes);
  const auto rounded = used ? checked_round_up(*used, kPlane) : std::nullopt;
  if (!rounded)
    fail(ErrorCode::out_of_memory, "a {} matrix of {} columns is too large", info(type).name, n_cols);
  return *rounded;
}

void write_panel_block(const PanelBlockLayout& layout, const PanelBlockRow& row, std::size_t lane,
                       std::byte* block) {
  const std::size_t slice_bytes = kSliceBytes[static_cast<std::size_t>(layout.slice)];
  for (std::size_t i = 0; i < layout.elements / kSlice; ++i) {
    Words<Word> words;
    std::memcpy(words.data(), row.quants.data() + kSlice * i, kSlice);
    write_slice(layout.slice, words, block + layout.quants + slice_bytes * i + sizeof(Word) * lane);
  }
  write_scales(layout, row, lane, block);
}

PanelBlockRow read_panel_block(const PanelBlockLayout& layout, const std::byte* block, std::size_t lane) {
  PanelBlockRow row;
  const std::size_t slice_bytes = kSliceBytes[static_cast<std::size_t>(layout.slice)];
  for (std::size_t i = 0; i < layout.elements / kSlice; ++i) {
    const Words<Word> words =
        read_slice(layout.slice, block + layout.quants + slice_bytes * i + sizeof(Word) * lane);
    std::memcpy(row.quants.data() + kSlice * i, words.data(), kSlice);
  }
  const std::size_t n_runs = layout.run == 0 ? 0 : layout.elements / layout.run;
  for (std::size_t i = 0; i < n_runs; ++i) {
    const auto byte = static_cast<std::uint8_t>(block[layout.sub_scales + kPanelRows * i + lane]);
    row.scales[i] = layout.signed_scales ? static_cast<std::int8_t>(byte) : byte;
    if (layout.slice == SliceKind::two) {
      row.scales[i] = byte & 15;
      row.mins[i] = byte >> 4;
    }
    if (layout.sub_mins > 0) {
      row.mins[i] = static_cast<std::uint8_t>(block[layout.sub_mins + kPanelRows * i + lane]);
    }
  }
  if (layout.d > 0) std::memcpy(&row.d, block + layout.d + sizeof(Half) * lane, sizeof(Half));
  if (layout.m > 0) std::memcpy(&row.m, block + layout.m + sizeof(Half) * lane, sizeof(Half));
  return row;
}

void write_panel_row(ElementType type, std::size_t n_cols, const std::byte* row, std::size_t lane,
                     std::byte* panel) {
  const PanelBlockLayout& layout = panel_block_layout(type);
  if (is_float(type)) {
    const std::size_t width = type == ElementType::f32 ? 4 : 2;
    for (std::size_t k = 0; k < n_cols; ++k) {
      std::memcpy(panel + float_offset(type, k, lane), row + k * width, width);
    }
    return;
  }
  with_block(type, [&]<typename Block>(Block) { write_blocks<Block>(layout, n_cols, row, lane, panel); });
}

void read_panel_row(ElementType type, std::size_t n_cols, const std::byte* panel, std::size_t lane,
                    std::byte* row) {
  const PanelBlockLayout& layout = panel_block_layout(type);
  if (is_float(type)) {
    const std::size_t width = type == ElementType::f32 ? 4 : 2;
    for (std::size_t k = 0; k < n_cols; ++k) {
      std::memcpy(row + k * width, panel + float_offset(type, k, lane), width);
    }
    return;
  }
  with_block(type, [&]<typename Block>(Block) { read_blocks<Block>(layout, n_cols, panel, lane, row); });
}

}  // namespace quipu::cpu
