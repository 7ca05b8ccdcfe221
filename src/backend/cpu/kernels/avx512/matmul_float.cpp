// Products with F32, F16 and BF16 weights: one chain of fused multiply-adds for each output.
#include "backend/cpu/kernels/avx512/matmul_kernels.h"
#include "backend/cpu/kernels/avx512/matmul_tile.h"

namespace quipu::cpu::avx512 {
namespace {

struct WeightF32 {
  static constexpr PanelBlockLayout kLayout = kPanelF32;
  static constexpr std::size_t kActivationBlockBytes = 4;
  static __m512 fma(const std::byte* weights, const std::byte* x, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_loadu_ps(weights), broadcast_float(x), sum);
  }
};

struct WeightF16 {
  static constexpr PanelBlockLayout kLayout = kPanelF16;
  static constexpr std::size_t kActivationBlockBytes = 4;
  static __m512 fma(const std::byte* weights, const std::byte* x, __m512 sum) {
    return _mm512_fmadd_ps(load_halves(weights), broadcast_float(x), sum);
  }
};

struct WeightBF16 {
  static constexpr PanelBlockLayout kLayout = kPanelBF16;
  static constexpr std::size_t kActivationBlockBytes = 4;
  static __m512 fma(const std::byte* weights, const std::byte* x, __m512 sum) {
    __m512i w = load(weights);
    __m512i y = broadcast(x);
    keep_here(w);  // clang 16 dies of folding these into the product
    keep_here(y);
    return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)y);
  }
};

template <typename Weight, std::size_t kPanels, std::size_t kTokens>
void float_tile(const Tile& tile) {
  __m512 sum[kPanels][kTokens];
  const std::byte* w[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    w[p] = tile.panels[p];
    for (std::size_t t = 0; t < kTokens; ++t) sum[p][t] = start_sum(tile, p, t);
  }
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < tile.n_blocks; ++i) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = Weight::fma(w[p], x + t * stride, sum[p][t]);
    }
    for (std::size_t p = 0; p < kPanels; ++p) w[p] += Weight::kLayout.bytes;
    x += Weight::kActivationBlockBytes;
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, p, t, sum[p][t]);
  }
}

template <typename Weight>
struct FloatKernel {
  static constexpr std::size_t kBlock = Weight::kLayout.elements;
  static constexpr std::size_t kBlockBytes = Weight::kLayout.bytes;
  static constexpr std::size_t kActivationBlockBytes = Weight::kActivationBlockBytes;
  static constexpr std::size_t kMaxTokens = 8;
  static constexpr std::size_t kNarrowTokens = 0;  // two chains for each token hide the latency of their sums
  static constexpr bool kExpands = false;
  static void expand(const std::byte*, std::size_t, std::byte*) {}
  static TileKernel tile(const TileShape& shape) {
    static constexpr TileKernel kWide[] = {float_tile<Weight, 2, 1>, float_tile<Weight, 2, 2>,
                                           float_tile<Weight, 2, 3>, float_tile<Weight, 2, 4>,
                                           float_tile<Weight, 2, 5>, float_tile<Weight, 2, 6>,
                                           float_tile<Weight, 2, 7>, float_tile<Weight, 2, 8>};
    return kWide[shape.n_tokens - 1];
  }
};

}  // namespace

MatmulKernel float_kernel(ElementType type) {
  switch (type) {
    case ElementType::f32: return run<FloatKernel<WeightF32>>;
    case ElementType::f16: return run<FloatKernel<WeightF16>>;
    case ElementType::bf16: return run<FloatKernel<WeightBF16>>;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::avx512
