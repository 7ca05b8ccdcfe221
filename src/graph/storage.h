// What a device holds for the graph: weights and key/value pages. The graph only names them; their form is
// the backend's own, and rows go in and out in the file's layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "graph/shape.h"
#include "quant/element_type.h"

namespace quipu {

/// A weight in a device's private form (packed, uploaded ...). Rows are the file's bytes, exactly, both ways.
class WeightStorage {
 public:
  virtual ~WeightStorage() = default;

  /// Stores rows [first_row, ...) of matrix `slab`; whole rows.
  virtual void set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows) = 0;
  virtual void get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const = 0;
  /// Memory that the device keeps for it.
  virtual std::size_t bytes() const = 0;
};

/// Keys and values of one layer, in pages of 16 places.
class KvStorage {
 public:
  virtual ~KvStorage() = default;

  virtual void copy_page(std::int32_t from, std::int32_t to) = 0;
  /// One place's keys and values, exactly.
  virtual void copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                         std::int32_t to_slot) = 0;
  /// All cells zero, as when new.
  virtual void clear() = 0;
  virtual std::size_t bytes() const = 0;
};

/// What a weight is used as; this decides the form that a device gives it.
enum class WeightRole : std::uint8_t {
  matrix,  ///< [rows, cols] or [slabs, rows, cols] of any decodable type: products and look-ups
  vector,  ///< plain numbers, kept as float32: norms, biases, frequency factors
};

/// A weight of a loaded model. Matrices: [n_rows, n_cols] or [n_slabs, n_rows, n_cols]; vectors: any shape.
struct Weight {
  std::string name;
  ElementType type;
  WeightRole role;
  Shape shape;
  const WeightStorage* storage;
};

}  // namespace quipu
