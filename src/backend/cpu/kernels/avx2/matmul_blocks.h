// Products with block formats, for any kind of dot product (matmul_dots.h). Blocks of 32: an int32 sum inside
// the block, or each half of NVFP4's, and one fused multiply-add behind it (another one with a minimum).
// Blocks of 256: runs of 16 or 32 times their integer scales, int32 to the end of the block, then one fused
// multiply-add (two with minimums).
#pragma once

#include <utility>

#include "backend/cpu/kernels/avx2/matmul_dots.h"
#include "backend/cpu/kernels/avx2/matmul_slices.h"
#include "backend/cpu/kernels/avx2/matmul_tile.h"

namespace quipu::cpu::avx2 {
namespace {

template <std::size_t kHalves, std::size_t kTokens>
using Sums = __m256i[kHalves][kTokens];

// ---- Sums of products over some pairs of planes

template <typename Slice, typename Dot, int j, std::size_t kHalves, std::size_t kTokens>
[[gnu::always_inline]] inline void add_pair(const std::byte* slice, const std::byte* x, std::size_t stride,
                                            Sums<kHalves, kTokens>& sum) {
  typename Dot::Plane even[kHalves], odd[kHalves];
  for (std::size_t h = 0; h < kHalves; ++h) {
    const Planes planes = Slice::template pair<j>(slice + 32 * h);
    even[h] = Dot::plane(planes.even);
    odd[h] = Dot::plane(planes.odd);
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m256i y = broadcast(x + t * stride + 8 * j);
    for (std::size_t h = 0; h < kHalves; ++h) sum[h][t] = Dot::add(sum[h][t], even[h], y);
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m256i y = broadcast(x + t * stride + 8 * j + 4);
    for (std::size_t h = 0; h < kHalves; ++h) sum[h][t] = Dot::add(sum[h][t], odd[h], y);
  }
}

/// sum += pairs j to kEnd - 1 of a slice
template <typename Slice, typename Dot, int j, int kEnd, std::size_t kHalves, std::size_t kTokens>
[[gnu::always_inline]] inline void add_pairs(const std::byte* slice, const std::byte* x, std::size_t stride,
                                             Sums<kHalves, kTokens>& sum) {
  if constexpr (j < kEnd) {
    add_pair<Slice, Dot, j>(slice, x, stride, sum);
    add_pairs<Slice, Dot, j + 1, kEnd>(slice, x, stride, sum);
  }
}

/// total += end(the sum of a part of pairs j to kEnd - 1 of a slice, half), for one part after the other
template <typename Slice, typename Dot, int j, int kEnd, std::size_t kHalves, std::size_t kTokens,
          typename End>
[[gnu::always_inline]] inline void add_parts(const std::byte* slice, const std::byte* x, std::size_t stride,
                                             Sums<kHalves, kTokens>& total, End end) {
  if constexpr (j < kEnd) {
    constexpr int kPartEnd = j + Dot::kPairs < kEnd ? j + Dot::kPairs : kEnd;
    Sums<kHalves, kTokens> sum;
    for (std::size_t h = 0; h < kHalves; ++h) {
      for (std::size_t t = 0; t < kTokens; ++t) sum[h][t] = _mm256_setzero_si256();
    }
    add_pairs<Slice, Dot, j, kPartEnd>(slice, x, stride, sum);
    for (std::size_t h = 0; h < kHalves; ++h) {
      for (std::size_t t = 0; t < kTokens; ++t)
        total[h][t] = _mm256_add_epi32(total[h][t], end(sum[h][t], h));
    }
    add_parts<Slice, Dot, kPartEnd, kEnd>(slice, x, stride, total, end);
  }
}

// ---- Blocks of 32

/// How a type stores the scales of 8 rows: at(block, run, half).
template <const PanelBlockLayout& kLayout>
struct HalfScales {
  static __m256 at(const std::byte* block, int, std::size_t half) {
    return load_halves(block + kLayout.d + 2 * kHalfRows * half);
  }
};

inline __m128i load_codes(const std::byte* block, int run, std::size_t half) {
  return load_quarter(block + kPanelNVFP4.sub_scales + kPanelRows * static_cast<std::size_t>(run) +
                      kHalfRows * half);
}
static_assert(kPanelMXFP4.sub_scales == kPanelNVFP4.sub_scales);

/// mxfp4_scale() of quant/blocks.h.
struct Mxfp4Scales {
  static __m256 at(const std::byte* block, int run, std::size_t half) {
    const __m256i codes = _mm256_cvtepu8_epi32(load_codes(block, run, half));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(codes, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), codes);
    const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), codes);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_subnormal));
  }
};

