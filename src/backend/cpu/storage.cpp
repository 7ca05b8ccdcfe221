#include "backend/cpu/storage.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "quant/quant.h"

namespace quipu::cpu {
namespace {

std::size_t checked_product(std::size_t a, std::size_t b) {
  const auto product = checked_mul(a, b);
  if (!product) fail(ErrorCode::out_of_memory, "{} pieces of {} bytes do not fit the address space", a, b);
  return *product;
}

KvLayout layout_of(const KvShape& shape) {
  for (const ElementType type : {shape.k_type, shape.v_type}) {
    if (type != ElementType::f32 && type != ElementType::f16) {
      fail(ErrorCode::unsupported, "keys and values of type {} are not supported (F32 and F16 are)",
           info(type).name);
    }
  }
  return {shape.k_type, shape.v_type, shape.n_kv_heads, shape.k_dim, shape.v_dim};
}

}  // namespace

VectorStorage::VectorStorage(ElementType type, std::size_t n_rows, std::size_t row_elements)
    : type_(type), row_elements_(row_elements) {
  if (type != ElementType::f32 && type != ElementType::f16 && type != ElementType::bf16) {
    fail(ErrorCode::unsupported, "type {} is not one for vectors (F32, F16 and BF16 are)", info(type).name);
  }
  values_.resize(checked_product(n_rows, row_elements));
}

void VectorStorage::set_rows(std::size_t slab, std::size_t first_row, std::span<const std::byte> rows) {
  const std::size_t n = rows.size() / row_bytes(type_, 1);
  const std::size_t first = first_row * row_elements_;
  QUIPU_CHECK(slab == 0 && first + n <= values_.size());
  decode_row(type_, rows, std::span(values_).subspan(first, n));
}

void VectorStorage::get_rows(std::size_t slab, std::size_t first_row, std::span<std::byte> rows) const {
  const std::size_t n = rows.size() / row_bytes(type_, 1);
  const std::size_t first = first_row * row_elements_;
  QUIPU_CHECK(slab == 0 && first + n <= values_.size());
  encode_row(type_, std::span(values_).subspan(first, n), rows);
}

KvPages::KvPages(const KvShape& shape, std::size_t n_pages)
    : layout_(layout_of(shape)), n_pages_(n_pages), pages_(checked_product(n_pages, layout_.page_bytes())) {}

void KvPages::copy_page(std::int32_t from, std::int32_t to) {
  QUIPU_CHECK(from >= 0 && to >= 0 && static_cast<std::size_t>(std::max(from, to)) < n_pages_);
  std::memcpy(page(to), page(from), layout_.page_bytes());
}

void KvPages::copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                        std::int32_t to_slot) {
  QUIPU_CHECK(from_page >= 0 && to_page >= 0 &&
              static_cast<std::size_t>(std::max(from_page, to_page)) < n_pages_);
  std::vector<float> k(layout_.n_kv_heads * layout_.k_dim);
  std::vector<float> v(layout_.n_kv_heads * layout_.v_dim);
  load_cell(layout_, page(from_page), static_cast<std::size_t>(from_slot), k.data(), v.data());
  store_cell(layout_, page(to_page), static_cast<std::size_t>(to_slot), k.data(), v.data());
}

void KvPages::clear() {
  const std::span<std::byte> bytes = pages_.bytes();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
}

}  // namespace quipu::cpu
