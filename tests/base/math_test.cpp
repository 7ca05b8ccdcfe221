// Accuracy of the exact functions, measured against the C library's long double.
#include "base/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace quipu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInfinityF = std::numeric_limits<float>::infinity();

/// Distance from the exact value in units of the last place of a T near it.
template <typename T>
double ulps(T value, long double exact) {
  const T near = static_cast<T>(exact);
  if (value == near) return static_cast<double>(std::fabs(value - exact) > 0 ? 0.5 : 0);
  int exponent = 0;
  std::frexp(near, &exponent);
  const long double ulp = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact) / ulp);
}

/// The largest error over `count` numbers, uniform in [low, high].
template <typename T, typename Function, typename Exact>
double worst_error(T low, T high, int count, Function function, Exact exact) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<T> number(low, high);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const T x = number(random);
    worst = std::max(worst, ulps<T>(function(x), exact(static_cast<long double>(x))));
  }
  return worst;
}

TEST(ExactMath, ExpIsWithinAnUlp) {
  const auto exact = [](long double x) { return std::exp(x); };
  EXPECT_LE(worst_error(-700.0, 700.0, 200000, exact_math::exp, exact), 1.0);
  EXPECT_LE(worst_error(-1.0, 1.0, 200000, exact_math::exp, exact), 1.0);
}

TEST(ExactMath, ExpAtItsEnds) {
  EXPECT_EQ(exact_math::exp(0.0), 1.0);
  EXPECT_EQ(exact_math::exp(-kInfinity), 0.0);
  EXPECT_EQ(exact_math::exp(kInfinity), kInfinity);
  EXPECT_EQ(exact_math::exp(709.9), kInfinity);
  EXPECT_EQ(exact_math::exp(-746.0), 0.0);
  EXPECT_GT(exact_math::exp(-744.0), 0.0);
  EXPECT_TRUE(std::isfinite(exact_math::exp(709.7)));
  EXPECT_TRUE(std::isnan(exact_math::exp(std::nan(""))));
}

TEST(ExactMath, LogIsWithinAnUlp) {
  const auto exact = [](long double x) { return std::log(x); };
  EXPECT_LE(worst_error(0.0, 10.0, 200000, exact_math::log, exact), 1.0);
  EXPECT_LE(worst_error(0.999, 1.001, 200000, exact_math::log, exact), 1.0);
  EXPECT_LE(worst_error(0.0, 1e300, 1000, exact_math::log, exact), 1.0);
  EXPECT_LE(ulps(exact_math::log(0x1p-1070), std::log(0x1p-1070L)), 1.0);
}

TEST(ExactMath, LogAtItsEnds) {
  EXPECT_EQ(exact_math::log(1.0), 0.0);
  EXPECT_EQ(exact_math::log(0.0), -kInfinity);
  EXPECT_EQ(exact_math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact_math::log(-1.0)));
}

TEST(ExactMath, PowOfRotationBasesIsWithinAnUlp) {
  for (const double base : {10000.0, 500000.0, 1e6, 1e7, 0.25, 1.0000001, 40.0}) {
    const auto function = [base](double y) { return exact_math::pow(base, y); };
    const auto exact = [base](long double y) { return std::pow(static_cast<long double>(base), y); };
    EXPECT_LE(worst_error(-1.0, 1.0, 20000, function, exact), 1.0) << base;
    EXPECT_LE(worst_error(-40.0, 40.0, 20000, function, exact), 1.0) << base;
  }
}

TEST(ExactMath, PowOfWholeNumbersIsExactWhereItFits) {
  EXPECT_EQ(exact_math::pow(2, 10), 1024.0);
  EXPECT_EQ(exact_math::pow(2, -1), 0.5);
  EXPECT_EQ(exact_math::pow(3, 4), 81.0);
  EXPECT_EQ(exact_math::pow(10, 3), 1000.0);
  EXPECT_EQ(exact_math::pow(10000, 1), 10000.0);
}

TEST(ExactMath, PowAtItsEnds) {
  EXPECT_EQ(exact_math::pow(std::nan(""), 0), 1.0);
  EXPECT_EQ(exact_math::pow(0, 2), 0.0);
  EXPECT_EQ(exact_math::pow(0, -2), kInfinity);
  EXPECT_EQ(exact_math::pow(2, 1e300), kInfinity);
  EXPECT_EQ(exact_math::pow(2, -1e300), 0.0);
  EXPECT_EQ(exact_math::pow(2, -kInfinity), 0.0);
  EXPECT_EQ(exact_math::pow(kInfinity, -1), 0.0);
  EXPECT_TRUE(std::isnan(exact_math::pow(-2, 2)));
}

TEST(ExactMath, SineAndCosineAreWithinAnUlp) {
  const auto sine = [](double x) { return exact_math::sin_cos(x).sin; };
  const auto cosine = [](double x) { return exact_math::sin_cos(x).cos; };
  const auto exact_sine = [](long double x) { return std::sin(x); };
  const auto exact_cosine = [](long double x) { return std::cos(x); };
  for (const double range : {0.8, 7.0, 1000.0, 2e5, 1e9}) {
    EXPECT_LE(worst_error(-range, range, 100000, sine, exact_sine), 1.0) << range;
    EXPECT_LE(worst_error(-range, range, 100000, cosine, exact_cosine), 1.0) << range;
  }
}