/// nvfp4_scale(): the bits of a half whose exponent is 7 too low.
struct Nvfp4Scales {
  static __m256 at(const std::byte* block, int run, std::size_t half) {
    const __m128i codes = _mm_cvtepu8_epi16(load_codes(block, run, half));
    const __m128i is_nan = _mm_cmpeq_epi16(codes, _mm_set1_epi16(127));
    const __m128i bits = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(127)), 7);
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_andnot_si128(is_nan, bits)), _mm256_set1_ps(128.0f));
  }
};

/// kZeroShift: the zero point is 1 << kZeroShift; -1: there is none.
template <typename SliceType, const PanelBlockLayout& kBlockLayout, int kShift,
          typename ScalesType = HalfScales<kBlockLayout>>
struct Weight32 {
  using Slice = SliceType;
  using Scales = ScalesType;
  static constexpr const PanelBlockLayout& kLayout = kBlockLayout;
  static constexpr int kZeroShift = kShift;
  static constexpr int kRuns = kLayout.run == 16 ? 2 : 1;  ///< that have a scale each
};

/// The sum of a token's quants over a run, in all lanes.
template <int kRuns, int run>
inline __m256i sum_of_quants(const std::byte* x) {
  const __m256i sum = broadcast(x + offsetof(ActivationBlock32, sum));
  if constexpr (kRuns == 1) return sum;
  const __m256i half_sum = broadcast(x + offsetof(ActivationBlock32, half_sum));
  return run == 0 ? half_sum : _mm256_sub_epi32(sum, half_sum);
}

/// acc += a run of a block
template <typename Weight, typename Dot, int run, std::size_t kHalves, std::size_t kTokens>
[[gnu::always_inline]] inline void add_run32(const std::byte* block, std::size_t half, const std::byte* x,
                                             std::size_t stride, __m256 (&acc)[kHalves][kTokens]) {
  constexpr int kPairs = 4 / Weight::kRuns;
  Sums<kHalves, kTokens> total;
  for (std::size_t t = 0; t < kTokens; ++t) {  // in place of zero, the zero point's share
    __m256i start = _mm256_setzero_si256();
    if constexpr (Weight::kZeroShift > 0 && !Dot::kTakesZeroPoint) {
      start = _mm256_slli_epi32(_mm256_sub_epi32(start, sum_of_quants<Weight::kRuns, run>(x + t * stride)),
                                Weight::kZeroShift);
    }
    for (std::size_t h = 0; h < kHalves; ++h) total[h][t] = start;
  }
  add_parts<typename Weight::Slice, Dot, run * kPairs, (run + 1) * kPairs>(
      block + Weight::kLayout.quants + 32 * half, x, stride, total,
      [](__m256i sum, std::size_t) { return Dot::end(sum); });
  for (std::size_t h = 0; h < kHalves; ++h) {
    const __m256 d = Weight::Scales::at(block, run, half + h);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const __m256 scale =
          _mm256_mul_ps(d, broadcast_float(x + t * stride + offsetof(ActivationBlock32, scale)));
      acc[h][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[h][t]), scale, acc[h][t]);
    }
  }
}

