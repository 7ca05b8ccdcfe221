// Where keys and values lie in a page, and how they get there and back.
#include "backend/cpu/kernels/kv_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/quant.h"

namespace quipu::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLanes = 16;
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kHalf = sizeof(std::uint16_t);

std::size_t element_bytes(ElementType type) {
  return info(type).block_bytes;
}

/// Where one slot's share of block `index` of a key lies.
struct BlockPlace {
  std::size_t quants, fifth_bits, scale, min;
};

BlockPlace block_place(const CellBlockForm& form, const KeyParts& parts, std::size_t index,
                       std::size_t slot) {
  return {(index * form.n_words * kPageSlots + slot) * kWord,
          parts.fifth_bits + (index * kPageSlots + slot) * kWord,
          parts.scales + (index * kPageSlots + slot) * kHalf,
          parts.mins + (index * kPageSlots + slot) * kHalf};
}

/// Calls copy(offset in K, offset in the block, bytes) for every piece of a block.
template <typename Copy>
void for_each_piece(const CellBlockForm& form, const BlockPlace& place, Copy copy) {
  std::size_t at = 0;
  const auto piece = [&](std::size_t in_keys, std::size_t n) {
    copy(in_keys, at, n);
    at += n;
  };
  piece(place.scale, kHalf);
  if (form.has_min) piece(place.min, kHalf);
  if (form.has_fifth_bits) piece(place.fifth_bits, kWord);
  for (std::size_t w = 0; w < form.n_words; ++w) piece(place.quants + w * kPageSlots * kWord, kWord);
}

std::size_t block_bytes(ElementType type) {
  return info(type).block_bytes;
}

void write_key_block(const KvLayout& layout, std::byte* keys, std::size_t slot, std::size_t index,
                     const std::byte* block) {
  const CellBlockForm form = cell_block_form(layout.k_type);
  const BlockPlace place = block_place(form, key_parts(layout.k_type, layout.k_dim), index, slot);
  for_each_piece(form, place, [&](std::size_t in_keys, std::size_t in_block, std::size_t n) {
    std::memcpy(keys + in_keys, block + in_block, n);
  });
}

void read_key_block(const KvLayout& layout, const std::byte* keys, std::size_t slot, std::size_t index,
                    std::byte* block) {
  const CellBlockForm form = cell_block_form(layout.k_type);
  const BlockPlace place = block_place(form, key_parts(layout.k_type, layout.k_dim), index, slot);
  for_each_piece(form, place, [&](std::size_t in_keys, std::size_t in_block, std::size_t n) {
    std::memcpy(block + in_block, keys + in_keys, n);
  });
}

std::size_t value_offset(const KvLayout& layout, std::size_t head, std::size_t slot) {
  return head * layout.head_bytes() + layout.k_bytes() + slot * layout.v_row_bytes();
}

/// Encodes [n_heads, dim] numbers and calls put(head, number of the block in the head, its bytes).
template <typename Put>
void for_each_block(ElementType type, std::size_t dim, std::size_t n_heads, const float* x,
                    EncodeCells encode, Put put) {
  constexpr std::size_t kAtOnce = 32;
  std::byte blocks[kAtOnce * kCellBlockBytes];
  const std::size_t size = block_bytes(type);
  const std::size_t n_in_head = dim / kCellBlock;
  const std::size_t n_blocks = n_heads * n_in_head;
  for (std::size_t i = 0; i < n_blocks; i += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, n_blocks - i);
    encode(type, x + i * kCellBlock, count * kCellBlock, blocks);
    for (std::size_t j = 0; j < count; ++j) {
      put((i + j) / n_in_head, (i + j) % n_in_head, blocks + j * size);
    }
  }
}

float finite(float x, float limit) {
  return x != x ? 0.0f : std::min(std::max(x, -limit), limit);
}

}  // namespace

std::size_t KvLayout::k_bytes() const {
  return kPageSlots * k_encoded_bytes();
}

std::size_t KvLayout::v_row_bytes() const {
  return is_cache_block_type(v_type) ? v_encoded_bytes() : round_up(v_dim, kLanes) * element_bytes(v_type);
}

std::size_t KvLayout::v_bytes() const {
  return kPageSlots * v_row_bytes();
}

std::size_t KvLayout::head_bytes() const {
  return round_up(k_bytes() + v_bytes(), kLine);
}

std::size_t KvLayout::page_bytes() const {
  return n_kv_heads * head_bytes();
}

std::size_t KvLayout::k_encoded_bytes() const {
  return row_bytes(k_type, k_dim);
}

std::size_t KvLayout::v_encoded_bytes() const {
  return row_bytes(v_type, v_dim);
}

bool is_cache_type(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16 ||
         is_cache_block_type(type);
}

bool is_cache_block_type(ElementType type) {
  switch (type) {
    case ElementType::q8_0:
    case ElementType::q5_1:
    case ElementType::q5_0:
    case ElementType::q4_1:
    case ElementType::q4_0:
    case ElementType::iq4_nl: return true;
    default: return false;
  }
}

