// Row operations of the vector tables against the scalar one, bit for bit, and of the scalar one against
// plain formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/math.h"

namespace quipu::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_row(std::size_t n, float range, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-range, range);
  std::vector<float> row(n);
  for (float& x : row) x = number(random);
  return row;
}

std::vector<float> ramp(float from, float to, std::size_t n) {
  std::vector<float> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    row[i] = from + (to - from) * static_cast<float>(i) / static_cast<float>(n - 1);
  }
  return row;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Runs `operation(table, n, x, y, out)` on the scalar and the vector table for lengths around those of a
/// vector.
class VectorRowOps : public testing::TestWithParam<const KernelTable*> {
 protected:
  template <typename Operation>
  static void expect_same_bits(Operation operation, float range = 20) {
    for (const std::size_t n :
         {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 64u, 100u, 255u, 256u, 257u, 1000u, 1024u}) {
      const std::vector<float> x = random_row(n, range, 1);
      const std::vector<float> y = random_row(n, range, 2);
      std::vector<float> expected(n + 1, 7.0f);
      std::vector<float> actual(n + 1, 7.0f);
      operation(scalar_kernels(), n, x.data(), y.data(), expected.data());
      operation(*GetParam(), n, x.data(), y.data(), actual.data());
      ASSERT_TRUE(same_bits(expected, actual)) << n;
    }
  }
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorRowOps);
INSTANTIATE_TEST_SUITE_P(, VectorRowOps, testing::ValuesIn(test::vector_tables()),
                         [](const auto& tested) { return test::name_of(tested.param); });

TEST_P(VectorRowOps, RmsNormIsTheScalarOne) {
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    table.rms_norm(x, y, 1e-6f, n, out);
  });
}

TEST_P(VectorRowOps, RmsNormWithoutWeightIsTheScalarOne) {
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*, float* out) {
    table.rms_norm(x, nullptr, 1e-6f, n, out);
  });
}

TEST_P(VectorRowOps, LayerNormIsTheScalarOne) {
  const std::vector<float> bias = random_row(1024, 1, 4);
  expect_same_bits([&](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    table.layer_norm(x, y, bias.data(), 1e-6f, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    table.layer_norm(x, y, nullptr, 1e-6f, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*, float* out) {
    table.layer_norm(x, nullptr, nullptr, 1e-6f, n, out);
  });
}

TEST_P(VectorRowOps, RopeIsTheScalarOne) {
  const std::vector<float> angles = random_row(2000, 1, 3);
  for (const bool halves : {false, true}) {
    for (const std::size_t unrotated : {0u, 2u, 40u}) {
      expect_same_bits(
          [&](const KernelTable& table, std::size_t n, const float* x, const float*, float* out) {
            const std::size_t n_rot = n > unrotated ? (n - unrotated) / 2 * 2 : 0;
            table.rope(x, angles.data(), n_rot, halves, n, out);
          });
    }
  }
}

TEST_P(VectorRowOps, ArithmeticIsTheScalarOne) {
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    table.add(x, y, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    table.multiply(x, y, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*, float* out) {
    table.scale(x, 0.3f, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float* y, float* out) {
    std::copy(y, y + n, out);
    table.accumulate(0.3f, x, n, out);
  });
  expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*, float* out) {
    table.clamp(x, -3, 5, n, out);
  });
}

TEST_P(VectorRowOps, ActivationsAreTheScalarOnes) {
  for (const GatedActivation activation :
       {GatedActivation::silu, GatedActivation::gelu_tanh, GatedActivation::gelu_quick, GatedActivation::relu,
        GatedActivation::relu_squared, GatedActivation::sigmoid, GatedActivation::softplus}) {
    for (const float range : {0.01f, 5.0f, 120.0f}) {
      expect_same_bits([&](const KernelTable& table, std::size_t n, const float* x, const float* y,
                           float* out) { table.gate(activation, x, y, n, out); },
                       range);
      expect_same_bits([&](const KernelTable& table, std::size_t n, const float* x, const float*,
                           float* out) { table.activate(activation, x, n, out); },
                       range);
    }
  }
}

TEST_P(VectorRowOps, SoftCapSigmoidAndSoftmaxAreTheScalarOnes) {
  for (const float range : {0.001f, 1.0f, 120.0f}) {
    expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*,
                        float* out) { table.soft_cap(x, 30, n, out); },
                     range);
    expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*,
                        float* out) { table.sigmoid(x, n, out); },
                     range);
    expect_same_bits([](const KernelTable& table, std::size_t n, const float* x, const float*,
                        float* out) { table.softmax(x, n, out); },
                     range);
  }
}

