#include "backend/cpu/storage.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/kernels.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/math.h"
#include "graph/ops/rope.h"
#include "quant/quant.h"

namespace quipu::cpu {
namespace {

std::size_t checked_product(std::size_t a, std::size_t b) {
  const auto product = checked_mul(a, b);
  if (!product) fail(ErrorCode::out_of_memory, "{} pieces of {} bytes do not fit the address space", a, b);
  return *product;
}

/// Checks what the layout takes for granted: types, whole blocks, and sizes that do not overflow.
KvLayout layout_of(const KvShape& shape) {
  struct Part {
    const char* name;
    ElementType type;
    std::size_t dim;
  };
  for (const Part& part :
       {Part{"keys", shape.k_type, shape.k_dim}, Part{"values", shape.v_type, shape.v_dim}}) {
    if (!is_cache_type(part.type)) {
      fail(ErrorCode::unsupported,
           "{} of type {} are not supported (F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0 and IQ4_NL are)",
           part.name, info(part.type).name);
    }
    if (part.dim % info(part.type).block_elements != 0) {
      fail(ErrorCode::unsupported,
           "{} of {} elements cannot be of type {}: not a multiple of its block of {}", part.name, part.dim,
           info(part.type).name, info(part.type).block_elements);
    }
    constexpr std::size_t kSlack = 8;  // for what the layout rounds up, and both parts
    checked_product(checked_product(part.dim, kPageSlots * kSlack * sizeof(float)), shape.n_kv_heads);
  }
  return {shape.k_type, shape.v_type, shape.n_kv_heads, shape.k_dim, shape.v_dim};
}

/// Turns the rotated part of keys.
class KeyTurner {
 public:
  KeyTurner(const KvLayout& layout, const KeyRotation& rotation)
      : layout_(layout),
        rotation_(rotation),
        n_rotated_(2 * rotation.frequencies.size()),
        key_(layout.k_encoded_bytes()),
        cos_sin_(n_rotated_) {
    QUIPU_CHECK(rotation.first <= layout.k_dim && n_rotated_ <= layout.k_dim - rotation.first);
    // The blocks that the rotated part touches: others keep their bytes.
    const std::size_t block = info(layout.k_type).block_elements;
    first_ = rotation.first / block * block;
    numbers_.resize(round_up(rotation.first + n_rotated_, block) - first_);
    part_ =
        std::span(key_).subspan(row_bytes(layout.k_type, first_), row_bytes(layout.k_type, numbers_.size()));
  }

  void turn(std::byte* page, std::size_t slot, std::int32_t delta) {
    set_angles(delta);
    float* rotated = numbers_.data() + (rotation_.first - first_);
    for (std::size_t head = 0; head < layout_.n_kv_heads; ++head) {
      read_key(layout_, page, head, slot, key_.data());
      decode_row(layout_.k_type, part_, numbers_);
      kernels().rope(rotated, cos_sin_.data(), n_rotated_, rotation_.style == RopeStyle::halves, n_rotated_,
                     rotated);
      kernels().encode_cells(layout_.k_type, numbers_.data(), numbers_.size(), part_.data());
      write_key(layout_, page, head, slot, key_.data());
    }
  }

 private:
  void set_angles(std::int32_t delta) {
    if (delta == delta_) return;
    delta_ = delta;
    for (std::size_t i = 0; i < rotation_.frequencies.size(); ++i) {
      const auto angle = exact_math::sin_cos(delta * rotation_.frequencies[i]);
      cos_sin_[2 * i] = static_cast<float>(angle.cos);
      cos_sin_[2 * i + 1] = static_cast<float>(angle.sin);
    }
  }

  const KvLayout& layout_;
  const KeyRotation& rotation_;
  std::size_t n_rotated_;
  std::size_t first_;
  std::vector<std::byte> key_;
  std::span<std::byte> part_;
  std::vector<float> numbers_;
  std::vector<float> cos_sin_;
  std::int32_t delta_ = 0;  // that cos_sin_ is of
};

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

KvPages::KvPages(const KvShape& shape, std::size_t n_pages, Backing backing)
    : layout_(layout_of(shape)),
      page_bytes_(layout_.page_bytes()),
      n_pages_(backing == Backing::none ? 0 : n_pages),
      pages_(checked_product(n_pages, page_bytes_), backing),
      copied_cell_(cell_bytes()) {}

KvShape KvPages::shape() const {
  return {layout_.k_type, layout_.v_type, layout_.n_kv_heads, layout_.k_dim, layout_.v_dim};
}

void KvPages::check_cell(std::int32_t page, std::int32_t slot) const {
  QUIPU_CHECK(page >= 0 && static_cast<std::size_t>(page) < n_pages_);
  QUIPU_CHECK(slot >= 0 && static_cast<std::size_t>(slot) < kPageSlots);
}

void KvPages::copy_page(std::int32_t from, std::int32_t to) {
  check_cell(from, 0);
  check_cell(to, 0);
  std::memmove(page(to), page(from), page_bytes_);
}

void KvPages::copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                        std::int32_t to_slot) {
  get_cell(from_page, from_slot, copied_cell_);
  set_cell(to_page, to_slot, copied_cell_);
}

std::size_t KvPages::cell_bytes() const {
  return layout_.n_kv_heads * (layout_.k_encoded_bytes() + layout_.v_encoded_bytes());
}

void KvPages::get_cell(std::int32_t page_number, std::int32_t slot, std::span<std::byte> bytes) const {
  check_cell(page_number, slot);
  QUIPU_CHECK(bytes.size() == cell_bytes());
  const std::byte* from = first_page() + static_cast<std::size_t>(page_number) * page_bytes_;
  std::byte* keys = bytes.data();
  std::byte* values = keys + layout_.n_kv_heads * layout_.k_encoded_bytes();
  for (std::size_t head = 0; head < layout_.n_kv_heads; ++head) {
    read_key(layout_, from, head, static_cast<std::size_t>(slot), keys + head * layout_.k_encoded_bytes());
    read_value(layout_, from, head, static_cast<std::size_t>(slot),
               values + head * layout_.v_encoded_bytes());
  }
}

void KvPages::set_cell(std::int32_t page_number, std::int32_t slot, std::span<const std::byte> bytes) {
  check_cell(page_number, slot);
  QUIPU_CHECK(bytes.size() == cell_bytes());
  const std::byte* keys = bytes.data();
  const std::byte* values = keys + layout_.n_kv_heads * layout_.k_encoded_bytes();
  std::byte* to = page(page_number);
  for (std::size_t head = 0; head < layout_.n_kv_heads; ++head) {
    write_key(layout_, to, head, static_cast<std::size_t>(slot), keys + head * layout_.k_encoded_bytes());
    write_value(layout_, to, head, static_cast<std::size_t>(slot), values + head * layout_.v_encoded_bytes());
  }
}

void KvPages::rotate_keys(std::span<const CellShift> cells, const KeyRotation& rotation) {
  KeyTurner turner(layout_, rotation);
  for (const CellShift& cell : cells) {
    check_cell(cell.page, cell.slot);
    if (cell.delta != 0) turner.turn(page(cell.page), static_cast<std::size_t>(cell.slot), cell.delta);
  }
}

void KvPages::clear() {
  const std::span<std::byte> bytes = pages_.bytes();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
}

}  // namespace quipu::cpu
