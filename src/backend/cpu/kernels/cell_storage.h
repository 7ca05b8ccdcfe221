// The way through a token's keys and values when they are stored: the same for all instruction sets, which
// bring the loops over numbers.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels/kv_layout.h"

namespace quipu::cpu {

static constexpr std::size_t cell_element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : 2;
}

/// kStore(type, at, stride, x, n) stores the first of n finite numbers, kWidth of them at most, `stride`
/// elements apart; kEncode(type, x, n_blocks, out) encodes blocks. Both must belong to one file alone
/// (unnamed namespaces), so that no instruction set's code is taken for another's.
template <auto kStore, std::size_t kWidth, auto kEncode>
struct CellStorage {
  static void store_row(ElementType type, std::byte* at, std::size_t stride, const float* x, std::size_t n) {
    for (std::size_t d = 0; d < n; d += kWidth)
      kStore(type, at + d * stride * cell_element_bytes(type), stride, x + d, n - d);
  }

  /// KernelTable::encode_cells
  static void encode_cells(ElementType type, const float* x, std::size_t n, std::byte* out) {
    if (is_cache_block_type(type)) {
      kEncode(type, x, n / kCellBlock, out);
    } else {
      store_row(type, out, 1, x, n);
    }
  }

  /// KernelTable::store_cell
  static void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k,
                         const float* v) {
    const bool k_blocks = is_cache_block_type(layout.k_type);
    const bool v_blocks = is_cache_block_type(layout.v_type);
    if (k_blocks) store_key_blocks(layout, page, slot, k, encode_cells);
    if (v_blocks) store_value_blocks(layout, page, slot, v, encode_cells);
    const std::size_t v_offset = layout.k_bytes() + slot * layout.v_row_bytes();
    const std::size_t head_bytes = layout.head_bytes();
    for (std::size_t head = 0; head < layout.n_kv_heads; ++head, page += head_bytes) {
      const float* key = k + head * layout.k_dim;
      const float* value = v + head * layout.v_dim;
      if (!k_blocks) {
        std::byte* const first = page + slot * cell_element_bytes(layout.k_type);
        store_row(layout.k_type, first, kPageSlots, key, layout.k_dim);
      }
      if (!v_blocks) store_row(layout.v_type, page + v_offset, 1, value, layout.v_dim);
    }
  }
};

}  // namespace quipu::cpu