template <typename Weight, typename Dots, std::size_t kHalves, std::size_t kTokens>
void tile32(const Tile& tile) {
  using Dot = typename Dots::template Choice<Weight::Slice::kLargest>::Dot;
  __m256 acc[kHalves][kTokens];
  for (std::size_t h = 0; h < kHalves; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) acc[h][t] = start_sum(tile, h, t);
  }
  const std::byte* block = tile.panel;
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
  for (std::size_t i = 0; i < tile.n_blocks; ++i) {
    add_run32<Weight, Dot, 0>(block, tile.half, x, stride, acc);
    if constexpr (Weight::kRuns == 2) add_run32<Weight, Dot, 1>(block, tile.half, x, stride, acc);
    for (std::size_t h = 0; Weight::kLayout.m > 0 && h < kHalves; ++h) {
      const __m256 m = load_halves(block + Weight::kLayout.m + 2 * kHalfRows * (tile.half + h));
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m256 scale =
            _mm256_mul_ps(m, broadcast_float(x + t * stride + offsetof(ActivationBlock32, scale)));
        acc[h][t] =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum_of_quants<1, 0>(x + t * stride)), scale, acc[h][t]);
      }
    }
    block += Weight::kLayout.bytes;
    x += sizeof(ActivationBlock32);
  }
  for (std::size_t h = 0; h < kHalves; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, h, t, acc[h][t]);
  }
}

// ---- Blocks of 256

enum class ScaleForm { u8, s8, nibbles };

/// kZeroShift as in Weight32.
template <typename SliceType, const PanelBlockLayout& kBlockLayout, ScaleForm kScales, int kShift>
struct Weight256 {
  using Slice = SliceType;
  static constexpr const PanelBlockLayout& kLayout = kBlockLayout;
  static constexpr int kZeroShift = kShift;
  static constexpr std::size_t kRuns = 256 / kLayout.run;

  /// The integer scales of a run, int32.
  static __m256i scales(const std::byte* block, std::size_t run, std::size_t half) {
    const __m128i bytes = load_quarter(block + kLayout.sub_scales + kPanelRows * run + kHalfRows * half);
    if constexpr (kScales == ScaleForm::s8) return _mm256_cvtepi8_epi32(bytes);
    const __m256i words = _mm256_cvtepu8_epi32(bytes);
    return kScales == ScaleForm::nibbles ? _mm256_and_si256(words, _mm256_set1_epi32(15)) : words;
  }

  /// The minimums of a run, int32.
  static __m256i mins(const std::byte* block, std::size_t run, std::size_t half) {
    const std::size_t at = kPanelRows * run + kHalfRows * half;
    if constexpr (kScales == ScaleForm::nibbles) {
      return _mm256_srli_epi32(_mm256_cvtepu8_epi32(load_quarter(block + kLayout.sub_scales + at)), 4);
    } else {
      return _mm256_cvtepu8_epi32(load_quarter(block + kLayout.sub_mins + at));
    }
  }
};

/// For each token the sum over runs of factors(run) * (sum of the run's quants), exactly.
template <typename Weight, std::size_t kTokens, typename Factors>
[[gnu::always_inline]] inline void sum_runs(const std::byte* x, std::size_t stride, __m256i (&sums)[kTokens],
                                            Factors factors) {
  constexpr std::size_t kSumsAt =
      Weight::kLayout.run == 16 ? offsetof(ActivationBlock256, sums16) : offsetof(ActivationBlock256, sums32);
  for (std::size_t t = 0; t < kTokens; ++t) sums[t] = _mm256_setzero_si256();
#pragma GCC unroll 1
  for (std::size_t i = 0; i < Weight::kRuns / 2; ++i) {
    const __m256i pair = _mm256_blend_epi16(factors(2 * i), _mm256_slli_epi32(factors(2 * i + 1), 16), 0xaa);
    for (std::size_t t = 0; t < kTokens; ++t) {
      sums[t] =
          _mm256_add_epi32(sums[t], _mm256_madd_epi16(pair, broadcast(x + t * stride + kSumsAt + 4 * i)));
    }
  }
}