TEST(ExactMath, SineNearMultiplesOfPiKeepsItsPrecision) {
  for (std::int64_t k = 1; k < 300000000; k = k * 3 + 1) {
    const double x = static_cast<double>(k) * 3.14159265358979323846;
    EXPECT_LE(ulps(exact_math::sin_cos(x).sin, std::sin(static_cast<long double>(x))), 1.0) << k;
  }
}

TEST(ExactMath, SineOfAHugeAngleIsInRangeAndOfNoAngleIsNaN) {
  for (const double x : {1e9, -3e15, 1e300}) {
    const auto [sine, cosine] = exact_math::sin_cos(x);
    EXPECT_NEAR(sine * sine + cosine * cosine, 1.0, 1e-15) << x;
  }
  EXPECT_TRUE(std::isnan(exact_math::sin_cos(kInfinity).sin));
  EXPECT_TRUE(std::isnan(exact_math::sin_cos(std::nan("")).cos));
  EXPECT_EQ(exact_math::sin_cos(0).sin, 0.0);
  EXPECT_EQ(exact_math::sin_cos(0).cos, 1.0);
}

TEST(ExactMath, FloatExpIsWithinAnUlp) {
  const auto exact = [](long double x) { return std::exp(x); };
  EXPECT_LE(worst_error(-87.3f, 88.7f, 300000, exact_math::exp_f32, exact), 1.0);
  EXPECT_LE(worst_error(-1.0f, 1.0f, 300000, exact_math::exp_f32, exact), 1.0);
}

TEST(ExactMath, FloatExpAtItsEnds) {
  EXPECT_EQ(exact_math::exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exact_math::exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exact_math::exp_f32(-kInfinityF), 0.0f);
  EXPECT_EQ(exact_math::exp_f32(-1e38f), 0.0f);
  EXPECT_EQ(exact_math::exp_f32(kInfinityF), kInfinityF);
  EXPECT_TRUE(std::isnan(exact_math::exp_f32(std::nanf(""))));
}

TEST(ExactMath, FloatExpOverflowsAndUnderflowsInOneStep) {
  const float last = exact_math::ExpF32::kOverflow;
  EXPECT_TRUE(std::isfinite(exact_math::exp_f32(last)));
  EXPECT_LE(ulps(exact_math::exp_f32(last), std::exp(static_cast<long double>(last))), 1.0);
  EXPECT_EQ(exact_math::exp_f32(std::nextafter(last, kInfinityF)), kInfinityF);
  EXPECT_GT(std::exp(static_cast<double>(std::nextafter(last, kInfinityF))), 0x1.ffffffp127);

  const float first = exact_math::ExpF32::kUnderflow;
  EXPECT_GE(exact_math::exp_f32(first), std::numeric_limits<float>::min());
  EXPECT_LE(ulps(exact_math::exp_f32(first), std::exp(static_cast<long double>(first))), 1.0);
  EXPECT_EQ(exact_math::exp_f32(std::nextafter(first, -kInfinityF)), 0.0f);
}

TEST(ExactMath, FloatTanhIsWithinThreeUlpsNearZeroToo) {
  const auto exact = [](long double x) { return std::tanh(x); };
  for (const float range : {1e-6f, 0.01f, 0.5f, 2.0f, 12.0f}) {
    EXPECT_LE(worst_error(-range, range, 200000, exact_math::tanh_f32, exact), 3.0) << range;
  }
  EXPECT_EQ(exact_math::tanh_f32(1e-20f), 1e-20f);
}

TEST(ExactMath, FloatTanhAtItsEnds) {
  EXPECT_EQ(exact_math::tanh_f32(kInfinityF), 1.0f);
  EXPECT_EQ(exact_math::tanh_f32(-1e30f), -1.0f);
  EXPECT_EQ(exact_math::tanh_f32(10.0f), 1.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(exact_math::tanh_f32(-0.0f)), 0x80000000u);
  EXPECT_TRUE(std::isnan(exact_math::tanh_f32(std::nanf(""))));
}

TEST(ExactMath, FloatSigmoidAndSiluAreWithinThreeUlps) {
  const auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  const auto silu = [](long double x) { return x / (1 + std::exp(-x)); };
  EXPECT_LE(worst_error(-80.0f, 80.0f, 200000, exact_math::sigmoid_f32, sigmoid), 3.0);
  EXPECT_LE(worst_error(-80.0f, 80.0f, 200000, exact_math::silu_f32, silu), 3.0);
  EXPECT_EQ(exact_math::sigmoid_f32(-1e30f), 0.0f);
  EXPECT_EQ(exact_math::sigmoid_f32(1e30f), 1.0f);
  EXPECT_EQ(exact_math::silu_f32(-1e30f), 0.0f);
  EXPECT_EQ(exact_math::silu_f32(1e30f), 1e30f);
}

TEST(ExactMath, FloatGeluMatchesItsTanhForm) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> number(-12.0f, 12.0f);
  for (int i = 0; i < 200000; ++i) {
    const float x = number(random);
    const long double z = x;
    const long double exact =
        z / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (z + 0.044715L * z * z * z)));
    ASSERT_NEAR(exact_math::gelu_tanh_f32(x), static_cast<double>(exact), 2.5e-7 * std::fabs(x)) << x;
  }
  EXPECT_EQ(exact_math::gelu_tanh_f32(0.0f), 0.0f);
  EXPECT_EQ(exact_math::gelu_tanh_f32(-1e30f), 0.0f);
  EXPECT_EQ(exact_math::gelu_tanh_f32(1e30f), 1e30f);
}

}  // namespace
}  // namespace quipu
