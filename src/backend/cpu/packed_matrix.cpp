#include "backend/cpu/packed_matrix.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/panel.h"
#include "base/checked.h"
#include "base/error.h"
#include "quant/quant.h"

namespace quipu::cpu {

std::size_t packed_bytes(ElementType type, std::size_t n_slabs, std::size_t n_rows, std::size_t n_cols) {
  if (n_cols % info(type).block_elements != 0) {
    fail(ErrorCode::invalid_argument, "{} columns are not whole blocks of {} ({} elements)", n_cols,
         info(type).name, info(type).block_elements);
  }
  const std::size_t n_panels = n_rows / kPanelRows + (n_rows % kPanelRows != 0 ? 1 : 0);
  const auto total_panels = checked_mul(n_panels, n_slabs);
  const auto bytes = total_panels ? checked_mul(*total_panels, panel_bytes(type, n_cols)) : std::nullopt;
  if (!bytes) {
    fail(ErrorCode::out_of_memory, "a packed matrix of {} x {} x {} {} does not fit into memory", n_slabs,
         n_rows, n_cols, info(type).name);
  }
  return *bytes;
}

PackedMatrix::PackedMatrix(ElementType type, std::size_t n_slabs, std::size_t n_rows, std::size_t n_cols,
                           Backing backing)
    : type_(type),
      n_slabs_(n_slabs),
      n_rows_(n_rows),
      n_cols_(n_cols),
      panel_bytes_(cpu::panel_bytes(type, n_cols)),
      storage_(packed_bytes(type, n_slabs, n_rows, n_cols), backing) {}

std::size_t PackedMatrix::n_panels() const {
  return n_rows_ / kPanelRows + (n_rows_ % kPanelRows != 0 ? 1 : 0);
}

std::size_t PackedMatrix::bytes() const {
  return storage_.size();
}

const std::byte* PackedMatrix::panel(std::size_t slab, std::size_t index) const {
  QUIPU_CHECK(slab < n_slabs_ && index < n_panels());
  return storage_.bytes().data() + (slab * n_panels() + index) * panel_bytes_;
}

std::size_t PackedMatrix::checked_row_count(std::size_t slab, std::size_t first_row,
                                            std::size_t n_bytes) const {
  const std::size_t bytes_per_row = row_bytes(type_, n_cols_);
  const std::size_t n = bytes_per_row == 0 ? 0 : n_bytes / bytes_per_row;
  QUIPU_CHECK(slab < n_slabs_ && first_row <= n_rows_ && n <= n_rows_ - first_row &&
              n * bytes_per_row == n_bytes);
  return n;
}

void PackedMatrix::set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows) {
  const std::size_t n = checked_row_count(slab, first_row, rows.size());
  const std::size_t bytes_per_row = row_bytes(type_, n_cols_);
  QUIPU_CHECK(n == 0 || !storage_.bytes().empty());
  std::byte* panels = storage_.bytes().data() + slab * n_panels() * panel_bytes_;
  for (std::size_t i = 0; i < n;) {
    const std::size_t row = first_row + i;
    const std::byte* from = rows.data() + i * bytes_per_row;
    std::byte* panel = panels + row / kPanelRows * panel_bytes_;
    const bool is_whole = row % kPanelRows == 0 && n - i >= kPanelRows;
    if (is_whole && write_panel(type_, n_cols_, from, bytes_per_row, panel)) {
      i += kPanelRows;
    } else {
      write_panel_row(type_, n_cols_, from, row % kPanelRows, panel);
      ++i;
    }
  }
}

void PackedMatrix::get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const {
  const std::size_t n = checked_row_count(slab, first_row, rows.size());
  const std::size_t bytes_per_row = row_bytes(type_, n_cols_);
  if (storage_.bytes().empty()) return std::fill(rows.begin(), rows.end(), std::byte{0});
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = first_row + i;
    read_panel_row(type_, n_cols_, panel(slab, row / kPanelRows), row % kPanelRows,
                   rows.data() + i * bytes_per_row);
  }
}

void PackedMatrix::decode_row(std::size_t slab, std::size_t row, std::span<float> out,
                              std::span<std::byte> scratch) const {
  QUIPU_CHECK(out.size() == n_cols_);
  const std::span<std::byte> bytes = scratch.first(row_bytes(type_, n_cols_));
  get_rows(slab, row, bytes);
  quipu::decode_row(type_, bytes, out);
}

}  // namespace quipu::cpu
