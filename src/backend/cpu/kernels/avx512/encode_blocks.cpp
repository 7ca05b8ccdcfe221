// The encoders of quant/legacy.cpp and quant/fit.h for eight blocks at a time, a block in each lane: the same
// operations in double in the same order, hence the same bytes. What changes there changes here. A product of
// a float and a small integer is exact in double, so that fused operations may take it; others must not be
// fused.
#include "backend/cpu/kernels/avx512/encode_blocks.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/kv_layout.h"

namespace quipu::cpu::avx512 {
namespace {

constexpr std::size_t kBlocks = 8;
constexpr double kLargestHalf = 65504;
constexpr double kSmallestHalf = 0x1p-24;

inline __m512d all(double x) {
  return _mm512_set1_pd(x);
}

/// Element i of every block.
struct Elements {
  __m512d x[kCellBlock];
};

/// One half for each block.
using Halves = __m128i;

inline __m512d value_of(Halves halves) {
  return _mm512_cvtps_pd(_mm256_cvtph_ps(halves));
}

inline Halves finite_halves(__m512d x) {
  const __m512d limited = _mm512_min_pd(_mm512_max_pd(x, all(-kLargestHalf)), all(kLargestHalf));
  return _mm256_cvtps_ph(_mm512_cvtpd_ps(limited), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/// As finite_halves, but only 0 becomes 0.
inline Halves scale_halves(__m512d x) {
  const __m512d size = _mm512_max_pd(_mm512_abs_pd(x), all(kSmallestHalf));
  const __m512d sign = _mm512_and_pd(x, all(-0.0));
  const __mmask8 not_zero = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  return _mm_maskz_mov_epi16(not_zero, finite_halves(_mm512_or_pd(size, sign)));
}

struct Neighbours {
  Halves at[3];
};

inline Neighbours with_neighbours(Halves halves) {
  const __m128i one = _mm_set1_epi16(1);
  const __m128i size = _mm_and_si128(halves, _mm_set1_epi16(0x7fff));
  const __mmask8 has_below = _mm_cmpgt_epi16_mask(size, _mm_setzero_si128());
  const __mmask8 has_above = _mm_cmplt_epi16_mask(size, _mm_set1_epi16(0x7bff));
  return {{_mm_mask_sub_epi16(halves, has_below, halves, one), halves,
           _mm_mask_add_epi16(halves, has_above, halves, one)}};
}

inline __m512d inverse_of(__m512d scale) {
  const __mmask8 not_zero = _mm512_cmp_pd_mask(scale, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  return _mm512_maskz_div_pd(not_zero, all(1.0), scale);
}

/// The element of largest size, the first of equal ones.
inline __m512d peak_of(const Elements& in) {
  __m512d peak = _mm512_setzero_pd();
  for (const __m512d x : in.x) {
    const __mmask8 more = _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_abs_pd(peak), _CMP_GT_OQ);
    peak = _mm512_mask_mov_pd(peak, more, x);
  }
  return peak;
}

// What x * inverse is stored as: integers of a range, or IQ4_NL's table.

struct Range {
  double low, high;
  __m512d nearest(__m512d x) const {
    const __m512d limited = _mm512_min_pd(_mm512_max_pd(x, all(low)), all(high));
    return _mm512_roundscale_pd(limited, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

struct Table {
  __m512d low = _mm512_setr_pd(-127, -104, -83, -65, -49, -35, -22, -10);
  __m512d high = _mm512_setr_pd(1, 13, 25, 38, 53, 69, 89, 113);
  __m512d low_borders = _mm512_setr_pd(-115.5, -93.5, -74, -57, -42, -28.5, -16, -4.5);
  __m512d high_borders = _mm512_setr_pd(7, 19, 31.5, 45.5, 61, 79, 101, 0);

  /// Numbers of the nearest values: of the borders between values, those that are below x.
  __m512i index(__m512d x) const {
    const __mmask8 upper = _mm512_cmp_pd_mask(x, all(-4.5), _CMP_GT_OQ);
    __m512i index = _mm512_maskz_set1_epi64(upper, 8);
    for (const int step : {4, 2, 1}) {
      const __m512i border = _mm512_add_epi64(index, _mm512_set1_epi64(step - 1));
      const __mmask8 more =
          _mm512_cmp_pd_mask(x, _mm512_permutex2var_pd(low_borders, border, high_borders), _CMP_GT_OQ);
      index = _mm512_mask_add_epi64(index, more, index, _mm512_set1_epi64(step));
    }
    return index;
  }
  __m512d nearest(__m512d x) const { return _mm512_permutex2var_pd(low, index(x), high); }
};

/// The search of a scale without an offset.
template <typename Values>
struct ScaleSearch {
  const Elements& in;
  const Values& values;
  __m512d best_scale = _mm512_setzero_pd();
  __m512d best_gain = _mm512_setzero_pd();

  void try_inverse(__m512d inverse) {
    __m512d xq = _mm512_setzero_pd();
    __m512d qq = _mm512_setzero_pd();
    for (const __m512d x : in.x) {
      const __m512d q = values.nearest(_mm512_mul_pd(x, inverse));
      xq = _mm512_fmadd_pd(x, q, xq);
      qq = _mm512_fmadd_pd(q, q, qq);
    }
    const __mmask8 some = _mm512_cmp_pd_mask(qq, _mm512_setzero_pd(), _CMP_GT_OQ);
    const __m512d squared = _mm512_mul_pd(xq, xq);
    const __mmask8 better = _mm512_mask_cmp_pd_mask(some, squared, _mm512_mul_pd(best_gain, qq), _CMP_GT_OQ);
    best_gain = _mm512_mask_div_pd(best_gain, better, squared, qq);
    best_scale = _mm512_mask_div_pd(best_scale, better, xq, qq);
  }
};

/// squared_error() of quant/fit.h.
template <typename Values>
inline __m512d squared_error(const Elements& in, const Values& values, __m512d scale, __m512d offset) {
  const __m512d inverse = inverse_of(scale);
  __m512d sum = _mm512_setzero_pd();
  for (const __m512d x : in.x) {
    const __m512d q = values.nearest(_mm512_mul_pd(_mm512_sub_pd(x, offset), inverse));
    const __m512d difference = _mm512_sub_pd(x, _mm512_fmadd_pd(scale, q, offset));
    sum = _mm512_add_pd(sum, _mm512_mul_pd(difference, difference));
  }
  return sum;
}

/// Scales and minima that were chosen.
struct Chosen {
  Halves d = _mm_setzero_si128();
  Halves m = _mm_setzero_si128();
  __m512d error = all(__builtin_inf());

  template <typename Values>
  void consider(const Elements& in, const Values& values, Halves scale, Halves offset) {
    const __m512d candidate = squared_error(in, values, value_of(scale), value_of(offset));
    const __mmask8 better = _mm512_cmp_pd_mask(candidate, error, _CMP_LT_OQ);
    error = _mm512_mask_mov_pd(error, better, candidate);
    d = _mm_mask_mov_epi16(d, better, scale);
    m = _mm_mask_mov_epi16(m, better, offset);
  }
};

template <typename Values>
Chosen choose_scale(const Elements& in, const Values& values, __m512d scale) {
  Chosen chosen;
  for (const Halves d : with_neighbours(scale_halves(scale)).at) {
    chosen.consider(in, values, d, _mm_setzero_si128());
  }
  return chosen;
}

Chosen fit_scale(const Elements& in, const Range& range) {
  const __m512d peak = peak_of(in);
  ScaleSearch<Range> search{in, range};
  for (int step = -9; step <= 9; ++step) {
    search.try_inverse(_mm512_div_pd(all(range.low + 0.1 * step), peak));
  }
  for (int round = 0; round < 2; ++round) search.try_inverse(inverse_of(search.best_scale));
  return choose_scale(in, range, search.best_scale);
}

Chosen fit_table_scale(const Elements& in, const Table& table) {
  const __m512d peak = peak_of(in);
  const __mmask8 not_zero = _mm512_cmp_pd_mask(peak, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  ScaleSearch<Table> search{in, table};
  for (const double end : {-127.0, 113.0}) {
    for (int step = -6; step <= 6; step += 3) search.try_inverse(_mm512_div_pd(all(end + step), peak));
  }
  for (int round = 0; round < 2; ++round) search.try_inverse(inverse_of(search.best_scale));
  return choose_scale(in, table, _mm512_maskz_mov_pd(not_zero, search.best_scale));
}

/// The search of a scale and an offset.
struct OffsetSearch {
  const Range& range;
  Elements relative;  ///< to the least element
  __m512d sum_x = _mm512_setzero_pd();
  __m512d best_scale = _mm512_setzero_pd();
  __m512d best_offset = _mm512_setzero_pd();
  __m512d best_gain = all(-1);

  OffsetSearch(const Elements& in, const Range& of, __m512d low) : range(of) {
    for (std::size_t i = 0; i < kCellBlock; ++i) {
      relative.x[i] = _mm512_sub_pd(in.x[i], low);
      sum_x = _mm512_add_pd(sum_x, relative.x[i]);
    }
  }

  void try_fit(__m512d inverse, __m512d tried_offset) {
    const __m512d sum_w = all(kCellBlock);
    __m512d sum_q = _mm512_setzero_pd();
    __m512d sum_qq = _mm512_setzero_pd();
    __m512d sum_xq = _mm512_setzero_pd();
    for (const __m512d x : relative.x) {
      const __m512d q = range.nearest(_mm512_mul_pd(_mm512_sub_pd(x, tried_offset), inverse));
      sum_q = _mm512_add_pd(sum_q, q);
      sum_qq = _mm512_fmadd_pd(q, q, sum_qq);
      sum_xq = _mm512_add_pd(sum_xq, _mm512_mul_pd(x, q));
    }
    const __m512d determinant = _mm512_sub_pd(_mm512_mul_pd(sum_w, sum_qq), _mm512_mul_pd(sum_q, sum_q));
    const __m512d least = _mm512_mul_pd(_mm512_mul_pd(all(1e-9), sum_w), sum_qq);
    const __mmask8 solvable = _mm512_cmp_pd_mask(determinant, least, _CMP_GT_OQ);
    __m512d scale = _mm512_maskz_div_pd(
        solvable, _mm512_sub_pd(_mm512_mul_pd(sum_w, sum_xq), _mm512_mul_pd(sum_q, sum_x)), determinant);
    __m512d offset = _mm512_maskz_div_pd(
        solvable, _mm512_sub_pd(_mm512_mul_pd(sum_qq, sum_x), _mm512_mul_pd(sum_q, sum_xq)), determinant);
    const __mmask8 alone = _mm512_cmp_pd_mask(scale, _mm512_setzero_pd(), _CMP_LE_OQ);
    const __mmask8 some = _mm512_cmp_pd_mask(sum_qq, _mm512_setzero_pd(), _CMP_GT_OQ);
    offset = _mm512_mask_mov_pd(offset, alone, _mm512_setzero_pd());
    scale = _mm512_mask_mov_pd(scale, alone, _mm512_maskz_div_pd(some, sum_xq, sum_qq));
    const __mmask8 positive = _mm512_cmp_pd_mask(scale, _mm512_setzero_pd(), _CMP_GT_OQ);
    const __m512d better_gain = gain(scale, offset, sum_q, sum_qq, sum_xq);
    const __mmask8 better = _mm512_mask_cmp_pd_mask(positive, better_gain, best_gain, _CMP_GT_OQ);
    best_gain = _mm512_mask_mov_pd(best_gain, better, better_gain);
    best_scale = _mm512_mask_mov_pd(best_scale, better, scale);
    best_offset = _mm512_mask_mov_pd(best_offset, better, offset);
  }

  __m512d gain(__m512d scale, __m512d offset, __m512d sum_q, __m512d sum_qq, __m512d sum_xq) const {
    const __m512d linear = _mm512_add_pd(_mm512_mul_pd(scale, sum_xq), _mm512_mul_pd(offset, sum_x));
    const __m512d squares = _mm512_mul_pd(_mm512_mul_pd(scale, scale), sum_qq);
    const __m512d mixed = _mm512_mul_pd(_mm512_mul_pd(_mm512_mul_pd(all(2), scale), offset), sum_q);
    const __m512d offsets = _mm512_mul_pd(_mm512_mul_pd(offset, offset), all(kCellBlock));
    const __m512d less_squares = _mm512_sub_pd(_mm512_mul_pd(all(2), linear), squares);
    return _mm512_sub_pd(_mm512_sub_pd(less_squares, mixed), offsets);
  }
};

Chosen fit_scale_offset(const Elements& in, const Range& range) {
  __m512d low = in.x[0];
  __m512d most = in.x[0];
  for (const __m512d x : in.x) {
    low = _mm512_mask_mov_pd(low, _mm512_cmp_pd_mask(x, low, _CMP_LT_OQ), x);  // of two zeros the first
    most = _mm512_max_pd(most, x);
  }
  OffsetSearch search(in, range, low);
  const __m512d spread = _mm512_sub_pd(most, low);
  for (int step = -6; step <= 9; ++step) {
    search.try_fit(_mm512_div_pd(all(range.high + 0.1 * step), spread), _mm512_setzero_pd());
  }
  for (int round = 0; round < 3; ++round) search.try_fit(inverse_of(search.best_scale), search.best_offset);
  const __mmask8 spreads = _mm512_cmp_pd_mask(most, low, _CMP_GT_OQ);
  const __m512d scale = _mm512_maskz_mov_pd(spreads, search.best_scale);
  const __m512d offset = _mm512_mask_mov_pd(low, spreads, _mm512_add_pd(search.best_offset, low));
  Chosen chosen;
  for (const Halves m : with_neighbours(finite_halves(offset)).at) {
    for (const Halves d : with_neighbours(scale_halves(scale)).at) chosen.consider(in, range, d, m);
  }
  return chosen;
}

// -- from what was chosen to bytes

/// Quants of eight blocks, zero point added: [element] of bytes of blocks.
struct Quants {
  __m256i at[kCellBlock];
};

template <typename Values>
Quants quants_of(const Elements& in, const Values& values, const Chosen& chosen, int zero_point) {
  const __m512d inverse = inverse_of(value_of(chosen.d));
  const __m512d offset = value_of(chosen.m);
  Quants quants;
  for (std::size_t i = 0; i < kCellBlock; ++i) {
    const __m512d x = _mm512_mul_pd(_mm512_sub_pd(in.x[i], offset), inverse);
    if constexpr (requires { values.index(x); }) {
      quants.at[i] = _mm512_cvtepi64_epi32(values.index(x));
    } else {
      quants.at[i] = _mm256_add_epi32(_mm512_cvtpd_epi32(values.nearest(x)), _mm256_set1_epi32(zero_point));
    }
  }
  return quants;
}

/// The file's blocks: d, m, fifth bits, nibbles, as far as the type has them.
void write_blocks(const Quants& quants, const Chosen& chosen, const CellBlockForm& form, std::size_t n_blocks,
                  std::byte* out) {
  alignas(32) std::uint32_t fifth_bits[kBlocks];
  alignas(16) std::uint8_t nibbles[kCellBlock / 2][kBlocks];
  alignas(16) std::uint16_t d[kBlocks];
  alignas(16) std::uint16_t m[kBlocks];
  __m256i bits = _mm256_setzero_si256();
  const __m256i low = _mm256_set1_epi32(15);
  for (std::size_t i = 0; i < kCellBlock; ++i) {
    bits = _mm256_or_si256(bits, _mm256_slli_epi32(_mm256_srli_epi32(quants.at[i], 4), static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < kCellBlock / 2; ++i) {
    const __m256i first = _mm256_and_si256(quants.at[i], low);
    const __m256i second = _mm256_and_si256(quants.at[i + kCellBlock / 2], low);
    const __m256i both = _mm256_or_si256(first, _mm256_slli_epi32(second, 4));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(nibbles[i]), _mm256_cvtepi32_epi8(both));
  }
  _mm256_store_si256(reinterpret_cast<__m256i*>(fifth_bits), bits);
  _mm_store_si128(reinterpret_cast<__m128i*>(d), chosen.d);
  _mm_store_si128(reinterpret_cast<__m128i*>(m), chosen.m);
  for (std::size_t b = 0; b < n_blocks; ++b) {
    std::memcpy(out, &d[b], 2);
    out += 2;
    if (form.has_min) {
      std::memcpy(out, &m[b], 2);
      out += 2;
    }
    if (form.has_fifth_bits) {
      std::memcpy(out, &fifth_bits[b], 4);
      out += 4;
    }
    for (std::size_t i = 0; i < kCellBlock / 2; ++i) *out++ = static_cast<std::byte>(nibbles[i][b]);
  }
}

/// NaN as 0, infinities as the largest float.
inline __m256 finite(__m256 x) {
  const __m256 limit = _mm256_set1_ps(0x1.fffffep+127f);
  const __m256 number = _mm256_maskz_mov_ps(_mm256_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  const __m256 low = _mm256_sub_ps(_mm256_setzero_ps(), limit);
  return _mm256_min_ps(_mm256_max_ps(number, low), limit);
}

Elements load_elements(const float* x) {
  const __m256i blocks = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                            _mm256_set1_epi32(static_cast<int>(kCellBlock)));
  Elements in;
  for (std::size_t i = 0; i < kCellBlock; ++i) {
    in.x[i] = _mm512_cvtps_pd(finite(_mm256_i32gather_ps(x + i, blocks, 4)));
  }
  return in;
}

/// Up to eight blocks, of which eight can be read.
void encode_eight(ElementType type, const float* x, std::size_t n_blocks, std::byte* out) {
  const Elements in = load_elements(x);
  const CellBlockForm form = cell_block_form(type);
  if (type == ElementType::iq4_nl) {
    const Table table;
    const Chosen chosen = fit_table_scale(in, table);
    write_blocks(quants_of(in, table, chosen, 0), chosen, form, n_blocks, out);
    return;
  }
  const double count = form.has_fifth_bits ? 32 : 16;
  const Range range = form.has_min ? Range{0, count - 1} : Range{-count / 2, count / 2 - 1};
  const Chosen chosen = form.has_min ? fit_scale_offset(in, range) : fit_scale(in, range);
  write_blocks(quants_of(in, range, chosen, form.zero_point), chosen, form, n_blocks, out);
}

/// A block of Q8_0: lanes are elements.
void encode_bytes(const float* x, std::byte* out) {
  __m512d values[4];
  __m512d peak = _mm512_setzero_pd();
  for (std::size_t i = 0; i < 4; ++i) {
    values[i] = _mm512_cvtps_pd(finite(_mm256_loadu_ps(x + 8 * i)));
    peak = _mm512_max_pd(peak, _mm512_abs_pd(values[i]));
  }
  const Halves d = scale_halves(_mm512_div_pd(all(_mm512_reduce_max_pd(peak)), all(127)));
  const __m512d inverse = inverse_of(value_of(d));
  const Range range{-127, 127};
  const std::uint16_t scale = static_cast<std::uint16_t>(_mm_extract_epi16(d, 0));
  std::memcpy(out, &scale, 2);
  for (std::size_t i = 0; i < 4; ++i) {
    const __m256i quants = _mm512_cvtpd_epi32(range.nearest(_mm512_mul_pd(values[i], inverse)));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + 2 + 8 * i), _mm256_cvtepi32_epi8(quants));
  }
}

}  // namespace

void encode_blocks(ElementType type, const float* x, std::size_t n_blocks, std::byte* out) {
  if (type == ElementType::q8_0) {
    for (std::size_t b = 0; b < n_blocks; ++b) encode_bytes(x + b * kCellBlock, out + b * kCellBlockBytes);
    return;
  }
  const CellBlockForm form = cell_block_form(type);
  const std::size_t block_bytes =
      2 + (form.has_min ? 2 : 0) + (form.has_fifth_bits ? 4 : 0) + 4 * form.n_words;
  for (; n_blocks >= kBlocks; n_blocks -= kBlocks, x += kBlocks * kCellBlock, out += kBlocks * block_bytes) {
    encode_eight(type, x, kBlocks, out);
  }
  if (n_blocks == 0) return;
  float rest[kBlocks * kCellBlock] = {};
  std::memcpy(rest, x, n_blocks * kCellBlock * sizeof(float));
  encode_eight(type, rest, n_blocks, out);
}

}  // namespace quipu::cpu::avx512
