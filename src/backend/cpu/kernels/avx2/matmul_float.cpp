// Products with F32, F16 and BF16 weights: one chain of fused multiply-adds for each output.
#include "backend/cpu/kernels/avx2/matmul_float.h"

#include "backend/cpu/kernels/avx2/matmul_tile.h"

namespace quipu::cpu::avx2 {
namespace {

struct WeightF32 {
  static constexpr PanelBlockLayout kLayout = kPanelF32;
  static __m256 fma(const std::byte* weights, std::size_t half, const std::byte* x, __m256 sum) {
    const __m256 w = _mm256_castsi256_ps(load(weights + 32 * half));
    return _mm256_fmadd_ps(w, broadcast_float(x), sum);
  }
};

struct WeightF16 {
  static constexpr PanelBlockLayout kLayout = kPanelF16;
  static __m256 fma(const std::byte* weights, std::size_t half, const std::byte* x, __m256 sum) {
    return _mm256_fmadd_ps(load_halves(weights + 16 * half), broadcast_float(x), sum);
  }
};

/// Two k, the odd one first, as vdpbf16ps takes them.
struct WeightBF16 {
  static constexpr PanelBlockLayout kLayout = kPanelBF16;
  static __m256 fma(const std::byte* weights, std::size_t half, const std::byte* x, __m256 sum) {
    const __m256i w = load(weights + 32 * half);
    const __m256i y = broadcast(x);
    sum = _mm256_fmadd_ps(odd(w), odd(y), sum);
    return _mm256_fmadd_ps(even(w), even(y), sum);
  }
  static __m256 odd(__m256i pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static __m256 even(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
};

constexpr std::size_t kBytesOfX = 4;  // a float, or two bfloat16

template <typename Weight, std::size_t kTokens>
void float_tile(const Tile& tile) {
  __m256 sum[2][kTokens];
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) sum[h][t] = start_sum(tile, h, t);
  }
  const std::byte* w = tile.panel;
  const std::byte* x = tile.activations;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < tile.n_blocks; ++i) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t h = 0; h < 2; ++h) {
        sum[h][t] = Weight::fma(w, h, x + t * tile.activation_stride, sum[h][t]);
      }
    }
    w += Weight::kLayout.bytes;
    x += kBytesOfX;
  }
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, h, t, sum[h][t]);
  }
}

template <typename Weight>
struct FloatKernel {
  static constexpr std::size_t kBlock = Weight::kLayout.elements;
  static constexpr std::size_t kBlockBytes = Weight::kLayout.bytes;
  static constexpr std::size_t kActivationBlockBytes = kBytesOfX;
  static TileSet tiles(std::size_t) {
    static constexpr TileKernel kTiles[] = {float_tile<Weight, 1>, float_tile<Weight, 2>,
                                            float_tile<Weight, 3>, float_tile<Weight, 4>};
    return {2, 4, kTiles};
  }
};

/// As vdpbf16ps, whatever the thread's control register says: rounds to nearest even, subnormal numbers are
/// zero.
void matmul_bf16(const MatmulTask& task) {
  constexpr unsigned kMasked = 0x1f80, kFlush = 0x8000, kInputsAreZero = 0x40;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kMasked | kFlush | kInputsAreZero);
  run<FloatKernel<WeightBF16>>(task);
  _mm_setcsr(before);
}

}  // namespace

MatmulKernel float_kernel(ElementType type) {
  switch (type) {
    case ElementType::f32: return run<FloatKernel<WeightF32>>;
    case ElementType::f16: return run<FloatKernel<WeightF16>>;
    case ElementType::bf16: return matmul_bf16;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::avx2
