// The formulas of base/math.h. Sums are written in the order in which they are rounded: do not "simplify"
// them.
#include "base/math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace quipu::exact_math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // 42 bits: its product with an exponent is exact
constexpr double kLn2Low = 0x1.ef35793c76730p-45;
constexpr double kRound = 0x1.8p+52;  // adding and subtracting it rounds to an integer

/// A sum of two doubles, the second below half an ulp of the first.
struct Pair {
  double high = 0;
  double low = 0;
};

Pair two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// Dekker's product without fma; no overflow for |a|, |b| < 2^480.
Pair two_product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double a_scaled = a * kSplit;
  const double b_scaled = b * kSplit;
  const double a_high = a_scaled - (a_scaled - a);
  const double b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

double power_of_two(int exponent) {  // -1022 to 1023
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

template <std::size_t N>
constexpr double horner(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

/// 1 / first!, sign / (first + step)!, 1 / (first + 2 step)!, ...
template <std::size_t N>
constexpr std::array<double, N> inverse_factorials(int first, int step, double sign) {
  std::array<double, N> terms{};
  double current_sign = 1;
  for (std::size_t i = 0; i < N; ++i) {
    double factorial = 1;  // exact up to 18!
    for (int k = 2; k <= first + step * static_cast<int>(i); ++k) factorial *= k;
    terms[i] = current_sign / factorial;
    current_sign *= sign;
  }
  return terms;
}

/// exp(x + low) for |low| far below |x|.
double exp_pair(double x, double low) {
  if (x != x) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  static constexpr auto kTerms = inverse_factorials<12>(2, 1, 1);
  const double n = (x * kLog2E + kRound) - kRound;
  const double r_high = x - n * kLn2High;
  const double r_low = low - n * kLn2Low;
  const double r = r_high + r_low;
  const double rest = (r_high - r) + r_low;
  const double value = 1 + (r + (r * r * horner(kTerms, r) + rest));
  const int exponent = static_cast<int>(n);
  const int half = exponent / 2;  // in two steps: the result may be subnormal, or 2^1024 times less than one
  return value * power_of_two(half) * power_of_two(exponent - half);
}

/// x = 2^exponent * mantissa, with the mantissa in [sqrt(1/2), sqrt(2)); x positive and finite.
struct Split {
  int exponent = 0;
  double mantissa = 0;
};

Split split(double x) {
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa >= 0x1.6a09e667f3bcdp+0) {
    mantissa *= 0.5;
    ++exponent;
  }
  return {exponent, mantissa};
}

/// 2/3 + 2/5 z + 2/7 z^2 + ...: with s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2 s + s^3 atanh_tail(s^2).
double atanh_tail(double z) {
  static constexpr std::array<double, 11> kTerms = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                                    2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                                    2.0 / 19, 2.0 / 21, 2.0 / 23};
  return horner(kTerms, z);
}

/// log to about 2^-63 of its value, for pow.
Pair log_pair(double x) {
  const Split parts = split(x);
  const double f = parts.mantissa - 1;
  const Pair divisor = two_sum(2, f);
  const double s = f / divisor.high;
  const Pair back = two_product(s, divisor.high);
  const double s_low = ((f - back.high) - back.low - s * divisor.low) / divisor.high;
  const double z = s * s;
  const double tail = s * z * atanh_tail(z);

  const double k = parts.exponent;
  const Pair main = two_sum(k * kLn2High, 2 * s);
  const Pair with_tail = two_sum(main.high, tail);
  const double low = main.low + with_tail.low + 2 * s_low + k * kLn2Low;
  return two_sum(with_tail.high, low);
}

/// x = quarters * pi/2 + (high + low), |high| <= pi/4.
struct ReducedAngle {
  int quarters = 0;  // mod 4
  Pair rest;
};

/// Cody and Waite: pi/2 in pieces whose products with quarters (at most 30 bits) are exact. |x| < 1e9.
ReducedAngle reduce_angle(double x) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kPi2A = 0x1.921fb4p+0;
  constexpr double kPi2B = 0x1.4442dp-24;
  constexpr double kPi2C = 0x1.84698p-48;
  constexpr double kPi2D = 0x1.3198a2e037073p-69;
  const double n = (x * kTwoOverPi + kRound) - kRound;
  const double a = x - n * kPi2A;  // exact: the two are close, or n is 0
  const Pair b = two_sum(a, -(n * kPi2B));
  const Pair c = two_sum(b.high, -(n * kPi2C));
  const double low = b.low + c.low - n * kPi2D;
  return {static_cast<int>(static_cast<std::int64_t>(n) & 3), two_sum(c.high, low)};
}

