#include "graph/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace quipu {

std::size_t Dim::resolve(const Extents& extents) const {
  switch (kind_) {
    case Kind::fixed: return size_;
    case Kind::tokens: return extents.n_tokens;
    case Kind::outputs: return extents.n_outputs;
  }
  return 0;
}

Shape::Shape(std::initializer_list<Dim> dims) : rank_(dims.size()) {
  QUIPU_CHECK(rank_ >= 1 && rank_ <= dims_.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  for (std::size_t i = 1; i < rank_; ++i) QUIPU_CHECK(dims_[i].is_fixed());
}

std::size_t Shape::dim(std::size_t i) const {
  QUIPU_CHECK(i < rank_ && dims_[i].is_fixed());
  return dims_[i].resolve({});
}

std::size_t Shape::row_elements() const {
  std::size_t product = 1;
  for (std::size_t i = 1; i < rank_; ++i) product *= dim(i);
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  switch (shape.rows().kind()) {
    case Dim::Kind::fixed: text += fmt::to_string(shape.dim(0)); break;
    case Dim::Kind::tokens: text += "n_tokens"; break;
    case Dim::Kind::outputs: text += "n_outputs"; break;
  }
  for (std::size_t i = 1; i < shape.rank(); ++i) text += fmt::format(", {}", shape.dim(i));
  return text + "]";
}

}  // namespace quipu
