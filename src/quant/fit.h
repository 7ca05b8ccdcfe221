// Least-squares fits of a scale, or a scale and an offset, to a few weighted numbers that are to be stored as
// small integers. The integers and the scale depend on each other, so several scales are tried, each is
// improved by fitting it to the integers that it leads to, and the one with the smallest squared error wins.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/blocks.h"

namespace quipu::quant {

/// N elements (of a block or a run) and their weights, all above zero.
template <std::size_t N>
struct Weighted {
  std::span<const double, N> x;
  std::span<const double, N> w;
};

/// The range of the integers, zero point subtracted.
struct QuantRange {
  double low;
  double high;
};

/// x is stored as scale * q + offset.
struct LinearFit {
  double scale;
  double offset;
};

/// Nearest integer in the range; ties to even. The addend leaves no bits for a fraction (|value| < 2^51).
inline double nearest(double value, QuantRange range) {
  constexpr double kAddend = 0x1.8p52;
  return std::min(std::max(value, range.low), range.high) + kAddend - kAddend;
}

/// The values of IQ4_NL and IQ4_XS in place of a range of integers.
struct NormalTable {
  static constexpr const std::array<std::int8_t, 16>& kValues = BlockIQ4_NL::kValues;

  /// The number of the nearest value; of two equally near the lower.
  static std::uint8_t code(double x) {
    unsigned q = 0;
    for (unsigned i = 0; i + 1 < kValues.size(); ++i) q += x > 0.5 * (kValues[i] + kValues[i + 1]) ? 1 : 0;
    return static_cast<std::uint8_t>(q);
  }
};
inline double nearest(double value, NormalTable) {
  return NormalTable::kValues[NormalTable::code(value)];
}

// What the quants of a block without an offset stand for.

template <typename Block>
constexpr int zero_point() {
  if constexpr (requires { Block::kZeroPoint; }) return Block::kZeroPoint;
  return 0;
}
template <typename Block>
constexpr auto value_range() {
  if constexpr (requires { Block::kValues; }) {
    return NormalTable{};
  } else {
    return QuantRange{-Block::kZeroPoint, Block::kQuantMax - Block::kZeroPoint};
  }
}
template <typename Block>
int value_of(std::uint8_t quant) {
  if constexpr (requires { Block::kValues; }) {
    return Block::kValues[quant];
  } else {
    return quant - Block::kZeroPoint;
  }
}

/// What to multiply by to divide by the scale; 0 for 0, so that such a scale leads to zeros.
inline double inverse_scale(double scale) {
  return scale == 0 ? 0.0 : 1 / scale;
}

/// Sum of w * (x - (scale * q + offset))^2 with the best q for each element; `range` is a QuantRange or a
/// table.
template <std::size_t N, typename Range>
double squared_error(const Weighted<N>& in, LinearFit fit, Range range) {
  const double inverse = inverse_scale(fit.scale);
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const double q = nearest((in.x[i] - fit.offset) * inverse, range);
    const double difference = in.x[i] - (fit.scale * q + fit.offset);
    sum += in.w[i] * difference * difference;
  }
  return sum;
}

/// The integers themselves, plus zero_point.
template <std::size_t N>
void quantize(std::span<const double, N> x, LinearFit fit, QuantRange range, int zero_point,
              std::uint8_t* quants) {
  const double inverse = inverse_scale(fit.scale);
  for (std::size_t i = 0; i < N; ++i) {
    const double q = nearest((x[i] - fit.offset) * inverse, range);
    quants[i] = static_cast<std::uint8_t>(static_cast<int>(q) + zero_point);
  }
}

template <std::size_t N>
void quantize(std::span<const double, N> x, LinearFit fit, NormalTable table, int, std::uint8_t* quants) {
  const double inverse = inverse_scale(fit.scale);
  for (std::size_t i = 0; i < N; ++i) quants[i] = table.code((x[i] - fit.offset) * inverse);
}

/// The element of largest size, the first of equal ones.
template <std::size_t N>
double peak_of(const Weighted<N>& in) {
  double peak = 0;
  for (const double x : in.x) peak = std::abs(x) > std::abs(peak) ? x : peak;
  return peak;
}

/// The scale, of those that trying inverses leads to, by which the squared error falls most against zeros.
template <std::size_t N, typename Range>
class ScaleSearch {
 public:
  ScaleSearch(const Weighted<N>& in, Range range) : in_(in), range_(range) {}

  void try_inverse(double inverse) {
    double xq = 0;
    double qq = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const double q = nearest(in_.x[i] * inverse, range_);
      xq += in_.w[i] * in_.x[i] * q;
      qq += in_.w[i] * q * q;
    }
    if (qq > 0 && xq * xq > best_gain_ * qq) {
      best_gain_ = xq * xq / qq;
      best_scale_ = xq / qq;
    }
  }

  /// The best, improved by fitting it to the integers that it leads to.
  double finish() {
    for (int round = 0; round < 2; ++round) try_inverse(inverse_scale(best_scale_));
    return best_scale_;
  }

 private:
  const Weighted<N>& in_;
  Range range_;
  double best_scale_ = 0;
  double best_gain_ = 0;
};