TEST_P(VectorRowOps, ExpIsTheScalarOneOverItsWholeRange) {
  // softmax of a row whose largest number is 0 divides exp(x) by a sum that both tables have in common
  std::vector<float> x = ramp(-110, 0, 300001);
  for (const float special : {-kInfinity, -1e30f, exact_math::ExpF32::kUnderflow, -0.0f, -1e-30f, -1e-8f}) {
    x.push_back(special);
  }
  std::vector<float> expected(x.size());
  std::vector<float> actual(x.size());
  scalar_kernels().softmax(x.data(), x.size(), expected.data());
  GetParam()->softmax(x.data(), x.size(), actual.data());
  EXPECT_TRUE(same_bits(expected, actual));
}

TEST_P(VectorRowOps, SpecialNumbersAreTheScalarOnes) {
  const std::vector<float> x = {0.0f,  -0.0f, kInfinity, 1e38f,  -1e38f, 88.7228f, 88.7229f, -88.73f,
                                87.4f, 10.0f, 9.9999f,   1e-40f, 1e-45f, -1e-30f,  0.35f,    0.17f};
  std::vector<float> expected(x.size());
  std::vector<float> actual(x.size());
  const auto check = [&](const char* name, auto operation) {
    operation(scalar_kernels(), expected.data());
    operation(*GetParam(), actual.data());
    EXPECT_TRUE(same_bits(expected, actual)) << name;
  };
  check("sigmoid", [&](const KernelTable& table, float* out) { table.sigmoid(x.data(), x.size(), out); });
  check("silu", [&](const KernelTable& table, float* out) {
    table.activate(GatedActivation::silu, x.data(), x.size(), out);
  });
  check("gelu", [&](const KernelTable& table, float* out) {
    table.activate(GatedActivation::gelu_tanh, x.data(), x.size(), out);
  });
  check("quick gelu", [&](const KernelTable& table, float* out) {
    table.activate(GatedActivation::gelu_quick, x.data(), x.size(), out);
  });
  check("relu", [&](const KernelTable& table, float* out) {
    table.activate(GatedActivation::relu, x.data(), x.size(), out);
  });
  check("clamp",
        [&](const KernelTable& table, float* out) { table.clamp(x.data(), -0.0f, 9, x.size(), out); });
  check("soft-cap",
        [&](const KernelTable& table, float* out) { table.soft_cap(x.data(), 1, x.size(), out); });
}

TEST_P(VectorRowOps, NaNStaysNaN) {
  const std::vector<float> x(3, std::nanf(""));
  std::vector<float> out(3);
  for (const KernelTable* table : {&scalar_kernels(), GetParam()}) {
    table->sigmoid(x.data(), 3, out.data());
    EXPECT_TRUE(std::isnan(out[2])) << table->name;
    table->soft_cap(x.data(), 5, 3, out.data());
    EXPECT_TRUE(std::isnan(out[2])) << table->name;
    table->softmax(x.data(), 3, out.data());
    EXPECT_TRUE(std::isnan(out[2])) << table->name;
    table->clamp(x.data(), -1, 1, 3, out.data());
    EXPECT_TRUE(std::isnan(out[2])) << table->name;
    table->activate(GatedActivation::relu, x.data(), 3, out.data());
    EXPECT_TRUE(std::isnan(out[2])) << table->name;
  }
}

/// What the operations mean, on every table that this processor runs.
class RowOps : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(, RowOps, testing::ValuesIn(test::kernel_tables()),
                         [](const auto& tested) { return test::name_of(tested.param); });

TEST_P(RowOps, RmsNormDividesByTheRootMeanSquare) {
  const std::vector<float> x = {3, -4, 0, 5, 1};
  const std::vector<float> weight = {1, 2, 3, 4, 5};
  std::vector<float> out(5);
  table().rms_norm(x.data(), weight.data(), 0.5f, 5, out.data());
  const double root = std::sqrt(51.0 / 5 + 0.5);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(out[i], x[i] / root * weight[i], 1e-6);
}