/// total += run `run` of a block, which is pairs j to kEnd - 1 of a slice
template <typename Weight, typename Dot, int j, int kEnd, std::size_t kHalves, std::size_t kTokens>
[[gnu::always_inline]] inline void add_run256(const std::byte* block, const std::byte* slice,
                                              std::size_t half, std::size_t run, const std::byte* x,
                                              std::size_t stride, Sums<kHalves, kTokens>& total) {
  __m256i scales[kHalves];
  for (std::size_t h = 0; h < kHalves; ++h) scales[h] = Dot::scales(Weight::scales(block, run, half + h));
  add_parts<typename Weight::Slice, Dot, j, kEnd>(
      slice, x, stride, total, [&](__m256i sum, std::size_t h) { return Dot::end(sum, scales[h]); });
}

template <typename Weight, typename Dots, std::size_t kHalves, std::size_t kTokens>
void tile256(const Tile& tile) {
  using Dot = typename Dots::template Choice<Weight::Slice::kLargest>::Dot;
  using Slice = typename Weight::Slice;
  constexpr bool kHasZeroPoint = Weight::kZeroShift > 0 && !Dot::kTakesZeroPoint;
  __m256 acc[kHalves][kTokens];
  for (std::size_t h = 0; h < kHalves; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) acc[h][t] = start_sum(tile, h, t);
  }
  const std::byte* block = tile.panel;
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
  for (std::size_t b = 0; b < tile.n_blocks; ++b) {
    Sums<kHalves, kTokens> total;
    for (std::size_t h = 0; h < kHalves; ++h) {
      for (std::size_t t = 0; t < kTokens; ++t) total[h][t] = _mm256_setzero_si256();
    }
#pragma GCC unroll 1
    for (std::size_t i = 0; i < 8; ++i) {
      const std::byte* slice = block + Weight::kLayout.quants + i * Slice::kBytes + 32 * tile.half;
      if constexpr (Weight::kLayout.run == 32) {
        add_run256<Weight, Dot, 0, 4>(block, slice, tile.half, i, x + 32 * i, stride, total);
      } else {
        add_run256<Weight, Dot, 0, 2>(block, slice, tile.half, 2 * i, x + 32 * i, stride, total);
        add_run256<Weight, Dot, 2, 4>(block, slice, tile.half, 2 * i + 1, x + 32 * i, stride, total);
      }
    }
    for (std::size_t h = 0; h < kHalves; ++h) {
      const std::size_t half = tile.half + h;
      __m256i sums[kTokens];
      if constexpr (kHasZeroPoint) {
        sum_runs<Weight>(x, stride, sums, [&](std::size_t run) { return Weight::scales(block, run, half); });
        for (std::size_t t = 0; t < kTokens; ++t) {
          total[h][t] = _mm256_sub_epi32(total[h][t], _mm256_slli_epi32(sums[t], Weight::kZeroShift));
        }
      }
      const auto add = [&](std::size_t offset, const __m256i(&of)[kTokens], auto fuse) {
        const __m256 d = load_halves(block + offset + 2 * kHalfRows * half);
        for (std::size_t t = 0; t < kTokens; ++t) {
          const std::byte* scale_at = x + t * stride + offsetof(ActivationBlock256, scale);
          acc[h][t] = fuse(_mm256_cvtepi32_ps(of[t]), _mm256_mul_ps(d, broadcast_float(scale_at)), acc[h][t]);
        }
      };
      add(Weight::kLayout.d, total[h], [](__m256 y, __m256 z, __m256 sum) { return _mm256_fmadd_ps(y, z, sum); });
      if constexpr (Weight::kLayout.m > 0) {
        sum_runs<Weight>(x, stride, sums, [&](std::size_t run) { return Weight::mins(block, run, half); });
        add(Weight::kLayout.m, sums, [](__m256 y, __m256 z, __m256 sum) { return _mm256_fnmadd_ps(y, z, sum); });
      }
    }
    block += Weight::kLayout.bytes;
    x += sizeof(ActivationBlock256);
  }
  for (std::size_t h = 0; h < kHalves; ++h) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, h, t, acc[h][t]);
  }
}

