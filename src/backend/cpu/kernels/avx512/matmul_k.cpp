// Products with blocks of 256: runs of 16 or 32 times their integer scales, int32 to the end of the block,
// then one fused multiply-add (two with minimums).
#include "backend/cpu/kernels/avx512/matmul_kernels.h"
#include "backend/cpu/kernels/avx512/matmul_slices.h"
#include "backend/cpu/kernels/avx512/matmul_tile.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kScaleAt = offsetof(ActivationBlock256, scale);
constexpr std::size_t kZeroSharesAt = offsetof(ActivationBlock256, zero_shares);
constexpr std::size_t kSums16At = offsetof(ActivationBlock256, sums16);
constexpr std::size_t kSums32At = offsetof(ActivationBlock256, sums32);
constexpr std::size_t kSlices = 8;

inline __m128i load16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

enum class Scales { u8, s8, nibbles };

/// kZeroPoint: 0, or a power of two: up to 32, or from 32 on where runs are of 32.
template <typename SliceType, const PanelBlockLayout& kBlockLayout, Scales kScales, int kZero>
struct Weight {
  using Slice = SliceType;
  static constexpr const PanelBlockLayout& kLayout = kBlockLayout;
  static constexpr int kZeroPoint = kZero;
  static constexpr bool kIsExpanded = false;
  static constexpr std::size_t kQuantBytes = kLayout.bytes;
  static constexpr bool kHasMin = kLayout.m != 0;
  static constexpr std::size_t kRuns = 256 / kLayout.run;

  /// The integer scales of a run, int32.
  static __m512i scales(const std::byte* block, std::size_t run) {
    const __m128i bytes = load16(block + kLayout.sub_scales + kPanelRows * run);
    if constexpr (kScales == Scales::s8) return _mm512_cvtepi8_epi32(bytes);
    const __m512i words = _mm512_cvtepu8_epi32(bytes);
    return kScales == Scales::nibbles ? _mm512_and_si512(words, _mm512_set1_epi32(15)) : words;
  }

  /// The minimums of a run, int32.
  static __m512i mins(const std::byte* block, std::size_t run) {
    if constexpr (kScales == Scales::nibbles) {
      return _mm512_srli_epi32(_mm512_cvtepu8_epi32(load16(block + kLayout.sub_scales + kPanelRows * run)),
                               4);
    } else {
      return _mm512_cvtepu8_epi32(load16(block + kLayout.sub_mins + kPanelRows * run));
    }
  }

  /// Those of runs 2i and 2i + 1 as pairs of int16.
  static __m512i min_pairs(const std::byte* block, std::size_t i) {
    return _mm512_or_si512(mins(block, 2 * i), _mm512_slli_epi32(mins(block, 2 * i + 1), 16));
  }
};

/// The sums of a new run: zero, or the zero point's share of it.
template <typename Weight, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void start_run(const std::byte* x, std::size_t stride, std::size_t run,
                                             __m512i (&sum)[kPanels][kTokens]) {
  for (std::size_t t = 0; t < kTokens; ++t) {
    __m512i start = _mm512_setzero_si512();
    if constexpr (Weight::kZeroPoint > 0) {
      const std::byte* shares = x + t * stride + kZeroSharesAt;
      if constexpr (Weight::kLayout.run == 16) {
        start = _mm512_srai_epi32(broadcast(shares + 4 * run), __builtin_ctz(32 / Weight::kZeroPoint));
      } else {
        start = _mm512_add_epi32(broadcast(shares + 8 * run), broadcast(shares + 8 * run + 4));
        start = _mm512_slli_epi32(start, __builtin_ctz(Weight::kZeroPoint / 32));
      }
    }
    for (std::size_t p = 0; p < kPanels; ++p) sum[p][t] = start;
  }
}

/// total += scale * sum
template <typename Weight, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void end_run(const std::byte* const (&block)[kPanels], std::size_t run,
                                           const __m512i (&sum)[kPanels][kTokens],
                                           __m512i (&total)[kPanels][kTokens]) {
  for (std::size_t p = 0; p < kPanels; ++p) {
    const __m512i scales = Weight::scales(block[p], run);
    for (std::size_t t = 0; t < kTokens; ++t) {
      total[p][t] = _mm512_add_epi32(total[p][t], _mm512_mullo_epi32(sum[p][t], scales));
      keep_here(total[p][t]);
    }
  }
}

