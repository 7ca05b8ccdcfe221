// The encoders of quant/legacy.cpp and quant/fit.h for four blocks at a time, a block in each lane: the same
// operations in double in the same order, hence the same bytes. What changes there changes here.
#include "backend/cpu/kernels/avx2/encode_blocks.h"

#include <cstring>

#include "backend/cpu/kernels/avx2/lanes.h"
#include "backend/cpu/kernels/kv_layout.h"

namespace quipu::cpu::avx2 {
namespace {

using Doubles = __m256d;
constexpr std::size_t kBlocks = 4;
constexpr double kLargestHalf = 65504;
constexpr double kSmallestHalf = 0x1p-24;

inline Doubles all(double x) {
  return _mm256_set1_pd(x);
}
inline Doubles zeros() {
  return _mm256_setzero_pd();
}
inline Doubles greater(Doubles a, Doubles b) {
  return _mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
inline Doubles not_zero(Doubles x) {
  return _mm256_cmp_pd(x, zeros(), _CMP_NEQ_UQ);
}
inline Doubles select(Doubles mask, Doubles yes, Doubles no) {
  return _mm256_blendv_pd(no, yes, mask);
}
inline Doubles both(Doubles mask, Doubles other) {
  return _mm256_and_pd(mask, other);
}
inline Doubles limited(Doubles x, double low, double high) {
  return _mm256_min_pd(_mm256_max_pd(x, all(low)), all(high));
}
inline Doubles abs_of(Doubles x) {
  return _mm256_andnot_pd(all(-0.0), x);
}

/// Element i of every block.
struct Elements {
  Doubles x[kCellBlock];
};

/// The bits of a half for each block, in int32.
using Halves = __m128i;

/// A mask of 64 bits a lane as one of 32.
inline Halves narrow(Doubles mask) {
  const __m256 bits = _mm256_castpd_ps(mask);
  return _mm_castps_si128(_mm_shuffle_ps(_mm256_castps256_ps128(bits), _mm256_extractf128_ps(bits, 1), 0x88));
}

inline Doubles value_of(Halves halves) {
  return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_packus_epi32(halves, halves)));
}

inline Halves finite_halves(Doubles x) {
  const __m128 floats = _mm256_cvtpd_ps(limited(x, -kLargestHalf, kLargestHalf));
  return _mm_cvtepu16_epi32(_mm_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// As finite_halves, but only 0 becomes 0.
inline Halves scale_halves(Doubles x) {
  const Doubles size = _mm256_max_pd(abs_of(x), all(kSmallestHalf));
  const Doubles sign = both(x, all(-0.0));
  return _mm_and_si128(narrow(not_zero(x)), finite_halves(_mm256_or_pd(size, sign)));
}

struct Neighbours {
  Halves at[3];
};

inline Neighbours with_neighbours(Halves halves) {
  const Halves size = _mm_and_si128(halves, _mm_set1_epi32(0x7fff));
  const Halves minus_one_if_below = _mm_cmpgt_epi32(size, _mm_setzero_si128());
  const Halves minus_one_if_above = _mm_cmpgt_epi32(_mm_set1_epi32(0x7bff), size);
  return {{_mm_add_epi32(halves, minus_one_if_below), halves, _mm_sub_epi32(halves, minus_one_if_above)}};
}

inline Doubles inverse_of(Doubles scale) {
  return both(not_zero(scale), all(1.0) / scale);
}

/// The element of largest size, the first of equal ones.
inline Doubles peak_of(const Elements& in) {
  Doubles peak = zeros();
  for (const Doubles x : in.x) peak = select(greater(abs_of(x), abs_of(peak)), x, peak);
  return peak;
}

// What x * inverse is stored as: integers of a range, or IQ4_NL's table.

struct Range {
  double low, high;
  Doubles nearest(Doubles x) const {
    return _mm256_round_pd(limited(x, low, high), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

struct Table {
  static constexpr double kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};

  /// first + the sum of step(i) over the borders i, between values i and i + 1, that are below x.
  template <typename Step>
  static Doubles walk(Doubles x, double first, Step step) {
    Doubles sum = all(first);
    for (int i = 0; i < 15; ++i) {
      sum = sum + both(greater(x, all(0.5 * (kValues[i] + kValues[i + 1]))), all(step(i)));
    }
    return sum;
  }
  Doubles nearest(Doubles x) const {
    return walk(x, kValues[0], [](int i) { return kValues[i + 1] - kValues[i]; });
  }
  Doubles index(Doubles x) const {
    return walk(x, 0, [](int) { return 1.0; });
  }
};

/// The search of a scale without an offset.
template <typename Values>
struct ScaleSearch {
  const Elements& in;
  const Values& values;
  Doubles best_scale = zeros();
  Doubles best_gain = zeros();

  void try_inverse(Doubles inverse) {
    Doubles xq = zeros();
    Doubles qq = zeros();
    for (const Doubles x : in.x) {
      const Doubles q = values.nearest(x * inverse);
      xq = xq + x * q;
      qq = qq + q * q;
    }
    const Doubles better = both(greater(qq, zeros()), greater(xq * xq, best_gain * qq));
    best_gain = select(better, xq * xq / qq, best_gain);
    best_scale = select(better, xq / qq, best_scale);
  }
};

/// squared_error() of quant/fit.h.
template <typename Values>
inline Doubles squared_error(const Elements& in, const Values& values, Doubles scale, Doubles offset) {
  const Doubles inverse = inverse_of(scale);
  Doubles sum = zeros();
  for (const Doubles x : in.x) {
    const Doubles q = values.nearest((x - offset) * inverse);
    const Doubles difference = x - (scale * q + offset);
    sum = sum + difference * difference;
  }
  return sum;
}

/// Scales and minima that were chosen.
struct Chosen {
  Halves d = _mm_setzero_si128();
  Halves m = _mm_setzero_si128();
  Doubles error = all(__builtin_inf());

  template <typename Values>
  void consider(const Elements& in, const Values& values, Halves scale, Halves offset) {
    const Doubles candidate = squared_error(in, values, value_of(scale), value_of(offset));
    const Doubles better = greater(error, candidate);
    error = select(better, candidate, error);
    d = _mm_blendv_epi8(d, scale, narrow(better));
    m = _mm_blendv_epi8(m, offset, narrow(better));
  }
};

template <typename Values>
Chosen choose_scale(const Elements& in, const Values& values, Doubles scale) {
  Chosen chosen;
  for (const Halves d : with_neighbours(scale_halves(scale)).at) {
    chosen.consider(in, values, d, _mm_setzero_si128());
  }
  return chosen;
}

Chosen fit_scale(const Elements& in, const Range& range) {
  const Doubles peak = peak_of(in);
  ScaleSearch<Range> search{in, range};
  for (int step = -9; step <= 9; ++step) search.try_inverse(all(range.low + 0.1 * step) / peak);
  for (int round = 0; round < 2; ++round) search.try_inverse(inverse_of(search.best_scale));
  return choose_scale(in, range, both(not_zero(peak), search.best_scale));
}

Chosen fit_scale(const Elements& in, const Table& table) {
  const Doubles peak = peak_of(in);
  ScaleSearch<Table> search{in, table};
  for (const double end : {-127.0, 113.0}) {
    for (int step = -6; step <= 6; step += 3) search.try_inverse(all(end + step) / peak);
  }
  for (int round = 0; round < 2; ++round) search.try_inverse(inverse_of(search.best_scale));
  return choose_scale(in, table, both(not_zero(peak), search.best_scale));
}

/// The search of a scale and an offset.
struct OffsetSearch {
  const Range& range;
  Elements relative;  ///< to the least element
  Doubles sum_x = zeros();
  Doubles best_scale = zeros();
  Doubles best_offset = zeros();
  Doubles best_gain = all(-1);

  OffsetSearch(const Elements& in, const Range& of, Doubles low) : range(of) {
    for (std::size_t i = 0; i < kCellBlock; ++i) {
      relative.x[i] = in.x[i] - low;
      sum_x = sum_x + relative.x[i];
    }
  }

  void try_fit(Doubles inverse, Doubles tried_offset) {
    const Doubles sum_w = all(kCellBlock);
    Doubles sum_q = zeros();
    Doubles sum_qq = zeros();
    Doubles sum_xq = zeros();
    for (const Doubles x : relative.x) {
      const Doubles q = range.nearest((x - tried_offset) * inverse);
      sum_q = sum_q + q;
      sum_qq = sum_qq + q * q;
      sum_xq = sum_xq + x * q;
    }
    const Doubles determinant = sum_w * sum_qq - sum_q * sum_q;
    const Doubles solvable = greater(determinant, all(1e-9) * sum_w * sum_qq);
    Doubles scale = both(solvable, (sum_w * sum_xq - sum_q * sum_x) / determinant);
    Doubles offset = both(solvable, (sum_qq * sum_x - sum_q * sum_xq) / determinant);
    const Doubles alone = _mm256_cmp_pd(scale, zeros(), _CMP_LE_OQ);
    offset = _mm256_andnot_pd(alone, offset);
    scale = select(alone, both(greater(sum_qq, zeros()), sum_xq / sum_qq), scale);
    const Doubles gain = all(2) * (scale * sum_xq + offset * sum_x) - scale * scale * sum_qq -
                         all(2) * scale * offset * sum_q - offset * offset * sum_w;
    const Doubles better = both(greater(scale, zeros()), greater(gain, best_gain));
    best_gain = select(better, gain, best_gain);
    best_scale = select(better, scale, best_scale);
    best_offset = select(better, offset, best_offset);
  }
};

Chosen fit_scale_offset(const Elements& in, const Range& range) {
  Doubles low = in.x[0];
  Doubles most = in.x[0];
  for (const Doubles x : in.x) {
    low = select(greater(low, x), x, low);  // of two zeros the first
    most = _mm256_max_pd(most, x);
  }
  OffsetSearch search(in, range, low);
  for (int step = -6; step <= 9; ++step) search.try_fit(all(range.high + 0.1 * step) / (most - low), zeros());
  for (int round = 0; round < 3; ++round) search.try_fit(inverse_of(search.best_scale), search.best_offset);
  const Doubles spreads = greater(most, low);
  const Doubles scale = both(spreads, search.best_scale);
  const Doubles offset = select(spreads, search.best_offset + low, low);
  Chosen chosen;
  for (const Halves m : with_neighbours(finite_halves(offset)).at) {
    for (const Halves d : with_neighbours(scale_halves(scale)).at) chosen.consider(in, range, d, m);
  }
  return chosen;
}

// -- from what was chosen to bytes

/// Quants of the blocks, zero point added.
struct Quants {
  alignas(16) std::int32_t at[kCellBlock][kBlocks];
};

template <typename Values>
Quants quants_of(const Elements& in, const Values& values, const Chosen& chosen, int zero_point) {
  const Doubles inverse = inverse_of(value_of(chosen.d));
  const Doubles offset = value_of(chosen.m);
  Quants quants;
  for (std::size_t i = 0; i < kCellBlock; ++i) {
    const Doubles x = (in.x[i] - offset) * inverse;
    __m128i of_element;
    if constexpr (requires { values.index(x); }) {
      of_element = _mm256_cvtpd_epi32(values.index(x));
    } else {
      of_element = _mm_add_epi32(_mm256_cvtpd_epi32(values.nearest(x)), _mm_set1_epi32(zero_point));
    }
    _mm_store_si128(reinterpret_cast<__m128i*>(quants.at[i]), of_element);
  }
  return quants;
}

/// The file's blocks: d, m, fifth bits, nibbles, as far as the type has them.
void write_blocks(const Quants& quants, const Chosen& chosen, const CellBlockForm& form, std::size_t n_blocks,
                  std::byte* out) {
  alignas(16) std::uint32_t d[kBlocks];
  alignas(16) std::uint32_t m[kBlocks];
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
      std::uint32_t bits = 0;
      for (std::size_t i = 0; i < kCellBlock; ++i)
        bits |= static_cast<std::uint32_t>(quants.at[i][b] >> 4) << i;
      std::memcpy(out, &bits, 4);
      out += 4;
    }
    for (std::size_t i = 0; i < kCellBlock / 2; ++i) {
      *out++ = static_cast<std::byte>((quants.at[i][b] & 15) | (quants.at[i + kCellBlock / 2][b] & 15) << 4);
    }
  }
}

/// NaN as 0, infinities as the largest float.
inline __m128 finite(__m128 x) {
  const __m128 number = _mm_and_ps(_mm_cmpord_ps(x, x), x);
  return _mm_min_ps(_mm_max_ps(number, _mm_set1_ps(-0x1.fffffep+127f)), _mm_set1_ps(0x1.fffffep+127f));
}

/// Up to four blocks, of which four can be read.
void encode_four(ElementType type, const float* x, std::size_t n_blocks, std::byte* out) {
  Elements in;
  for (std::size_t i = 0; i < kCellBlock; ++i) {
    const __m128 floats = _mm_setr_ps(x[i], x[i + kCellBlock], x[i + 2 * kCellBlock], x[i + 3 * kCellBlock]);
    in.x[i] = _mm256_cvtps_pd(finite(floats));
  }
  const CellBlockForm form = cell_block_form(type);
  if (type == ElementType::iq4_nl) {
    const Table table;
    const Chosen chosen = fit_scale(in, table);
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
  Doubles values[kCellBlock / 4];
  Doubles peaks = zeros();
  for (std::size_t i = 0; i < kCellBlock / 4; ++i) {
    values[i] = _mm256_cvtps_pd(finite(_mm_loadu_ps(x + 4 * i)));
    peaks = _mm256_max_pd(peaks, abs_of(values[i]));
  }
  const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(peaks), _mm256_extractf128_pd(peaks, 1));
  const double peak = _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
  const Halves d = scale_halves(all(peak / 127));
  const Doubles inverse = inverse_of(value_of(d));
  const Range range{-127, 127};
  const int scale = _mm_cvtsi128_si32(d);
  std::memcpy(out, &scale, 2);
  for (std::size_t i = 0; i < kCellBlock / 4; ++i) {
    const __m128i quants = _mm256_cvtpd_epi32(range.nearest(values[i] * inverse));
    const __m128i shorts = _mm_packs_epi32(quants, quants);
    const int four = _mm_cvtsi128_si32(_mm_packs_epi16(shorts, shorts));
    std::memcpy(out + 2 + 4 * i, &four, 4);
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
    encode_four(type, x, kBlocks, out);
  }
  if (n_blocks == 0) return;
  float rest[kBlocks * kCellBlock] = {};
  std::memcpy(rest, x, n_blocks * kCellBlock * sizeof(float));
  encode_four(type, rest, n_blocks, out);
}

}  // namespace quipu::cpu::avx2
