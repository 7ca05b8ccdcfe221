// Products with blocks of 32: an int32 sum inside the block, or each half of NVFP4's, and one fused
// multiply-add behind it (another one with a minimum).
#include "backend/cpu/kernels/avx512/matmul_kernels.h"
#include "backend/cpu/kernels/avx512/matmul_slices.h"
#include "backend/cpu/kernels/avx512/matmul_tile.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kScaleAt = offsetof(ActivationBlock32, scale);
constexpr std::size_t kSumAt = offsetof(ActivationBlock32, sum);
constexpr std::size_t kHalfSumAt = offsetof(ActivationBlock32, half_sum);

// How a type stores the scales of a panel's rows: at(block, run).

template <const PanelBlockLayout& kLayout>
struct HalfScales {
  static __m512 at(const std::byte* block, std::size_t) { return load_halves(block + kLayout.d); }
};

__m128i load_codes(const std::byte* block, std::size_t run) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kPanelNVFP4.sub_scales + kPanelRows * run));
}

/// mxfp4_scale() of quant/blocks.h.
struct Mxfp4Scales {
  static __m512 at(const std::byte* block, std::size_t run) {
    const __m512i codes = _mm512_cvtepu8_epi32(load_codes(block, run));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(codes, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), codes);
    const __mmask16 is_subnormal = _mm512_cmplt_epu32_mask(codes, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_subnormal, subnormal));
  }
};

/// nvfp4_scale(): the bits of a half whose exponent is 7 too low.
struct Nvfp4Scales {
  static __m512 at(const std::byte* block, std::size_t run) {
    const __m256i codes = _mm256_cvtepu8_epi16(load_codes(block, run));
    const __mmask16 is_number = _mm256_cmpneq_epi16_mask(codes, _mm256_set1_epi16(127));
    const __m256i bits = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(127)), 7);
    const __m512 scales = _mm512_cvtph_ps(_mm256_maskz_mov_epi16(is_number, bits));
    return _mm512_mul_ps(scales, _mm512_set1_ps(128.0f));
  }
};
static_assert(kPanelMXFP4.sub_scales == kPanelNVFP4.sub_scales);

/// kZeroShift: the zero point is 1 << kZeroShift; -1: there is none.
template <typename SliceType, const PanelBlockLayout& kBlockLayout, int kShift,
          typename ScalesType = HalfScales<kBlockLayout>>
struct Weight {
  using Slice = SliceType;
  using Scales = ScalesType;
  static constexpr const PanelBlockLayout& kLayout = kBlockLayout;
  static constexpr int kZeroShift = kShift;
  static constexpr bool kIsExpanded = false;
  static constexpr std::size_t kQuantBytes = kLayout.bytes;
  static constexpr bool kHasMin = kLayout.m != 0;
  static constexpr int kRuns = kLayout.run == 16 ? 2 : 1;  ///< that have a scale each
};

/// The sum of a token's quants over a run.
template <typename Weight, int run>
inline __m512i sum_of_quants(const std::byte* x) {
  if constexpr (Weight::kRuns == 1) return broadcast(x + kSumAt);
  if constexpr (run == 0) return broadcast(x + kHalfSumAt);
  return _mm512_sub_epi32(broadcast(x + kSumAt), broadcast(x + kHalfSumAt));
}

/// acc += a run of a block
template <typename Weight, int run, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void add_run(const std::byte* const (&block)[kPanels],
                                           const std::byte* const (&slice)[kPanels], const std::byte* x,
                                           std::size_t stride, __m512 (&acc)[kPanels][kTokens]) {
  using Slice = typename Weight::Slice;
  __m512i sum[kPanels][kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) {  // in place of zero, the zero point's share
    __m512i start = _mm512_setzero_si512();
    if constexpr (Weight::kZeroShift > 0) {
      start = _mm512_slli_epi32(_mm512_sub_epi32(start, sum_of_quants<Weight, run>(x + t * stride)),
                                Weight::kZeroShift);
    }
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = start;
  }
  if constexpr (run == 0) {
    add_pair<Slice, 0>(slice, x, stride, sum);
    add_pair<Slice, 1>(slice, x, stride, sum);
  }
  if constexpr (run + 1 == Weight::kRuns) {
    add_pair<Slice, 2>(slice, x, stride, sum);
    add_pair<Slice, 3>(slice, x, stride, sum);
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    const __m512 d = Weight::Scales::at(block[p], run);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const __m512 scale = _mm512_mul_ps(d, broadcast_float(x + t * stride + kScaleAt));
      acc[p][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[p][t]), scale, acc[p][t]);
    }
  }
}

