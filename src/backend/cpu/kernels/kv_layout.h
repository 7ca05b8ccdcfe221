// The bytes of a page of keys and values, the same for every instruction set: 16 cells of all key/value heads
// of one layer. Only plain declarations here: vector code includes this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/element_type.h"

namespace quipu::cpu {

/// Places in a page of the cache; slot = place mod 16.
inline constexpr std::size_t kPageSlots = 16;
/// Elements in a block of those cache types that have blocks.
inline constexpr std::size_t kCellBlock = 32;
/// Bytes of the largest block, Q8_0's.
inline constexpr std::size_t kCellBlockBytes = 34;

/// Byte layout of one layer's cache: [page][kv_head]{K, V}, each head at a multiple of 64 bytes.
///
/// K, float types: [dim][16 slots].
/// K, block types, the parts of blocks apart: quants, for each block 8 (Q8_0) or 4 words of four bytes,
/// [word][16 slots]; then, where the type has them, fifth bits, one word for each block, [block][16 slots];
/// scales [block][16 slots] halves; minima [block][16 slots] halves. A word is four neighbouring bytes of the
/// file's block (quant/blocks.h): four quants, or the nibbles of elements 4w.. (low) and 4w + 16.. (high). V:
/// [16 slots][row]. A row of a float type is filled up to a multiple of 16 elements; rows of block types are
/// blocks as in files.
struct KvLayout {
  ElementType k_type = ElementType::f16;
  ElementType v_type = ElementType::f16;
  std::size_t n_kv_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;

  std::size_t k_bytes() const;      ///< K part of one head in one page
  std::size_t v_bytes() const;      ///< V part of one head in one page
  std::size_t v_row_bytes() const;  ///< V of one slot
  std::size_t head_bytes() const;   ///< both, rounded up to 64
  std::size_t page_bytes() const;
  /// Bytes of a key or value as quant/quant.h encodes it.
  std::size_t k_encoded_bytes() const;
  std::size_t v_encoded_bytes() const;
};

/// F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0 or IQ4_NL.
bool is_cache_type(ElementType type);
/// Of these, the last six.
bool is_cache_block_type(ElementType type);

/// What blocks of a type are made of.
struct CellBlockForm {
  std::size_t n_words;  ///< of quants
  bool has_fifth_bits;
  bool has_min;
  std::int32_t zero_point;  ///< what is taken off the quants; for IQ4_NL off 128 + the table's value
};
CellBlockForm cell_block_form(ElementType type);

/// Offsets of the parts of a head's K, of a block type; those of parts that the type lacks mean nothing.
struct KeyParts {
  std::size_t fifth_bits;
  std::size_t scales;
  std::size_t mins;
};
KeyParts key_parts(ElementType type, std::size_t k_dim);

/// Puts one token's keys [n_kv_heads, k_dim] and values [n_kv_heads, v_dim] into a slot, as encode_row of
/// quant/quant.h encodes them. Numbers past the type's range become its largest, infinities the largest
/// float, NaN becomes 0: a cell is always finite.
void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v);
/// Reads a slot back (exactly the stored numbers).
void load_cell(const KvLayout& layout, const std::byte* page, std::size_t slot, float* k, float* v);

/// One head's key and value in a slot, encoded as in quant/quant.h, both ways.
void write_key(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t slot,
               const std::byte* key);
void read_key(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t slot,
              std::byte* key);
void write_value(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t slot,
                 const std::byte* value);
void read_value(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t slot,
                std::byte* value);

/// Encodes n numbers (whole blocks) of any cache type, made finite as store_cell does.
void encode_finite(ElementType type, const float* x, std::size_t n, std::byte* out);

// For kernels that store cells of block types.

/// Fills `out` with the encoding of n numbers.
using EncodeCells = void (*)(ElementType type, const float* x, std::size_t n, std::byte* out);
/// All heads' keys, or values, in a slot: many blocks are encoded at a time.
void store_key_blocks(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k,
                      EncodeCells encode);
void store_value_blocks(const KvLayout& layout, std::byte* page, std::size_t slot, const float* v,
                        EncodeCells encode);

}  // namespace quipu::cpu
