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

/// What to multiply by to divide by the scale; 0 for 0, so that such a scale leads to zeros.
inline double inverse_scale(double scale) {
  return scale == 0 ? 0.0 : 1 / scale;
}

/// Sum of w * (x - (scale * q + offset))^2 with the best q for each element.
template <std::size_t N>
double squared_error(const Weighted<N>& in, LinearFit fit, QuantRange range) {
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

/// A scale with offset 0, for a range that has negative and positive numbers. May be negative: the larger
/// side of the range goes to the side of the largest element.
template <std::size_t N>
double fit_scale(const Weighted<N>& in, QuantRange range) {
  double peak = 0;
  for (const double x : in.x) peak = std::abs(x) > std::abs(peak) ? x : peak;
  if (peak == 0) return 0;

  double best_scale = 0;
  double best_gain = 0;  // by how much the squared error falls against storing zeros
  const auto try_inverse = [&](double inverse) {
    double xq = 0;
    double qq = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const double q = nearest(in.x[i] * inverse, range);
      xq += in.w[i] * in.x[i] * q;
      qq += in.w[i] * q * q;
    }
    if (qq > 0 && xq * xq > best_gain * qq) {
      best_gain = xq * xq / qq;
      best_scale = xq / qq;
    }
  };
  constexpr int kSteps = 9;
  for (int step = -kSteps; step <= kSteps; ++step) try_inverse((range.low + 0.1 * step) / peak);
  for (int round = 0; round < 2; ++round) try_inverse(inverse_scale(best_scale));
  return best_scale;
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
