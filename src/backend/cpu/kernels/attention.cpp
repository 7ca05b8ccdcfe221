// The layout of a page and of a task's scratch, the same for every instruction set.
#include "backend/cpu/kernels/attention.h"

#include <cstring>

#include "backend/cpu/kernels/kernels.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"

namespace quipu::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLanes = 16;

std::size_t element_bytes(ElementType type) {
  QUIPU_CHECK(type == ElementType::f32 || type == ElementType::f16);
  return type == ElementType::f32 ? sizeof(float) : sizeof(std::uint16_t);
}

float load_element(ElementType type, const std::byte* at) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return f16_to_f32(half);
}

}  // namespace

std::size_t KvLayout::k_bytes() const {
  return round_up(k_dim * kPageSlots * element_bytes(k_type), kLine);
}

std::size_t KvLayout::v_bytes() const {
  return kPageSlots * round_up(v_dim, kLanes) * element_bytes(v_type);
}

std::size_t KvLayout::head_bytes() const {
  return k_bytes() + v_bytes();
}

std::size_t KvLayout::page_bytes() const {
  return n_kv_heads * head_bytes();
}

void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v) {
  QUIPU_CHECK(slot < kPageSlots);
  kernels().store_cell(layout, page, slot, k, v);
}

void load_cell(const KvLayout& layout, const std::byte* page, std::size_t slot, float* k, float* v) {
  QUIPU_CHECK(slot < kPageSlots);
  const std::size_t k_size = element_bytes(layout.k_type);
  const std::size_t v_size = element_bytes(layout.v_type);
  const std::size_t v_row = round_up(layout.v_dim, kLanes);
  for (std::size_t head = 0; head < layout.n_kv_heads; ++head) {
    const std::byte* keys = page + head * layout.head_bytes();
    const std::byte* values = keys + layout.k_bytes();
    for (std::size_t d = 0; d < layout.k_dim; ++d) {
      k[head * layout.k_dim + d] = load_element(layout.k_type, keys + (d * kPageSlots + slot) * k_size);
    }
    for (std::size_t d = 0; d < layout.v_dim; ++d) {
      v[head * layout.v_dim + d] = load_element(layout.v_type, values + (slot * v_row + d) * v_size);
    }
  }
}

AttentionScratch::AttentionScratch(const KvLayout& layout, std::size_t n_queries, std::size_t group)
    : v_padded(round_up(layout.v_dim, kLanes)) {
  const std::size_t n_rows = n_queries * group;
  std::size_t end = 0;
  const auto part = [&end](std::size_t n_floats) {
    const std::size_t start = end;
    end += round_up(n_floats, kLanes);
    return start;
  };
  q = part(n_rows * layout.k_dim);
  weights = part(n_rows * kTilePlaces);
  output = part(n_rows * v_padded);
  sum = part(n_rows * kLanes);
  max = part(n_rows);
  factor = part(n_rows);
  merged = part(n_rows * v_padded);
  merged_sum = part(n_rows * kLanes);
  merged_max = part(n_rows);
  visible = part(n_rows * 2);
  size = end;
}

std::size_t attention_scratch_bytes(const KvLayout& layout, std::size_t n_queries, std::size_t group) {
  return AttentionScratch(layout, n_queries, group).size * sizeof(float);
}

}  // namespace quipu::cpu