// ---- Kernels

template <typename Weight, typename Dots, std::size_t kHalves, std::size_t kTokens>
void block_tile(const Tile& tile) {
  if constexpr (Weight::kLayout.elements == 32) {
    tile32<Weight, Dots, kHalves, kTokens>(tile);
  } else {
    tile256<Weight, Dots, kHalves, kTokens>(tile);
  }
}

template <typename Weight, typename Dots>
struct BlockKernel {
  static constexpr std::size_t kBlock = Weight::kLayout.elements;
  static constexpr std::size_t kBlockBytes = Weight::kLayout.bytes;
  static constexpr std::size_t kActivationBlockBytes =
      kBlock == 32 ? sizeof(ActivationBlock32) : sizeof(ActivationBlock256);
  static TileSet tiles(std::size_t n_tokens) {
    if (n_tokens <= 2) return tiles_of<2>(std::make_index_sequence<2>());
    return tiles_of<1>(std::make_index_sequence<Dots::kWideTokens>());
  }

 private:
  template <std::size_t kHalves, std::size_t... i>
  static TileSet tiles_of(std::index_sequence<i...>) {
    static constexpr TileKernel kTiles[] = {block_tile<Weight, Dots, kHalves, i + 1>...};
    return {kHalves, sizeof...(i), kTiles};
  }
};

template <typename Dots>
MatmulKernel block_kernel(ElementType type) {
  switch (type) {
    case ElementType::q4_0: return run<BlockKernel<Weight32<SliceFour, kPanelQ4_0, 3>, Dots>>;
    case ElementType::q4_1: return run<BlockKernel<Weight32<SliceFour, kPanelQ4_1, -1>, Dots>>;
    case ElementType::q5_0: return run<BlockKernel<Weight32<SliceFive, kPanelQ5_0, 4>, Dots>>;
    case ElementType::q5_1: return run<BlockKernel<Weight32<SliceFive, kPanelQ5_1, -1>, Dots>>;
    case ElementType::q8_0: return run<BlockKernel<Weight32<SliceEight, kPanelQ8_0, 7>, Dots>>;
    case ElementType::iq4_nl:
      return run<BlockKernel<Weight32<SliceFourTable<NormalTable>, kPanelIQ4_NL, 7>, Dots>>;
    case ElementType::mxfp4:
      return run<BlockKernel<Weight32<SliceFourTable<Fp4Table>, kPanelMXFP4, 4, Mxfp4Scales>, Dots>>;
    case ElementType::nvfp4:
      return run<BlockKernel<Weight32<SliceFourTable<Fp4Table>, kPanelNVFP4, 4, Nvfp4Scales>, Dots>>;
    case ElementType::q2_k:
      return run<BlockKernel<Weight256<SliceTwo, kPanelQ2_K, ScaleForm::nibbles, -1>, Dots>>;
    case ElementType::q3_k:
      return run<BlockKernel<Weight256<SliceThree, kPanelQ3_K, ScaleForm::s8, 2>, Dots>>;
    case ElementType::q4_k:
      return run<BlockKernel<Weight256<SliceFour, kPanelQ4_K, ScaleForm::u8, -1>, Dots>>;
    case ElementType::q5_k:
      return run<BlockKernel<Weight256<SliceFive, kPanelQ5_K, ScaleForm::u8, -1>, Dots>>;
    case ElementType::q6_k: return run<BlockKernel<Weight256<SliceSix, kPanelQ6_K, ScaleForm::s8, 5>, Dots>>;
    case ElementType::iq4_xs:
      return run<BlockKernel<Weight256<SliceFourTable<NormalTable>, kPanelIQ4_XS, ScaleForm::s8, 7>, Dots>>;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace quipu::cpu::avx2
