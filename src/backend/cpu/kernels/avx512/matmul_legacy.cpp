// Products with blocks of 32: an int32 sum inside the block, one fused multiply-add behind it (two with a
// minimum).
#include "backend/cpu/kernels/avx512/matmul_kernels.h"
#include "backend/cpu/kernels/avx512/matmul_slices.h"
#include "backend/cpu/kernels/avx512/matmul_tile.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kScaleAt = offsetof(ActivationBlock32, scale);
constexpr std::size_t kSumAt = offsetof(ActivationBlock32, sum);

/// kZeroShift: the zero point is 1 << kZeroShift; -1: there is none.
template <typename SliceType, const PanelBlockLayout& kBlockLayout, int kShift>
struct Weight {
  using Slice = SliceType;
  static constexpr const PanelBlockLayout& kLayout = kBlockLayout;
  static constexpr int kZeroShift = kShift;
  static constexpr bool kHasMin = kLayout.m != 0;
};

/// sum += (planes of groups 2j, 2j + 1) . activations
template <typename Weight, int j, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void add_pair(const std::byte* const (&w)[kPanels], const std::byte* x,
                                            std::size_t stride, __m512i (&sum)[kPanels][kTokens]) {
  Planes planes[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) planes[p] = Weight::Slice::template pair<j>(w[p]);
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512i y = broadcast(x + t * stride + 8 * j);
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = _mm512_dpbusd_epi32(sum[p][t], planes[p].even, y);
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512i y = broadcast(x + t * stride + 8 * j + 4);
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = _mm512_dpbusd_epi32(sum[p][t], planes[p].odd, y);
  }
}

template <typename Weight, std::size_t kPanels, std::size_t kTokens>
void legacy_tile(const Tile& tile) {
  __m512 acc[kPanels][kTokens];
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) acc[p][t] = start_sum(tile, p, t);
  }
  const std::byte* w[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) w[p] = tile.panels[p];
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
  for (std::size_t i = 0; i < tile.n_blocks; ++i) {
    __m512i sum[kPanels][kTokens];
    for (std::size_t t = 0; t < kTokens;
         ++t) {  // the zero point's share: exact, and free in place of clearing
      __m512i start = _mm512_setzero_si512();
      if constexpr (Weight::kZeroShift > 0) {
        start = _mm512_slli_epi32(_mm512_sub_epi32(start, broadcast(x + t * stride + kSumAt)),
                                  Weight::kZeroShift);
      }
      for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = start;
    }
    add_pair<Weight, 0>(w, x, stride, sum);
    add_pair<Weight, 1>(w, x, stride, sum);
    add_pair<Weight, 2>(w, x, stride, sum);
    add_pair<Weight, 3>(w, x, stride, sum);
    for (std::size_t p = 0; p < kPanels; ++p) {
      const __m512 d = load_halves(w[p] + Weight::kLayout.d);
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m512 scale = _mm512_mul_ps(d, broadcast_float(x + t * stride + kScaleAt));
        acc[p][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[p][t]), scale, acc[p][t]);
      }
      if constexpr (Weight::kHasMin) {
        const __m512 m = load_halves(w[p] + Weight::kLayout.m);
        for (std::size_t t = 0; t < kTokens; ++t) {
          const __m512 scale = _mm512_mul_ps(m, broadcast_float(x + t * stride + kScaleAt));
          const __m512 y_sum = _mm512_cvtepi32_ps(broadcast(x + t * stride + kSumAt));
          acc[p][t] = _mm512_fmadd_ps(y_sum, scale, acc[p][t]);
        }
      }
      w[p] += Weight::kLayout.bytes;
    }
    x += sizeof(ActivationBlock32);
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, p, t, acc[p][t]);
  }
}

template <typename Weight>
struct LegacyKernel {
  static constexpr std::size_t kBlock = 32;
  static constexpr std::size_t kBlockBytes = Weight::kLayout.bytes;
  static constexpr std::size_t kActivationBlockBytes = sizeof(ActivationBlock32);
  static constexpr std::size_t kMaxTokens = 6;
  static constexpr std::size_t kNarrowTokens = 3;
  static TileKernel tile(std::size_t n_panels, std::size_t n_tokens) {
    static constexpr TileKernel kNarrow[] = {legacy_tile<Weight, 1, 1>, legacy_tile<Weight, 1, 2>,
                                             legacy_tile<Weight, 1, 3>};
    static constexpr TileKernel kWide[] = {legacy_tile<Weight, 2, 1>, legacy_tile<Weight, 2, 2>,
                                           legacy_tile<Weight, 2, 3>, legacy_tile<Weight, 2, 4>,
                                           legacy_tile<Weight, 2, 5>, legacy_tile<Weight, 2, 6>};
    return n_panels == 1 ? kNarrow[n_tokens - 1] : kWide[n_tokens - 1];
  }
};

}  // namespace

MatmulKernel legacy_kernel(ElementType type) {
  switch (type) {
    case ElementType::q4_0: return run<LegacyKernel<Weight<SliceFour, kPanelQ4_0, 3>>>;
    case ElementType::q4_1: return run<LegacyKernel<Weight<SliceFour, kPanelQ4_1, -1>>>;
    case ElementType::q5_0: return run<LegacyKernel<Weight<SliceFive, kPanelQ5_0, 4>>>;
    case ElementType::q5_1: return run<LegacyKernel<Weight<SliceFive, kPanelQ5_1, -1>>>;
    case ElementType::q8_0: return run<LegacyKernel<Weight<SliceEight, kPanelQ8_0, 7>>>;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::avx512
