// Storing a token's keys and values in a page: 16 numbers at a time, scattered over the page's rows for keys.
#include <immintrin.h>

#include <cstring>

#include "backend/cpu/kernels/avx512/encode_blocks.h"
#include "backend/cpu/kernels/avx512/vector_math.h"
#include "backend/cpu/kernels/cell_storage.h"
#include "backend/cpu/kernels/instruction_sets.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kLanes = 16;

float largest(ElementType type) {
  return type == ElementType::f16 ? 65504.0f : type == ElementType::bf16 ? 0x1.fep+127f : 0x1.fffffep+127f;
}

/// 16 numbers, NaN as 0 and the others brought into the type's range.
__m512 finite_elements(ElementType type, __m512 x) {
  const __m512 limit = _mm512_set1_ps(largest(type));
  const __m512 number = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  return _mm512_min_ps(_mm512_max_ps(number, negate(limit)), limit);
}

/// Finite numbers as bfloat16, rounded to nearest even. (The instruction for it takes subnormal numbers as
/// zero.)
__m256i to_brain(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

/// Stores up to 16 elements `stride` elements apart.
void store_elements(ElementType type, std::byte* at, std::size_t stride, const float* x, std::size_t count) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1u);
  const __m512 values = finite_elements(type, _mm512_maskz_loadu_ps(mask, x));
  const std::size_t n = count < kLanes ? count : kLanes;
  alignas(64) std::byte converted[64];
  if (type == ElementType::f32) {
    _mm512_store_ps(converted, values);
  } else if (type == ElementType::bf16) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(converted), to_brain(values));
  } else {
    const __m256i halves = _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_store_si256(reinterpret_cast<__m256i*>(converted), halves);
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

using Storage = CellStorage<store_elements, kLanes, encode_blocks>;

}  // namespace

void add_cell_storage(KernelTable& table) {
  table.store_cell = Storage::store_cell;
  table.encode_cells = Storage::encode_cells;
}

}  // namespace quipu::cpu::avx512