/// A scale with offset 0, for a range that has negative and positive numbers. May be negative: the larger
/// side of the range goes to the side of the largest element.
template <std::size_t N>
double fit_scale(const Weighted<N>& in, QuantRange range) {
  const double peak = peak_of(in);
  if (peak == 0) return 0;
  ScaleSearch<N, QuantRange> search(in, range);
  constexpr int kSteps = 9;
  for (int step = -kSteps; step <= kSteps; ++step) search.try_inverse((range.low + 0.1 * step) / peak);
  return search.finish();
}

/// The same for a table, of which the largest element may go to either end.
template <std::size_t N>
double fit_scale(const Weighted<N>& in, NormalTable table) {
  const double peak = peak_of(in);
  if (peak == 0) return 0;
  ScaleSearch<N, NormalTable> search(in, table);
  for (const double end : {-127.0, 113.0}) {
    for (int step = -6; step <= 6; step += 3) search.try_inverse((end + step) / peak);
  }
  return search.finish();
}

enum class OffsetRule { any, not_positive };

/// A scale of at least 0 and an offset, for integers 0..high.
template <std::size_t N, OffsetRule Rule>
LinearFit fit_scale_offset(const Weighted<N>& in, double high) {
  const QuantRange range{0, high};
  const auto [least, most] = std::minmax_element(in.x.begin(), in.x.end());
  const double low = Rule == OffsetRule::not_positive ? std::min(*least, 0.0) : *least;
  if (*most <= low) return {0, low};

  // Everything is relative to `low`, so that a spread that is small against the values keeps its digits.
  double sum_w = 0;
  double sum_x = 0;
  for (std::size_t i = 0; i < N; ++i) {
    sum_w += in.w[i];
    sum_x += in.w[i] * (in.x[i] - low);
  }
  LinearFit best{0, 0};
  double best_gain = -1;  // squared error of storing `low`, less that of the fit
  const auto try_fit = [&](double inverse, double offset) {
    double sum_q = 0;
    double sum_qq = 0;
    double sum_xq = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const double x = in.x[i] - low;
      const double q = nearest((x - offset) * inverse, range);
      sum_q += in.w[i] * q;
      sum_qq += in.w[i] * q * q;
      sum_xq += in.w[i] * x * q;
    }
    const double determinant = sum_w * sum_qq - sum_q * sum_q;
    LinearFit fit{0, 0};
    if (determinant > 1e-9 * sum_w * sum_qq) {
      fit.scale = (sum_w * sum_xq - sum_q * sum_x) / determinant;
      fit.offset = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
    }
    const bool allowed = Rule == OffsetRule::any || fit.offset + low <= 0;
    if (fit.scale <= 0 || !allowed) {  // then the scale alone, with the offset as near to 0 as may be
      fit.offset = Rule == OffsetRule::not_positive ? -low : 0;
      fit.scale = sum_qq > 0 ? (sum_xq - fit.offset * sum_q) / sum_qq : 0;
    }
    const double gain = 2 * (fit.scale * sum_xq + fit.offset * sum_x) - fit.scale * fit.scale * sum_qq -
                        2 * fit.scale * fit.offset * sum_q - fit.offset * fit.offset * sum_w;
    if (fit.scale > 0 && gain > best_gain) {
      best_gain = gain;
      best = fit;
    }
  };
  constexpr int kStepsBelow = 6;
  constexpr int kStepsAbove = 9;
  const double spread = *most - low;
  for (int step = -kStepsBelow; step <= kStepsAbove; ++step) try_fit((high + 0.1 * step) / spread, 0);
  for (int round = 0; round < 3; ++round) try_fit(inverse_scale(best.scale), best.offset);
  return {best.scale, best.offset + low};
}

// ---- Halves
// ----------------------------------------------------------------------------------------------------

/// The nearest finite half.
inline std::uint16_t finite_half(double value) {
  constexpr double kLargest = 65504;
  return f32_to_f16(static_cast<float>(std::clamp(value, -kLargest, kLargest)));
}

/// As finite_half, but only 0 becomes 0: an integer scale or quant can still use the smallest half.
inline std::uint16_t scale_half(double value) {
  constexpr double kSmallest = 0x1p-24;
  if (value == 0) return 0;
  return finite_half(std::copysign(std::max(std::abs(value), kSmallest), value));
}

inline double half_value(std::uint16_t half) {
  return f16_to_f32(half);
}

/// The half and its two neighbours in size, where finite: what rounding to nearest does not see is that an
/// uneven pair of scale and quants can suit the elements better.
inline std::array<std::uint16_t, 3> with_neighbours(std::uint16_t half) {
  const unsigned magnitude = half & 0x7fffu;
  const auto below = static_cast<std::uint16_t>(magnitude > 0 ? half - 1 : half);
  const auto above = static_cast<std::uint16_t>(magnitude < 0x7bffu ? half + 1 : half);
  return {below, half, above};
}

}  // namespace quipu::quant