template <typename Weight, std::size_t kPanels, std::size_t kTokens>
void legacy_tile(const Tile& tile) {
  __m512 acc[kPanels][kTokens];
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) acc[p][t] = start_sum(tile, p, t);
  }
  const std::byte* block[kPanels];
  const std::byte* slice[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    block[p] = tile.panels[p];
    slice[p] = Weight::kIsExpanded ? tile.expanded[p] : block[p] + Weight::kLayout.quants;
  }
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
  for (std::size_t i = 0; i < tile.n_blocks; ++i) {
    add_run<Weight, 0>(block, slice, x, stride, acc);
    if constexpr (Weight::kRuns == 2) add_run<Weight, 1>(block, slice, x, stride, acc);
    for (std::size_t p = 0; p < kPanels; ++p) {
      if constexpr (Weight::kHasMin) {
        const __m512 m = load_halves(block[p] + Weight::kLayout.m);
        for (std::size_t t = 0; t < kTokens; ++t) {
          const __m512 scale = _mm512_mul_ps(m, broadcast_float(x + t * stride + kScaleAt));
          const __m512 y_sum = _mm512_cvtepi32_ps(broadcast(x + t * stride + kSumAt));
          acc[p][t] = _mm512_fmadd_ps(y_sum, scale, acc[p][t]);
        }
      }
      block[p] += Weight::kLayout.bytes;
      slice[p] += Weight::kQuantBytes;
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
  static constexpr bool kExpands = Weight::Slice::kIsCostly;
  static void expand(const std::byte* block, std::size_t n_blocks, std::byte* to) {
    expand_blocks<Weight>(block, n_blocks, to);
  }
  static TileKernel tile(const TileShape& shape) {
    static constexpr TileKernel kNarrow[] = {legacy_tile<Weight, 1, 1>, legacy_tile<Weight, 1, 2>,
                                             legacy_tile<Weight, 1, 3>};
    static constexpr TileKernel kWide[] = {legacy_tile<Weight, 2, 1>, legacy_tile<Weight, 2, 2>,
                                           legacy_tile<Weight, 2, 3>, legacy_tile<Weight, 2, 4>,
                                           legacy_tile<Weight, 2, 5>, legacy_tile<Weight, 2, 6>};
    if constexpr (kExpands) {  // at least kExpandTokens in nearly equal tiles
      using Bytes = Expanded<Weight>;
      static constexpr TileKernel kExpanded[] = {legacy_tile<Bytes, 2, 4>, legacy_tile<Bytes, 2, 5>,
                                                 legacy_tile<Bytes, 2, 6>};
      if (shape.is_expanded) return kExpanded[shape.n_tokens - 4];
    }
    return shape.n_panels == 1 ? kNarrow[shape.n_tokens - 1] : kWide[shape.n_tokens - 1];
  }
};

}  // namespace

MatmulKernel legacy_kernel(ElementType type) {
  switch (type) {
    case ElementType::q4_0: return run<LegacyKernel<Weight<SliceFour, kPanelQ4_0, 3>>>;
    case ElementType::iq4_nl: return run<LegacyKernel<Weight<SliceFourTable<NormalTable>, kPanelIQ4_NL, 7>>>;
    case ElementType::mxfp4:
      return run<LegacyKernel<Weight<SliceFourTable<Fp4Table>, kPanelMXFP4, 4, Mxfp4Scales>>>;
    case ElementType::nvfp4:
      return run<LegacyKernel<Weight<SliceFourTable<Fp4Table>, kPanelNVFP4, 4, Nvfp4Scales>>>;
    case ElementType::q4_1: return run<LegacyKernel<Weight<SliceFour, kPanelQ4_1, -1>>>;
    case ElementType::q5_0: return run<LegacyKernel<Weight<SliceFive, kPanelQ5_0, 4>>>;
    case ElementType::q5_1: return run<LegacyKernel<Weight<SliceFive, kPanelQ5_1, -1>>>;
    case ElementType::q8_0: return run<LegacyKernel<Weight<SliceEight, kPanelQ8_0, 7>>>;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::avx512
