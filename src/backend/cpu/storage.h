// What the CPU device keeps for the graph: packed matrices, plain vectors, pages of keys and values.
#pragma once

#include <vector>

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/device.h"
#include "base/aligned_buffer.h"
#include "graph/storage.h"

namespace quipu::cpu {

class MatrixStorage final : public WeightStorage {
 public:
  MatrixStorage(ElementType type, std::size_t n_slabs, std::size_t n_rows, std::size_t n_cols,
                Backing backing = Backing::memory)
      : matrix_(type, n_slabs, n_rows, n_cols, backing) {}

  const PackedMatrix& matrix() const { return matrix_; }
  void set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows) override {
    matrix_.set_rows(slab, first_row, rows);
  }
  void get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const override {
    matrix_.get_rows(slab, first_row, rows);
  }
  std::size_t bytes() const override { return matrix_.bytes(); }

 private:
  PackedMatrix matrix_;
};

/// Vectors are widened to float32, which loses nothing from f16 and bf16; get_rows gives the file's type
/// back.
class VectorStorage final : public WeightStorage {
 public:
  VectorStorage(ElementType type, std::size_t n_rows, std::size_t row_elements);

  const float* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  void set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows) override;
  void get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const override;
  std::size_t bytes() const override { return values_.size() * sizeof(float); }

 private:
  ElementType type_;
  std::size_t row_elements_;
  std::vector<float> values_;
};

class KvPages final : public KvStorage {
 public:
  /// Error(unsupported) names a type that caches cannot have, or a dim that is not whole blocks.
  KvPages(const KvShape& shape, std::size_t n_pages, Backing backing = Backing::memory);

  const KvLayout& layout() const { return layout_; }
  std::byte* page(std::int32_t number) {
    return pages_.bytes().data() + static_cast<std::size_t>(number) * page_bytes_;
  }
  const std::byte* first_page() const { return pages_.bytes().data(); }

  KvShape shape() const override;
  void copy_page(std::int32_t from, std::int32_t to) override;
  void copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                 std::int32_t to_slot) override;
  std::size_t cell_bytes() const override;
  void get_cell(std::int32_t page, std::int32_t slot, std::span<std::byte> bytes) const override;
  void set_cell(std::int32_t page, std::int32_t slot, std::span<const std::byte> bytes) override;
  void rotate_keys(std::span<const CellShift> cells, const KeyRotation& rotation) override;
  void clear() override;
  std::size_t bytes() const override { return pages_.size(); }

 private:
  void check_cell(std::int32_t page, std::int32_t slot) const;

  KvLayout layout_;
  std::size_t page_bytes_;
  std::size_t n_pages_;
  AlignedBuffer pages_;
  std::vector<std::byte> copied_cell_;
};

}  // namespace quipu::cpu
