// What a device holds for the graph: weights and key/value pages. The graph only names them; their form is
// the backend's own, and rows go in and out in the file's layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/shape.h"
#include "quant/element_type.h"

namespace quipu {

enum class RopeStyle : std::uint8_t;  // graph/ops/rope.h

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

/// Shape of one layer's keys and values. The types that have blocks of 32 elements need dims that are
/// multiples of 32.
struct KvShape {
  ElementType k_type = ElementType::f16;
  ElementType v_type = ElementType::f16;
  std::size_t n_kv_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;

  bool operator==(const KvShape&) const = default;
};

/// A pure rotation of keys: pair i turns by a position's delta times frequencies[i] (radians), without a
/// magnitude. It takes elements [first, first + 2 * frequencies.size()) of every head, paired as `style`
/// says.
struct KeyRotation {
  std::vector<double> frequencies;
  RopeStyle style;
  std::size_t first = 0;
};

/// A cell whose position has changed by `delta`.
struct CellShift {
  std::int32_t page;
  std::int32_t slot;
  std::int32_t delta;
};

/// Keys and values of one layer, in pages of 16 places.
class KvStorage {
 public:
  virtual ~KvStorage() = default;

  virtual KvShape shape() const = 0;
  // Copying and setting cannot fail: the books of the memory have been changed when it comes to that.

  virtual void copy_page(std::int32_t from, std::int32_t to) = 0;
  /// One place's keys and values, exactly.
  virtual void copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                         std::int32_t to_slot) = 0;
  /// A cell as state files hold it, whatever the pages look like: for each head the key, then for each head
  /// the value, rows of the element types as in quant/quant.h. What was set is what is got, bit for bit; it
  /// must stand for finite numbers.
  virtual std::size_t cell_bytes() const = 0;
  virtual void get_cell(std::int32_t page, std::int32_t slot, std::span<std::byte> bytes) const = 0;
  virtual void set_cell(std::int32_t page, std::int32_t slot, std::span<const std::byte> bytes) = 0;
  /// Turns the keys of cells, each as often as it is listed: decoded, rotated in float32, encoded again. A
  /// delta of 0 changes nothing.
  virtual void rotate_keys(std::span<const CellShift> cells, const KeyRotation& rotation) = 0;
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
