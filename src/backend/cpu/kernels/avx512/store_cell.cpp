// Storing a token's keys and values in a page: 16 numbers at a time, scattered over the page's rows for keys.
#include <immintrin.h>

#include <cstring>

#include "backend/cpu/kernels/avx512/row_ops.h"
#include "backend/cpu/kernels/avx512/vector_math.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kLanes = 16;

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : 2;
}

/// 16 numbers, NaN as 0 and the others brought into the type's range.
__m512 finite_elements(ElementType type, __m512 x) {
  const __m512 limit = _mm512_set1_ps(type == ElementType::f32 ? 0x1.fffffep+127f : 65504.0f);
  const __m512 number = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  return _mm512_min_ps(_mm512_max_ps(number, negate(limit)), limit);
}

/// Stores up to 16 elements `stride` elements apart.
void store_elements(ElementType type, std::byte* at, std::size_t stride, const float* x, std::size_t count) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1u);
  const __m512 values = finite_elements(type, _mm512_maskz_loadu_ps(mask, x));
  const std::size_t n = count < kLanes ? count : kLanes;
  alignas(64) std::byte converted[64];
  if (type == ElementType::f32) {
    _mm512_store_ps(converted, values);
  } else {
    const __m256i halves = _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_store_si256(reinterpret_cast<__m256i*>(converted), halves);
  }
  const std::size_t size = element_bytes(type);
  if (stride == 1) {
    std::memcpy(at, converted, n * size);
  } else if (type == ElementType::f32) {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(at + i * stride * 4, converted + i * 4, 4);
  } else {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(at + i * stride * 2, converted + i * 2, 2);
  }
}

}  // namespace

void store_cell(const KvLayout& layout, std::byte* page, std::size_t slot, const float* k, const float* v) {
  const std::size_t k_size = element_bytes(layout.k_type);
  const std::size_t v_size = element_bytes(layout.v_type);
  const std::size_t v_row = (layout.v_dim + kLanes - 1) / kLanes * kLanes;
  const std::size_t k_bytes = layout.k_bytes();
  const std::size_t head_bytes = layout.head_bytes();
  for (std::size_t head = 0; head < layout.n_kv_heads; ++head) {
    std::byte* keys = page + head * head_bytes;
    std::byte* values = keys + k_bytes + slot * v_row * v_size;
    for (std::size_t d = 0; d < layout.k_dim; d += kLanes) {
      store_elements(layout.k_type, keys + (d * kPageSlots + slot) * k_size, kPageSlots,
                     k + head * layout.k_dim + d, layout.k_dim - d);
    }
    for (std::size_t d = 0; d < layout.v_dim; d += kLanes) {
      store_elements(layout.v_type, values + d * v_size, 1, v + head * layout.v_dim + d, layout.v_dim - d);
    }
  }
}

}  // namespace quipu::cpu::avx512
