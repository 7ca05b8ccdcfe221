// Single operations on the CPU against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/cpu/plan_fixture.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"

namespace quipu {
namespace {

using test::random_floats;
using test::run;
using test::TestWeight;

class CpuOperation : public test::CpuPlan {
 protected:
  Value input(Shape shape) { return graph_.input("x", ElementType::f32, shape); }
  /// Compiles the graph with `y` as its output and runs it.
  std::vector<float> compute(Value y, const std::vector<float>& x, std::size_t n_tokens) {
    graph_.output(y);
    const auto plan = device_->compile(graph_, {n_tokens, 0}, 2);
    return run(*plan, x, n_tokens, y.shape().row_elements());
  }
  TestWeight vector(std::string name, std::vector<float> values) {
    const std::size_t n = values.size();
    return {*device_, std::move(name), ElementType::f32, WeightRole::vector, {n}, std::move(values)};
  }
};

TEST_F(CpuOperation, SliceTakesAPartOfEachHead) {
  std::vector<float> x(2 * 3 * 5);
  std::iota(x.begin(), x.end(), 0.0f);
  const std::vector<float> out = compute(slice(input({Dim::tokens(), 3, 5}), 1, 2), x, 2);
  EXPECT_EQ(out, (std::vector<float>{1, 2, 6, 7, 11, 12, 16, 17, 21, 22, 26, 27}));
}

TEST_F(CpuOperation, ConcatPutsHeadsSideBySide) {
  const Value x = input({Dim::tokens(), 2, 3});
  const std::vector<float> out = compute(concat(scale(x, 10), slice(x, 0, 1)), {1, 2, 3, 4, 5, 6}, 1);
  EXPECT_EQ(out, (std::vector<float>{10, 20, 30, 1, 40, 50, 60, 4}));
}

TEST_F(CpuOperation, ConcatSharesTheOnlyHeadOfTheSecond) {
  const Value x = input({Dim::tokens(), 4});
  const Value heads = view(scale(x, 10), {Dim::tokens(), 2, 2});
  const Value shared = view(slice(x, 3, 1), {Dim::tokens(), 1, 1});
  const std::vector<float> out = compute(concat(heads, shared), {1, 2, 3, 4, 5, 6, 7, 8}, 2);
  EXPECT_EQ(out, (std::vector<float>{10, 20, 4, 30, 40, 4, 50, 60, 8, 70, 80, 8}));
}

TEST_F(CpuOperation, ClampAndSoftmaxWorkOnRows) {
  const std::vector<float> out = compute(softmax(clamp(input({Dim::tokens(), 2}), 0, 1)), {-5, 7, 3, 3}, 2);
  EXPECT_NEAR(out[0], 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(out[1], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(out[2], 0.5f);
}

TEST_F(CpuOperation, LayerNormWorksOnEachHead) {
  const TestWeight weight = vector("w", {2, 4});
  const TestWeight bias = vector("b", {1, -1});
  const Value y = layer_norm(input({Dim::tokens(), 2, 2}), graph_.weight(weight.weight()),
                             graph_.weight(bias.weight()), 0);
  const std::vector<float> out = compute(y, {1, 3, -8, 8}, 1);
  EXPECT_EQ(out, (std::vector<float>{-1, 3, -1, 3}));
}

TEST_F(CpuOperation, LookUpTakesTheLastRowForThoseBeyond) {
  const TestWeight table(*device_, "table", ElementType::f32, WeightRole::matrix, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Value rows = graph_.input("rows", ElementType::i32, {Dim::tokens()});
  graph_.output(look_up(graph_.weight(table.weight()), rows));
  const auto plan = device_->compile(graph_, {4, 0}, 1);
  const std::vector<std::int32_t> ids = {2, 0, 7, -1};
  std::vector<float> out(8);
  const void* inputs[] = {ids.data()};
  float* outputs[] = {out.data()};
  plan->run({.extents = {4, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  EXPECT_EQ(out, (std::vector<float>{5, 6, 1, 2, 5, 6, 1, 2}));
}

TEST_F(CpuOperation, AddRowAddsOneRowOfATable) {
  const TestWeight table(*device_, "types", ElementType::f32, WeightRole::vector, {2, 2}, {1, 2, 30, 40});
  const Value y = add_row(input({Dim::tokens(), 2}), graph_.weight(table.weight()), 1);
  EXPECT_EQ(compute(y, {1, 1, 2, 2}, 2), (std::vector<float>{31, 41, 32, 42}));
}

TEST_F(CpuOperation, EmbedScalesTokensButNotGivenEmbeddings) {
  const TestWeight table(*device_, "table", ElementType::f32, WeightRole::matrix, {2, 2}, {1, 2, 3, 4});
  const Value tokens = graph_.input("tokens", ElementType::i32, {Dim::tokens()});
  const Value embeddings = graph_.input("embeddings", ElementType::f32, {Dim::tokens(), 2});
  graph_.output(embed(graph_.weight(table.weight()), tokens, embeddings, 10));
  const auto plan = device_->compile(graph_, {2, 0}, 1);
  const std::vector<std::int32_t> ids = {1, -1};
  const std::vector<float> given = {0, 0, 7, 8};
  std::vector<float> out(4);
  const void* inputs[] = {ids.data(), given.data()};
  float* outputs[] = {out.data()};
  plan->run({.extents = {2, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  EXPECT_EQ(out, (std::vector<float>{30, 40, 7, 8}));
}

TEST_F(CpuOperation, MultiplyTakesFactorsForElementsForRunsAndFromAWeight) {
  const TestWeight weight = vector("w", {10, 100});
  const Value x = input({Dim::tokens(), 2, 2});
  const Value by_head = view(slice(view(x, {Dim::tokens(), 4}), 0, 2), {Dim::tokens(), 2, 1});
  const Value by_row = slice(view(x, {Dim::tokens(), 4}), 3, 1);
  const Value squares = multiply(x, x);
  const Value y = multiply(multiply(multiply(squares, by_head), by_row), graph_.weight(weight.weight()));
  // x * x, times x[head], times x[3], times 10 or 100
  EXPECT_EQ(compute(y, {2, 3, 5, 7}, 1),
            (std::vector<float>{4 * 2 * 7 * 10, 9 * 2 * 7 * 100, 25 * 3 * 7 * 10, 49 * 3 * 7 * 100}));
}

TEST_F(CpuOperation, LimitsOfAGateBoundUpAndEitherTheGateOrItsActivation) {
  const Value x = input({Dim::tokens(), 200});
  const Value gate = slice(x, 0, 100), up = slice(x, 100, 100);
  const std::vector<float> values = random_floats(200, 1);
  const GateLimits before{.bound = 0.5f, .on_gate = true, .up_offset = 1}, after{.bound = 0.25f};
  const std::vector<float> out = compute(
      concat(gated(Activation::relu, gate, up, before), gated(Activation::relu, gate, up, after)), values, 1);
  for (std::size_t i = 0; i < 100; ++i) {
    const float g = std::max(values[i], 0.0f), u = values[100 + i];
    EXPECT_EQ(out[i], std::min(g, 0.5f) * (std::clamp(u, -0.5f, 0.5f) + 1)) << i;
    EXPECT_EQ(out[100 + i], std::min(g, 0.25f) * std::clamp(u, -0.25f, 0.25f)) << i;
  }
}

TEST_F(CpuOperation, ScaleMayAddAnOffset) {
  EXPECT_EQ(compute(scale(input({Dim::tokens(), 3}), 2, 1), {0, 1, -4}, 1), (std::vector<float>{1, 3, -7}));
}

TEST_F(CpuOperation, MixAddsUpRowsByFactors) {
  const Value x = input({Dim::tokens(), 10});
  const Value rows = view(slice(x, 0, 4), {Dim::tokens(), 2, 2});
  const Value factors = view(slice(x, 4, 6), {Dim::tokens(), 3, 2});
  // rows (1, 2) and (3, 4); factors (1, 0), (0, 1), (10, 100)
  EXPECT_EQ(compute(mix(rows, factors), {1, 2, 3, 4, 1, 0, 0, 1, 10, 100}, 1),
            (std::vector<float>{1, 2, 3, 4, 310, 420}));
}

TEST_F(CpuOperation, MagnitudeIsTheLengthOfEachHead) {
  EXPECT_EQ(compute(magnitude(input({Dim::tokens(), 2, 2})), {3, 4, -5, 12}, 1), (std::vector<float>{5, 13}));
}

TEST_F(CpuOperation, SparsifyKeepsWhatIsFarAboveTheMean) {
  // mean 2, deviation (of three degrees of freedom) 4
  const std::vector<float> out = compute(sparsify(input({Dim::tokens(), 4}), 1), {0, 0, 0, 8}, 1);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 2}));
}

TEST_F(CpuOperation, TemperatureGrowsWithEachLengthOfPositions) {
  const Value positions = graph_.input("positions", ElementType::i32, {Dim::tokens()});
  graph_.output(position_temperature(positions, {.scale = 0.5f, .length = 10, .offset = 1}));
  const auto plan = device_->compile(graph_, {4, 0}, 1);
  const std::vector<std::int32_t> given = {0, 8, 9, 29};
  std::vector<float> out(4);
  const void* inputs[] = {given.data()};
  float* outputs[] = {out.data()};
  plan->run({.extents = {4, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 1);
  EXPECT_NEAR(out[2], 1 + 0.5 * std::log(2), 1e-6);
  EXPECT_NEAR(out[3], 1 + 0.5 * std::log(4), 1e-6);
}

/// Experts in all their forms against plain loops. Two of four experts, width 3, hidden width 2.
class CpuExperts : public CpuOperation {
 protected:
  static constexpr std::size_t kExperts = 4, kWidth = 3, kHidden = 2;

  const Value x_ = input({Dim::tokens(), kWidth});
  const Value routes_ = graph_.input("routes", ElementType::f32, {Dim::tokens(), 2, 2});
  const std::vector<float> given_ = {0.5f, -1, 2};
  const std::vector<float> chosen_ = {3, 0.75f, 1, 0.5f};  // expert, weight

  TestWeight matrix(std::string name, std::size_t n_rows, std::size_t n_cols, std::vector<float> values) {
    return {
        *device_,         std::move(name), ElementType::f32, WeightRole::matrix, {kExperts, n_rows, n_cols},
        std::move(values)};
  }
  TestWeight bias(std::string name, std::size_t n_rows, std::vector<float> values) {
    return {*device_,           std::move(name),    ElementType::f32,
            WeightRole::vector, {kExperts, n_rows}, std::move(values)};
  }
  std::vector<float> run_experts(const ExpertWeights& weights, const ExpertsParams& params) {
    graph_.output(experts(x_, routes_, weights, params));
    const auto plan = device_->compile(graph_, {1, 0}, 2);
    std::vector<float> out(kWidth);
    const void* inputs[] = {given_.data(), chosen_.data()};
    float* outputs[] = {out.data()};
    plan->run({.extents = {1, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 2});
    return out;
  }
  static float dot(const std::vector<float>& matrix, std::size_t row, const std::vector<float>& x) {
    float sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum = std::fma(matrix[row * x.size() + i], x[i], sum);
    return sum;
  }
};

TEST_F(CpuExperts, HaveBiasesOfTheirOwn) {
  const auto gate = random_floats(kExperts * kHidden * kWidth, 1),
             up = random_floats(kExperts * kHidden * kWidth, 2);
  const auto down = random_floats(kExperts * kWidth * kHidden, 3);
  const auto gate_bias = random_floats(kExperts * kHidden, 4), up_bias = random_floats(kExperts * kHidden, 5);
  const auto down_bias = random_floats(kExperts * kWidth, 6);
  const TestWeight weights[] = {matrix("gate", kHidden, kWidth, gate), matrix("up", kHidden, kWidth, up),
                                matrix("down", kWidth, kHidden, down), bias("gb", kHidden, gate_bias),
                                bias("ub", kHidden, up_bias),          bias("db", kWidth, down_bias)};
  const auto value = [&](std::size_t i) { return graph_.weight(weights[i].weight()); };
  const std::vector<float> out = run_experts({value(0), value(1), value(2), value(3), value(4), value(5)},
                                             {.activation = Activation::relu});
  for (std::size_t i = 0; i < kWidth; ++i) {
    float expected = 0;
    for (const std::size_t slot : {0, 1}) {
      const auto e = static_cast<std::size_t>(chosen_[2 * slot]);
      std::vector<float> hidden;
      for (std::size_t h = 0; h < kHidden; ++h) {
        const float g = dot(gate, e * kHidden + h, given_) + gate_bias[e * kHidden + h];
        hidden.push_back(std::max(g, 0.0f) * (dot(up, e * kHidden + h, given_) + up_bias[e * kHidden + h]));
      }
      expected += chosen_[2 * slot + 1] * (dot(down, e * kWidth + i, hidden) + down_bias[e * kWidth + i]);
    }
    EXPECT_NEAR(out[i], expected, 1e-5);
  }
}

TEST_F(CpuExperts, MayHaveTheGateInUp) {
  const auto gate = random_floats(kExperts * kHidden * kWidth, 1),
             up = random_floats(kExperts * kHidden * kWidth, 2);
  std::vector<float> both;
  for (std::size_t e = 0; e < kExperts; ++e) {
    for (const auto& half : {gate, up}) {
      const auto begin = half.begin() + static_cast<std::ptrdiff_t>(e * kHidden * kWidth);
      both.insert(both.end(), begin, begin + kHidden * kWidth);
    }
  }
  const TestWeight weights[] = {
      matrix("gate", kHidden, kWidth, gate), matrix("up", kHidden, kWidth, up),
      matrix("both", 2 * kHidden, kWidth, both),
      matrix("down", kWidth, kHidden, random_floats(kExperts * kWidth * kHidden, 3))};
  const auto value = [&](std::size_t i) { return graph_.weight(weights[i].weight()); };
  const Value apart = experts(x_, routes_, {value(0), value(1), value(3)}, {.activation = Activation::silu});
  const Value joined = experts(x_, routes_, {{}, value(2), value(3)}, {.activation = Activation::silu});
  graph_.output(concat(apart, joined));
  const auto plan = device_->compile(graph_, {1, 0}, 1);
  std::vector<float> out(2 * kWidth);
  const void* inputs[] = {given_.data(), chosen_.data()};
  float* outputs[] = {out.data()};
  plan->run({.extents = {1, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  for (std::size_t i = 0; i < kWidth; ++i) EXPECT_EQ(out[i], out[kWidth + i]);
}

TEST_F(CpuExperts, MayWeighWhatTheySee) {
  const auto up = random_floats(kExperts * kHidden * kWidth, 2),
             down = random_floats(kExperts * kWidth * kHidden, 3);
  const TestWeight raise = matrix("up", kHidden, kWidth, up), lower = matrix("down", kWidth, kHidden, down);
  const std::vector<float> out =
      run_experts({{}, graph_.weight(raise.weight()), graph_.weight(lower.weight())},
                  {.activation = Activation::relu_squared, .weigh_input = true});
  for (std::size_t i = 0; i < kWidth; ++i) {
    float expected = 0;
    for (const std::size_t slot : {0, 1}) {
      const auto e = static_cast<std::size_t>(chosen_[2 * slot]);
      std::vector<float> weighed, hidden;
      for (const float v : given_) weighed.push_back(v * chosen_[2 * slot + 1]);
      for (std::size_t h = 0; h < kHidden; ++h) {
        const float u = std::max(dot(up, e * kHidden + h, weighed), 0.0f);
        hidden.push_back(u * u);
      }
      expected += dot(down, e * kWidth + i, hidden);
    }
    EXPECT_NEAR(out[i], expected, 1e-5);
  }
}

/// A product for each head, for weights of float and block types.
class HeadMatmul : public CpuOperation, public testing::WithParamInterface<ElementType> {};

TEST_P(HeadMatmul, IsTheProductOfEachHeadAlone) {
  constexpr std::size_t kHeads = 3, kRows = 37, kCols = 64, kTokens = 5;
  const std::vector<float> values = random_floats(kHeads * kRows * kCols, 1);
  const std::vector<float> x = random_floats(kTokens * kHeads * kCols, 2);
  const TestWeight weight(*device_, "heads", GetParam(), WeightRole::matrix, {kHeads, kRows, kCols}, values);
  const std::vector<float> out =
      compute(head_matmul(input({Dim::tokens(), kHeads, kCols}), graph_.weight(weight.weight())), x, kTokens);
  for (std::size_t head = 0; head < kHeads; ++head) {
    Graph alone;
    const std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(head * kRows * kCols),
                                  values.begin() + static_cast<std::ptrdiff_t>((head + 1) * kRows * kCols));
    const TestWeight own(*device_, "head", GetParam(), WeightRole::matrix, {kRows, kCols}, part);
    const Value y = alone.input("x", ElementType::f32, {Dim::tokens(), kCols});
    alone.output(matmul(y, alone.weight(own.weight())));
    const auto plan = device_->compile(alone, {1, 0}, 1);
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto row = x.begin() + static_cast<std::ptrdiff_t>((t * kHeads + head) * kCols);
      const std::vector<float> expected =
          run(*plan, {row, row + static_cast<std::ptrdiff_t>(kCols)}, 1, kRows, 1);
      const auto begin = out.begin() + static_cast<std::ptrdiff_t>((t * kHeads + head) * kRows);
      EXPECT_EQ(std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(kRows)), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HeadMatmul,
                         testing::Values(ElementType::f32, ElementType::bf16, ElementType::q8_0),
                         [](const auto& test) { return std::string(quipu::info(test.param).name); });

class CpuRoute : public CpuOperation {
 protected:
  std::vector<float> routes(const std::vector<float>& logits, RouteParams params,
                            std::vector<float> bias = {}) {
    const std::size_t n = logits.size();
    if (bias.empty()) return compute(route(input({Dim::tokens(), n}), params), logits, 1);
    const TestWeight weight = vector("bias", std::move(bias));
    return compute(route(input({Dim::tokens(), n}), params, graph_.weight(weight.weight())), logits, 1);
  }
  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
};

TEST_F(CpuRoute, ABiasTakesPartInTheChoiceButNotInTheWeights) {
  const std::vector<float> out =
      routes({2, 1, 0}, {.n_used = 2, .gating = ExpertGating::sigmoid, .normalize = false}, {0, 0, 9});
  EXPECT_EQ(out[0], 2);
  EXPECT_NEAR(out[1], 0.5f, 1e-6);
  EXPECT_EQ(out[2], 0);
  EXPECT_NEAR(out[3], sigmoid(2), 1e-6);
}

TEST_F(CpuRoute, OnlyExpertsOfTheBestGroupsAreChosen) {
  // The best expert is in the first group, but the second and third have the larger sums of two.
  const RouteParams params{
      .n_used = 3, .gating = ExpertGating::sigmoid, .normalize = false, .n_groups = 3, .n_groups_used = 2};
  const std::vector<float> out = routes({5, -5, -5, 2, 1, -5, 3, 2.5f, -5}, params);
  EXPECT_EQ(out[0], 6);
  EXPECT_EQ(out[2], 7);
  EXPECT_EQ(out[4], 3);
}

TEST_F(CpuRoute, ASoftmaxMayBeOverTheChosenAlone) {
  const std::vector<float> out =
      routes({1, 3, 2, 0}, {.n_used = 2, .gating = ExpertGating::chosen_softmax, .normalize = false});
  EXPECT_EQ(out[0], 1);
  EXPECT_NEAR(out[1], sigmoid(1), 1e-6);
  EXPECT_EQ(out[2], 2);
  EXPECT_NEAR(out[3], sigmoid(-1), 1e-6);
}

TEST_F(CpuRoute, AScaleOfExpertsMultipliesTheirWeights) {
  const TestWeight scales = vector("scales", {1, 10, 100});
  const Value y =
      route(input({Dim::tokens(), 3}), {.n_used = 2, .gating = ExpertGating::sigmoid, .normalize = false}, {},
            graph_.weight(scales.weight()));
  const std::vector<float> out = compute(y, {0, 1, 2}, 1);
  EXPECT_EQ(out[0], 2);
  EXPECT_NEAR(out[1], 100 * sigmoid(2), 1e-4);
  EXPECT_NEAR(out[3], 10 * sigmoid(1), 1e-5);
}

TEST_F(CpuRoute, ChunksOfExpertsAreChosenByTheirBestOne) {
  const std::vector<float> out = routes(
      {0, 1, -1, 3}, {.n_used = 2, .gating = ExpertGating::sigmoid, .normalize = false, .chunk_size = 2});
  EXPECT_EQ(out[0], 1);  // of expert 3, with the weight of expert 1
  EXPECT_NEAR(out[1], sigmoid(1), 1e-6);
  EXPECT_EQ(out[2], 0);
  EXPECT_NEAR(out[3], sigmoid(0), 1e-6);
}

TEST_F(CpuRoute, WeightsAreNotDividedByLessThanATinySum) {
  const std::vector<float> out =
      routes({-60, -50}, {.n_used = 1, .gating = ExpertGating::sigmoid, .normalize = true});
  EXPECT_EQ(out[0], 1);
  EXPECT_LT(out[1], 1e-15f);
}

}  // namespace
}  // namespace quipu