TEST_P(RowOps, LayerNormTakesTheMeanAwayAndDividesByTheDeviation) {
  const std::vector<float> x = {3, -4, 0, 5, 1};  // mean 1, sum of squares of distances 46
  const std::vector<float> weight = {1, 2, 3, 4, 5};
  const std::vector<float> bias = {0, 1, 0, -1, 2};
  std::vector<float> out(5);
  table().layer_norm(x.data(), weight.data(), bias.data(), 0.5f, 5, out.data());
  const double root = std::sqrt(46.0 / 5 + 0.5);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(out[i], (x[i] - 1) / root * weight[i] + bias[i], 1e-6);
}

TEST_P(RowOps, ActivationsAreWhatTheirFormulasSay) {
  const std::vector<float> x = {-3, -0.5f, 0, 0.25f, 2};
  std::vector<float> out(5);
  const auto expect = [&](GatedActivation activation, auto formula) {
    table().activate(activation, x.data(), 5, out.data());
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(out[i], formula(x[i]), 1e-6);
  };
  expect(GatedActivation::gelu_quick, [](double v) { return v / (1 + std::exp(-1.702 * v)); });
  expect(GatedActivation::relu, [](double v) { return std::max(v, 0.0); });
  expect(GatedActivation::relu_squared, [](double v) { return std::max(v, 0.0) * std::max(v, 0.0); });
  expect(GatedActivation::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); });
  expect(GatedActivation::softplus, [](double v) { return std::log1p(std::exp(v)); });
}

TEST_P(RowOps, ClampGivesTheNearestNumberWithinBounds) {
  const std::vector<float> x = {-3, -1, 0.5f, 2, kInfinity};
  std::vector<float> out(5);
  table().clamp(x.data(), -1, 1.5f, 5, out.data());
  EXPECT_EQ(out, (std::vector<float>{-1, -1, 0.5f, 1.5f, 1.5f}));
}

TEST_P(RowOps, RopeRotatesNeighboursOrHalvesAndCopiesTheRest) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<float> angles = {0, 1, 1, 0};  // a quarter turn, no turn
  std::vector<float> out(6);
  table().rope(x.data(), angles.data(), 4, false, 6, out.data());
  EXPECT_EQ(out, (std::vector<float>{-2, 1, 3, 4, 5, 6}));
  table().rope(x.data(), angles.data(), 4, true, 6, out.data());
  EXPECT_EQ(out, (std::vector<float>{-3, 2, 1, 4, 5, 6}));
}

TEST_P(RowOps, RopeMayWriteOverItsInput) {
  const std::vector<float> angles = random_row(80, 1, 3);
  for (const bool halves : {false, true}) {
    std::vector<float> x = random_row(100, 1, 1);
    std::vector<float> out(100);
    table().rope(x.data(), angles.data(), 80, halves, 100, out.data());
    table().rope(x.data(), angles.data(), 80, halves, 100, x.data());
    EXPECT_TRUE(same_bits(x, out)) << halves;
  }
}

TEST_P(RowOps, GateMultipliesTheActivationByUp) {
  const std::vector<float> gate = {-2, 0, 1, 3};
  const std::vector<float> up = {1, 2, 3, 4};
  std::vector<float> out(4);
  table().gate(GatedActivation::silu, gate.data(), up.data(), 4, out.data());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(out[i], gate[i] / (1 + std::exp(-gate[i])) * up[i], 1e-6);
}

TEST_P(RowOps, SoftCapStaysUnderItsCapAndKeepsSmallNumbers) {
  const std::vector<float> x = {1e30f, -1e30f, 1e-6f, 15};
  std::vector<float> out(4);
  table().soft_cap(x.data(), 30, 4, out.data());
  EXPECT_EQ(out[0], 30.0f);
  EXPECT_EQ(out[1], -30.0f);
  EXPECT_NEAR(out[2], 1e-6f, 1e-12);
  EXPECT_NEAR(out[3], 30 * std::tanh(0.5), 1e-5);
}

TEST_P(RowOps, SoftmaxOfExtremeNumbersSumsToOne) {
  const std::vector<float> x = {1e30f, 1e30f, -1e30f, -kInfinity};
  std::vector<float> out(4);
  table().softmax(x.data(), 4, out.data());
  EXPECT_EQ(out, (std::vector<float>{0.5f, 0.5f, 0, 0}));
}

TEST_P(RowOps, EmptyRowsAreLeftAlone) {
  float out = 7;
  table().softmax(nullptr, 0, &out);
  table().rms_norm(nullptr, nullptr, 1e-6f, 0, &out);
  table().add(nullptr, nullptr, 0, &out);
  EXPECT_EQ(out, 7.0f);
}

}  // namespace
}  // namespace quipu::cpu