float power_of_two_times(float value, float rounded) {
  const std::uint32_t shift = std::bit_cast<std::uint32_t>(rounded)
                              << 23;  // n, from the low bits, to the exponent
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + shift);
}

float exp_polynomial(float r) {
  float q = ExpF32::kQ[4];
  for (int i = 3; i >= 0; --i) q = std::fma(q, r, ExpF32::kQ[i]);
  return q;
}

}  // namespace

double exp(double x) {
  return exp_pair(x, 0);
}

double log(double x) {
  if (x != x || x == kInfinity) return x;
  if (x == 0) return -kInfinity;
  if (x < 0) return kNaN;
  const Split parts = split(x);
  const double f = parts.mantissa - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  // 2 s = f - f^2/2 + s f^2/2 keeps the rounding of s away from the leading term
  const double half_square = 0.5 * f * f;
  const double rest = s * (half_square + z * atanh_tail(z));
  const double k = parts.exponent;
  return k * kLn2High + (f - (half_square - (rest + k * kLn2Low)));
}

double pow(double base, double exponent) {
  if (exponent == 0) return 1;
  if (base != base || exponent != exponent) return kNaN;
  if (base < 0) return kNaN;
  if (base == 1) return 1;
  if (base == 0) return exponent > 0 ? 0 : kInfinity;
  if (base == kInfinity) return exponent > 0 ? kInfinity : 0;
  const Pair logarithm = log_pair(base);
  const double estimate = exponent * logarithm.high;
  if (estimate > 750) return kInfinity;
  if (estimate < -750) return 0;
  const Pair product = two_product(exponent, logarithm.high);
  return exp_pair(product.high, product.low + exponent * logarithm.low);
}

SinCos sin_cos(double x) {
  if (!(x - x == 0)) return {kNaN, kNaN};
  if (!(x < 1e9 && x > -1e9)) x = std::fmod(x, 0x1.921fb54442d18p+2);  // fmod is exact
  const ReducedAngle angle = reduce_angle(x);
  const double r = angle.rest.high;
  const double low = angle.rest.low;
  const double z = r * r;

  static constexpr auto kSinTerms = inverse_factorials<8>(3, 2, -1);  // 1/3! - z/5! + ...
  static constexpr auto kCosTerms = inverse_factorials<7>(4, 2, -1);  // 1/4! - z/6! + ...
  const double half = 0.5 * z;
  const double sine = r - (r * z * horner(kSinTerms, z) - low * (1 - half));
  const double one_less_half = 1 - half;
  const double cosine =
      one_less_half + (((1 - one_less_half) - half) + (z * z * horner(kCosTerms, z) - r * low));

  switch (angle.quarters) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

float exp_f32(float x) {
  if (x != x) return std::numeric_limits<float>::quiet_NaN();
  if (x > ExpF32::kOverflow) return std::numeric_limits<float>::infinity();
  if (x < ExpF32::kUnderflow) return 0.0f;
  const float rounded = std::fma(x, ExpF32::kLog2E, ExpF32::kRound);
  const float n = rounded - ExpF32::kRound;
  const float r = std::fma(n, -ExpF32::kLn2Low, std::fma(n, -ExpF32::kLn2High, x));
  return power_of_two_times(std::fma(std::fma(exp_polynomial(r), r, 1.0f), r, 1.0f), rounded);
}

float tanh_f32(float x) {
  const float magnitude = std::fabs(x);
  const float y = 2 * (kTanhLimit < magnitude ? kTanhLimit : magnitude);
  const float rounded = std::fma(y, ExpF32::kLog2E, ExpF32::kRound);
  const float n = rounded - ExpF32::kRound;
  const float r = std::fma(n, -ExpF32::kLn2Low, std::fma(n, -ExpF32::kLn2High, y));
  const float power = power_of_two_times(1.0f, rounded);
  const float expm1 = std::fma(std::fma(exp_polynomial(r) * r, r, r), power, power - 1.0f);
  return std::copysign(expm1 / (expm1 + 2.0f), x);
}

float softplus_f32(float x) {
  return x > 20.0f ? x : static_cast<float>(log(1.0 + exp(static_cast<double>(x))));
}

float sigmoid_f32(float x) {
  return 1.0f / (1.0f + exp_f32(-x));
}

float silu_f32(float x) {
  return x / (1.0f + exp_f32(-x));
}

float gelu_tanh_f32(float x) {
  const float u = x * std::fma(kGelu3, x * x, kGelu1);
  return x / (1.0f + exp_f32(-u));
}

}  // namespace quipu::exact_math
