// A weight matrix in the CPU backend's own form: panels of 16 rows, all of K contiguous, quants in groups of
// 4 k, then scales. Lossless: rows go in and come out as the file's bytes. Layout per type: kernels/panel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "quant/element_type.h"

namespace quipu::cpu {

/// `n_slabs` matrices (1, or one per expert) of [n_rows, n_cols], each slab contiguous and relocatable.
class PackedMatrix {
 public:
  /// Allocates; rows are zero until set, and for good where nothing backs them. Error(out_of_memory);
  /// Error(invalid_argument) if n_cols is not whole blocks of the type; Error(unsupported) for a type that
  /// cannot be decoded.
  PackedMatrix(ElementType type, std::size_t n_slabs, std::size_t n_rows, std::size_t n_cols,
               Backing backing = Backing::memory);

  ElementType type() const { return type_; }
  std::size_t n_slabs() const { return n_slabs_; }
  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_cols() const { return n_cols_; }
  std::size_t n_panels() const;
  std::size_t panel_bytes() const { return panel_bytes_; }
  std::size_t bytes() const;  ///< all that is allocated

  const std::byte* panel(std::size_t slab, std::size_t index) const;

  /// Packs rows [first_row, first_row + n) of a slab from the file's layout (n whole rows of row_bytes(type,
  /// n_cols)). Ranges that share no panel may be set at the same time from several threads.
  void set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows);
  /// The reverse, exactly.
  void get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const;
  /// One row as floats (decode_row of what get_rows gives), out of n_cols.
  /// `scratch` holds row_bytes() bytes.
  void decode_row(std::size_t slab, std::size_t row, std::span<float> out,
                  std::span<std::byte> scratch) const;

 private:
  /// How many rows `n_bytes` are; checks that they lie inside the slab.
  std::size_t checked_row_count(std::size_t slab, std::size_t first_row, std::size_t n_bytes) const;

  ElementType type_;
  std::size_t n_slabs_, n_rows_, n_cols_, panel_bytes_;
  AlignedBuffer storage_;
};

/// Bytes that a packed matrix of this shape takes, without making it.
std::size_t packed_bytes(ElementType type, std::size_t n_slabs, std::size_t n_rows, std::size_t n_cols);

}  // namespace quipu::cpu
