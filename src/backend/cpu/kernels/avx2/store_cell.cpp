// Storing a token's keys and values in a page: 8 numbers at a time, scattered over the page's rows for keys.
#include <cstring>

#include "backend/cpu/kernels/avx2/encode_blocks.h"
#include "backend/cpu/kernels/avx2/lanes.h"
#include "backend/cpu/kernels/cell_storage.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx2 {
namespace {

float largest(ElementType type) {
  return type == ElementType::f16 ? 65504.0f : type == ElementType::bf16 ? 0x1.fep+127f : 0x1.fffffep+127f;
}

/// NaN as 0 and the others brought into the type's range.
__m256 finite_elements(ElementType type, __m256 x) {
  const __m256 limit = _mm256_set1_ps(largest(type));
  const __m256 low = _mm256_set1_ps(-largest(type));
  const __m256 number = _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_ORD_Q), x);
  return _mm256_min_ps(_mm256_max_ps(number, low), limit);
}

/// Finite numbers as bfloat16, rounded to nearest even.
__m128i to_brain(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}

/// Stores up to 8 elements `stride` elements apart.
void store_elements(ElementType type, std::byte* at, std::size_t stride, const float* x, std::size_t count) {
  const __m256 values = finite_elements(type, load_first(x, count));
  const std::size_t n = count < kWidth ? count : kWidth;
  alignas(32) std::byte converted[32];
  if (type == ElementType::f32) {
    _mm256_store_ps(reinterpret_cast<float*>(converted), values);
  } else {
    const __m128i halves = type == ElementType::bf16
                               ? to_brain(values)
                               : _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_store_si128(reinterpret_cast<__m128i*>(converted), halves);
  }
  const std::size_t size = cell_element_bytes(type);
  if (stride == 1) {
    std::memcpy(at, converted, n * size);
  } else if (type == ElementType::f32) {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(at + i * stride * 4, converted + i * 4, 4);
  } else {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(at + i * stride * 2, converted + i * 2, 2);
  }
}

using Storage = CellStorage<store_elements, kWidth, encode_blocks>;

}  // namespace

void add_cell_storage(KernelTable& table) {
  table.store_cell = Storage::store_cell;
  table.encode_cells = Storage::encode_cells;
}

}  // namespace quipu::cpu::avx2