/// total += the i-th slice of a block; `first_slice` is its slice 0.
template <typename Weight, std::size_t kPanels, std::size_t kTokens>
[[gnu::always_inline]] inline void add_slice(const std::byte* const (&block)[kPanels],
                                             const std::byte* const (&first_slice)[kPanels], std::size_t i,
                                             const std::byte* x, std::size_t stride,
                                             __m512i (&total)[kPanels][kTokens]) {
  using Slice = typename Weight::Slice;
  const std::byte* slice[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) slice[p] = first_slice[p] + i * Slice::kBytes;
  const std::byte* quants = x + 32 * i;
  __m512i sum[kPanels][kTokens];
  if constexpr (Weight::kLayout.run == 32) {
    start_run<Weight>(x, stride, i, sum);
    add_pair<Slice, 0>(slice, quants, stride, sum);
    add_pair<Slice, 1>(slice, quants, stride, sum);
    add_pair<Slice, 2>(slice, quants, stride, sum);
    add_pair<Slice, 3>(slice, quants, stride, sum);
    end_run<Weight>(block, i, sum, total);
  } else {
    start_run<Weight>(x, stride, 2 * i, sum);
    add_pair<Slice, 0>(slice, quants, stride, sum);
    add_pair<Slice, 1>(slice, quants, stride, sum);
    end_run<Weight>(block, 2 * i, sum, total);
    start_run<Weight>(x, stride, 2 * i + 1, sum);
    add_pair<Slice, 2>(slice, quants, stride, sum);
    add_pair<Slice, 3>(slice, quants, stride, sum);
    end_run<Weight>(block, 2 * i + 1, sum, total);
  }
}

/// The float sums of a tile: touched once a block, so they live in memory and leave the registers to the
/// integers.
template <std::size_t kPanels, std::size_t kTokens>
struct Sums {
  alignas(64) float values[kPanels][kTokens][kPanelRows];
};

/// sums -= dmin * dy * (sum over runs of min * (sum of y)). Not inlined: its registers are not the loop's.
template <typename Weight, std::size_t kTokens>
[[gnu::noinline]] void subtract_mins(const std::byte* block, const std::byte* x, std::size_t stride,
                                     float (&sums)[kTokens][kPanelRows]) {
  constexpr std::size_t kPairs = Weight::kRuns / 2;
  constexpr std::size_t kSumsAt = Weight::kLayout.run == 16 ? kSums16At : kSums32At;
  __m512i mins[kPairs];
  for (std::size_t i = 0; i < kPairs; ++i) mins[i] = Weight::min_pairs(block, i);
  const __m512 d = load_halves(block + Weight::kLayout.m);
  for (std::size_t t = 0; t < kTokens; ++t) {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t i = 0; i < kPairs; ++i) {
      sum = _mm512_dpwssd_epi32(sum, mins[i], broadcast(x + t * stride + kSumsAt + 4 * i));
    }
    const __m512 scale = _mm512_mul_ps(d, broadcast_float(x + t * stride + kScaleAt));
    const __m512 acc = _mm512_load_ps(sums[t]);
    _mm512_store_ps(sums[t], _mm512_fnmadd_ps(_mm512_cvtepi32_ps(sum), scale, acc));
  }
}