CellBlockForm cell_block_form(ElementType type) {
  switch (type) {
    case ElementType::q8_0: return {8, false, false, 128};
    case ElementType::q5_1: return {4, true, true, 0};
    case ElementType::q5_0: return {4, true, false, 16};
    case ElementType::q4_1: return {4, false, true, 0};
    case ElementType::q4_0: return {4, false, false, 8};
    case ElementType::iq4_nl: return {4, false, false, 128};
    default: QUIPU_CHECK(!"a type without blocks of 32");
  }
}

KeyParts key_parts(ElementType type, std::size_t k_dim) {
  const CellBlockForm form = cell_block_form(type);
  const std::size_t n_slots = k_dim / kCellBlock * kPageSlots;
  const std::size_t fifth_bits = n_slots * form.n_words * kWord;
  const std::size_t scales = fifth_bits + (form.has_fifth_bits ? n_slots * kWord : 0);
  return {fifth_bits, scales, scales + n_slots * kHalf};
}

void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v) {
  QUIPU_CHECK(slot < kPageSlots);
  kernels().store_cell(layout, page, slot, k, v);
}

void load_cell(const KvLayout& layout, const std::byte* page, std::size_t slot, float* k, float* v) {
  QUIPU_CHECK(slot < kPageSlots);
  std::vector<std::byte> key(layout.k_encoded_bytes());
  std::vector<std::byte> value(layout.v_encoded_bytes());
  for (std::size_t head = 0; head < layout.n_kv_heads; ++head) {
    read_key(layout, page, head, slot, key.data());
    decode_row(layout.k_type, key, std::span(k + head * layout.k_dim, layout.k_dim));
    read_value(layout, page, head, slot, value.data());
    decode_row(layout.v_type, value, std::span(v + head * layout.v_dim, layout.v_dim));
  }
}

void write_key(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t slot,
               const std::byte* key) {
  std::byte* keys = page + head * layout.head_bytes();
  const bool has_blocks = is_cache_block_type(layout.k_type);
  const std::size_t size = block_bytes(layout.k_type);
  for (std::size_t i = 0; has_blocks && i < layout.k_dim / kCellBlock; ++i) {
    write_key_block(layout, keys, slot, i, key + i * size);
  }
  for (std::size_t d = 0; !has_blocks && d < layout.k_dim; ++d) {
    std::memcpy(keys + (d * kPageSlots + slot) * size, key + d * size, size);
  }
}

void read_key(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t slot,
              std::byte* key) {
  const std::byte* keys = page + head * layout.head_bytes();
  const bool has_blocks = is_cache_block_type(layout.k_type);
  const std::size_t size = block_bytes(layout.k_type);
  for (std::size_t i = 0; has_blocks && i < layout.k_dim / kCellBlock; ++i) {
    read_key_block(layout, keys, slot, i, key + i * size);
  }
  for (std::size_t d = 0; !has_blocks && d < layout.k_dim; ++d) {
    std::memcpy(key + d * size, keys + (d * kPageSlots + slot) * size, size);
  }
}

void write_value(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t slot,
                 const std::byte* value) {
  std::memcpy(page + value_offset(layout, head, slot), value, layout.v_encoded_bytes());
}

void read_value(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t slot,
                std::byte* value) {
  std::memcpy(value, page + value_offset(layout, head, slot), layout.v_encoded_bytes());
}

void encode_finite(ElementType type, const float* x, std::size_t n, std::byte* out) {
  constexpr float kLargestHalf = 65504.0f;
  constexpr float kLargestBrain = 0x1.fep+127f;
  const float limit = type == ElementType::f16    ? kLargestHalf
                      : type == ElementType::bf16 ? kLargestBrain
                                                  : std::numeric_limits<float>::max();
  const std::size_t size = block_bytes(type);
  const std::size_t elements = info(type).block_elements;
  for (std::size_t i = 0; i < n; i += kCellBlock) {
    const std::size_t count = std::min(kCellBlock, n - i);
    float numbers[kCellBlock];
    for (std::size_t j = 0; j < count; ++j) numbers[j] = finite(x[i + j], limit);
    encode_row(type, std::span(numbers).first(count),
               std::span(out + i / elements * size, count / elements * size));
  }
}

void store_key_blocks(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k,
                      EncodeCells encode) {
  const std::size_t head_bytes = layout.head_bytes();
  for_each_block(layout.k_type, layout.k_dim, layout.n_kv_heads, k, encode,
                 [&](std::size_t head, std::size_t index, const std::byte* block) {
                   write_key_block(layout, page + head * head_bytes, slot, index, block);
                 });
}

void store_value_blocks(const KvLayout& layout, std::byte* page, std::size_t slot, const float* v,
                        EncodeCells encode) {
  const std::size_t head_bytes = layout.head_bytes();
  const std::size_t size = block_bytes(layout.v_type);
  std::byte* values = page + value_offset(layout, 0, slot);
  for_each_block(layout.v_type, layout.v_dim, layout.n_kv_heads, v, encode,
                 [&](std::size_t head, std::size_t index, const std::byte* block) {
                   std::memcpy(values + head * head_bytes + index * size, block, size);
                 });
}

}  // namespace quipu::cpu
