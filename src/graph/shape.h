// Shapes of tensors. A dimension is a number, or one of the counts that only a run knows, so that one graph
// and one plan serve batches of every size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace quipu {

/// The counts that a run fills in.
struct Extents {
  std::size_t n_tokens = 0;   ///< tokens of the micro-batch
  std::size_t n_outputs = 0;  ///< rows of it whose results are asked for
};

/// One dimension: a fixed size, or a count of Extents.
class Dim {
 public:
  enum class Kind : std::uint8_t { fixed, tokens, outputs };

  constexpr Dim(std::size_t size)
      : size_(size) {}  // NOLINT(google-explicit-constructor): sizes are dimensions
  static constexpr Dim tokens() { return Dim(Kind::tokens); }
  static constexpr Dim outputs() { return Dim(Kind::outputs); }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_fixed() const { return kind_ == Kind::fixed; }
  std::size_t resolve(const Extents& extents) const;
  bool operator==(const Dim&) const = default;

 private:
  constexpr explicit Dim(Kind kind) : size_(0), kind_(kind) {}

  std::size_t size_;
  Kind kind_ = Kind::fixed;
};

/// 1 to 4 dimensions, outermost first, row-major. The first may be a count of Extents; the others are fixed.
class Shape {
 public:
  Shape(std::initializer_list<Dim> dims);

  std::size_t rank() const { return rank_; }
  const Dim& rows() const { return dims_[0]; }
  /// Fixed dimension i, counted from the outermost.
  std::size_t dim(std::size_t i) const;
  std::size_t last() const { return dim(rank_ - 1); }
  /// Elements in one row: the product of all dimensions but the first.
  std::size_t row_elements() const;

  bool operator==(const Shape& other) const;

 private:
  std::array<Dim, 4> dims_{1, 1, 1, 1};
  std::size_t rank_ = 0;
};

/// "[n_tokens, 16, 128]"
std::string to_string(const Shape& shape);

}  // namespace quipu