template <typename Weight, std::size_t kPanels, std::size_t kTokens>
void k_tile(const Tile& tile) {
  Sums<kPanels, kTokens> sums;
  const std::byte* block[kPanels];
  const std::byte* slice[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    block[p] = tile.panels[p];
    slice[p] = Weight::kIsExpanded ? tile.expanded[p] : block[p] + Weight::kLayout.quants;
    for (std::size_t t = 0; t < kTokens; ++t) _mm512_store_ps(sums.values[p][t], start_sum(tile, p, t));
  }
  const std::byte* x = tile.activations;
  const std::size_t stride = tile.activation_stride;
  for (std::size_t b = 0; b < tile.n_blocks; ++b) {
    __m512i total[kPanels][kTokens];
    for (std::size_t p = 0; p < kPanels; ++p) {
      for (std::size_t t = 0; t < kTokens; ++t) total[p][t] = _mm512_setzero_si512();
    }
#pragma GCC unroll 1
    for (std::size_t i = 0; i < kSlices; ++i) add_slice<Weight>(block, slice, i, x, stride, total);
    for (std::size_t p = 0; p < kPanels; ++p) {
      const __m512 d = load_halves(block[p] + Weight::kLayout.d);
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m512 scale = _mm512_mul_ps(d, broadcast_float(x + t * stride + kScaleAt));
        const __m512 acc = _mm512_load_ps(sums.values[p][t]);
        _mm512_store_ps(sums.values[p][t], _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[p][t]), scale, acc));
      }
    }
    for (std::size_t p = 0; p < kPanels; ++p) {
      if constexpr (Weight::kHasMin) subtract_mins<Weight>(block[p], x, stride, sums.values[p]);
      block[p] += Weight::kLayout.bytes;
      slice[p] += Weight::kQuantBytes;
    }
    x += sizeof(ActivationBlock256);
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) store_sum(tile, p, t, _mm512_load_ps(sums.values[p][t]));
  }
}

template <typename Weight>
struct KKernel {
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kBlockBytes = Weight::kLayout.bytes;
  static constexpr std::size_t kActivationBlockBytes = sizeof(ActivationBlock256);
  static constexpr std::size_t kMaxTokens = 6;
  static constexpr std::size_t kNarrowTokens = 3;
  static constexpr bool kExpands = Weight::Slice::kIsCostly;
  static void expand(const std::byte* block, std::size_t n_blocks, std::byte* to) {
    expand_blocks<Weight>(block, n_blocks, to);
  }
  static TileKernel tile(const TileShape& shape) {
    static constexpr TileKernel kNarrow[] = {k_tile<Weight, 1, 1>, k_tile<Weight, 1, 2>,
                                             k_tile<Weight, 1, 3>};
    static constexpr TileKernel kWide[] = {k_tile<Weight, 2, 1>, k_tile<Weight, 2, 2>, k_tile<Weight, 2, 3>,
                                           k_tile<Weight, 2, 4>, k_tile<Weight, 2, 5>, k_tile<Weight, 2, 6>};
    if constexpr (kExpands) {  // at least kExpandTokens in nearly equal tiles
      using Bytes = Expanded<Weight>;
      static constexpr TileKernel kExpanded[] = {k_tile<Bytes, 2, 4>, k_tile<Bytes, 2, 5>,
                                                 k_tile<Bytes, 2, 6>};
      if (shape.is_expanded) return kExpanded[shape.n_tokens - 4];
    }
    return shape.n_panels == 1 ? kNarrow[shape.n_tokens - 1] : kWide[shape.n_tokens - 1];
  }
};

}  // namespace

MatmulKernel k_kernel(ElementType type) {
  switch (type) {
    case ElementType::q2_k: return run<KKernel<Weight<SliceTwo, kPanelQ2_K, Scales::nibbles, 0>>>;
    case ElementType::q3_k: return run<KKernel<Weight<SliceThree, kPanelQ3_K, Scales::s8, 4>>>;
    case ElementType::q4_k: return run<KKernel<Weight<SliceFour, kPanelQ4_K, Scales::u8, 0>>>;
    case ElementType::q5_k: return run<KKernel<Weight<SliceFive, kPanelQ5_K, Scales::u8, 0>>>;
    case ElementType::q6_k: return run<KKernel<Weight<SliceSix, kPanelQ6_K, Scales::s8, 32>>>;
    case ElementType::iq4_xs:
      return run<KKernel<Weight<SliceFourTable<NormalTable>, kPanelIQ4_XS, Scales::s8, 128>>>;
    default: return nullptr;
  }
}

}  // namespace quipu::cpu::avx512
