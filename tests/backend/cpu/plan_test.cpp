// Plans as wholes: what the compiler makes of small graphs, and that no number depends on how they are run.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>

#include "backend/cpu/plan_fixture.h"
#include "backend/device.h"
#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "quant/quant.h"

namespace quipu {
namespace {

using test::CpuPlan;
using test::random_floats;
using test::run;
using test::TestWeight;

/// A chain of products that cannot share a phase, so that a run has many.
Value long_graph(Graph& graph, const Weight& weight, std::size_t n_products) {
  Value x = graph.input("x", ElementType::f32, {Dim::tokens(), 64});
  for (std::size_t i = 0; i < n_products; ++i) x = rms_norm(matmul(x, graph.weight(weight)), {}, 1e-5f);
  return x;
}

TEST_F(CpuPlan, JoinsRowByRowStepsAndSharedInputsInOnePhase) {
  const TestWeight norm(*device_, "norm", ElementType::f32, WeightRole::vector, {64},
                        std::vector<float>(64, 1.0f));
  const TestWeight a(*device_, "a", ElementType::q8_0, WeightRole::matrix, {64, 64},
                     random_floats(64 * 64, 1));
  const TestWeight b(*device_, "b", ElementType::q8_0, WeightRole::matrix, {64, 64},
                     random_floats(64 * 64, 2));
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 64});
  const Value normed = rms_norm(x, graph_.weight(norm.weight()), 1e-5f);
  const Value gate = matmul(normed, graph_.weight(a.weight()));
  const Value up = matmul(normed, graph_.weight(b.weight()));
  graph_.output(gated(Activation::silu, gate, up));
  const auto plan = device_->compile(graph_, {8, 0}, 2);
  run(*plan, random_floats(8 * 64, 3), 8, 64, 2);
  EXPECT_EQ(plan->n_meetings(), 3u);  // norm and quantize | both products | gate
}

TEST_F(CpuPlan, RowsOfOneTokenAreDoneByWhoWasLast) {
  const TestWeight w(*device_, "w", ElementType::q8_0, WeightRole::matrix, {64, 64},
                     random_floats(64 * 64, 1));
  graph_.output(long_graph(graph_, w.weight(), 10));
  const auto plan = device_->compile(graph_, {4, 0}, 3);
  const std::vector<float> input = random_floats(4 * 64, 2);
  run(*plan, input, 4, 64, 3);
  EXPECT_EQ(plan->n_meetings(), 1 + 2 * 10u);  // quantize | product | norm and quantize | ...
  run(*plan, input, 1, 64, 3);
  EXPECT_EQ(plan->n_meetings(), 1 + 10u);
  run(*plan, input, 1, 64, 1);
  EXPECT_EQ(plan->n_meetings(), 0u);
}

TEST_F(CpuPlan, GivesTheSameBitsForAnyTokenAndThreadCount) {
  const TestWeight a(*device_, "a", ElementType::q4_0, WeightRole::matrix, {50, 96},
                     random_floats(50 * 96, 1));
  const TestWeight b(*device_, "b", ElementType::f32, WeightRole::matrix, {17, 50},
                     random_floats(17 * 50, 2));
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 96});
  const Value hidden = activate(Activation::silu, matmul(rms_norm(x, {}, 1e-5f), graph_.weight(a.weight())));
  graph_.output(matmul(hidden, graph_.weight(b.weight())));
  const auto plan = device_->compile(graph_, {33, 0}, 3);

  const std::vector<float> input = random_floats(33 * 96, 3);
  const std::vector<float> whole = run(*plan, input, 33, 17, 1);
  for (const unsigned n_threads : {1u, 2u, 3u}) {
    EXPECT_EQ(run(*plan, input, 33, 17, n_threads), whole);
    for (std::size_t t = 0; t < 33; t += 8) {
      const std::vector<float> token(input.begin() + static_cast<std::ptrdiff_t>(t * 96),
                                     input.begin() + static_cast<std::ptrdiff_t>((t + 1) * 96));
      const std::vector<float> row(whole.begin() + static_cast<std::ptrdiff_t>(t * 17),
                                   whole.begin() + static_cast<std::ptrdiff_t>((t + 1) * 17));
      EXPECT_EQ(run(*plan, token, 1, 17, n_threads), row);
    }
  }
}

TEST_F(CpuPlan, RunsNoTokensAtAll) {
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 8});
  graph_.output(scale(x, 2));
  const auto plan = device_->compile(graph_, {4, 0}, 2);
  EXPECT_TRUE(run(*plan, {}, 0, 8, 2).empty());
}

TEST_F(CpuPlan, RefusesMoreTokensThanReserved) {
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 8});
  graph_.output(scale(x, 2));
  const auto plan = device_->compile(graph_, {4, 0}, 2);
  EXPECT_THROW(run(*plan, std::vector<float>(40), 5, 8, 2), Error);
}

TEST_F(CpuPlan, EndsEarlyWhenTheCallbackSaysSo) {
  const TestWeight w(*device_, "w", ElementType::q8_0, WeightRole::matrix, {64, 64},
                     random_floats(64 * 64, 1));
  graph_.output(long_graph(graph_, w.weight(), 50));
  const auto plan = device_->compile(graph_, {4, 0}, 3);
  const std::vector<float> input = random_floats(4 * 64, 2);
  std::vector<float> out(4 * 64);
  const void* inputs[] = {input.data()};
  float* outputs[] = {out.data()};
  for (const unsigned n_threads : {1u, 2u, 3u}) {
    int n_asked = 0;
    const std::function<bool()> abort = [&] { return ++n_asked == 5; };
    plan->run({.extents = {4, 0},
               .inputs = inputs,
               .outputs = outputs,
               .layouts = {},
               .n_threads = n_threads,
               .abort = &abort});
    EXPECT_EQ(n_asked, 5);
    const std::vector<float> whole = run(*plan, input, 4, 64, 1);  // and is as good as new
    EXPECT_EQ(run(*plan, input, 4, 64, n_threads), whole);
  }
}

TEST_F(CpuPlan, PassesOnWhatTheCallbackThrows) {
  const TestWeight w(*device_, "w", ElementType::q8_0, WeightRole::matrix, {64, 64},
                     random_floats(64 * 64, 1));
  graph_.output(long_graph(graph_, w.weight(), 20));
  const auto plan = device_->compile(graph_, {4, 0}, 2);
  const std::vector<float> input = random_floats(4 * 64, 2);
  std::vector<float> out(4 * 64);
  const void* inputs[] = {input.data()};
  float* outputs[] = {out.data()};
  const std::function<bool()> abort = []() -> bool { throw std::runtime_error("enough"); };
  EXPECT_THROW(plan->run({.extents = {4, 0},
                          .inputs = inputs,
                          .outputs = outputs,
                          .layouts = {},
                          .n_threads = 2,
                          .abort = &abort}),
               std::runtime_error);
  EXPECT_EQ(run(*plan, input, 4, 64, 2), run(*plan, input, 4, 64, 1));
}

TEST_F(CpuPlan, FindsEachExpertOfEachToken) {
  constexpr std::size_t kExperts = 5, kWidth = 16, kHidden = 24, kUsed = 2, kTokens = 9;
  const TestWeight gate(*device_, "gate", ElementType::f32, WeightRole::matrix, {kExperts, kHidden, kWidth},
                        random_floats(kExperts * kHidden * kWidth, 1));
  const TestWeight up(*device_, "up", ElementType::f32, WeightRole::matrix, {kExperts, kHidden, kWidth},
                      random_floats(kExperts * kHidden * kWidth, 2));
  const TestWeight down(*device_, "down", ElementType::f32, WeightRole::matrix, {kExperts, kWidth, kHidden},
                        random_floats(kExperts * kWidth * kHidden, 3));
  const TestWeight router(*device_, "router", ElementType::f32, WeightRole::matrix, {kExperts, kWidth},
                          random_floats(kExperts * kWidth, 4));
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), kWidth});
  const Value routes = route(matmul(x, graph_.weight(router.weight())),
                             {.n_used = kUsed, .gating = ExpertGating::softmax, .normalize = true});
  graph_.output(experts(
      x, routes, {graph_.weight(gate.weight()), graph_.weight(up.weight()), graph_.weight(down.weight())},
      {.activation = Activation::silu}));
  const auto plan = device_->compile(graph_, {kTokens, 0}, 3);
  const std::vector<float> input = random_floats(kTokens * kWidth, 5);
  const std::vector<float> result = run(*plan, input, kTokens, kWidth, 3);

  const auto dot = [](const float* a, const float* b, std::size_t n) {
    return std::inner_product(a, a + n, b, 0.0);
  };
  for (std::size_t t = 0; t < kTokens; ++t) {
    const float* row = input.data() + t * kWidth;
    std::vector<double> logits(kExperts);
    for (std::size_t e = 0; e < kExperts; ++e)
      logits[e] = dot(router.values().data() + e * kWidth, row, kWidth);
    std::vector<std::size_t> order(kExperts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    const double share = 1 / (1 + std::exp(logits[order[1]] - logits[order[0]]));
    std::vector<double> expected(kWidth, 0.0);
    for (std::size_t slot = 0; slot < kUsed; ++slot) {
      const std::size_t e = order[slot];
      std::vector<float> hidden(kHidden);
      for (std::size_t h = 0; h < kHidden; ++h) {
        const double g = dot(gate.values().data() + (e * kHidden + h) * kWidth, row, kWidth);
        const double u = dot(up.values().data() + (e * kHidden + h) * kWidth, row, kWidth);
        hidden[h] = static_cast<float>(g / (1 + std::exp(-g)) * u);
      }
      for (std::size_t i = 0; i < kWidth; ++i) {
        expected[i] += (slot == 0 ? share : 1 - share) *
                       dot(down.values().data() + (e * kWidth + i) * kHidden, hidden.data(), kHidden);
      }
    }
    for (std::size_t i = 0; i < kWidth; ++i)
      EXPECT_NEAR(result[t * kWidth + i], expected[i], 2e-4 * (1 + std::abs(expected[i])));
  }
}

TEST_F(CpuPlan, SurvivesARouterThatSaysNaN) {
  const TestWeight up(*device_, "up", ElementType::f32, WeightRole::matrix, {4, 8, 8}, random_floats(256, 2));
  const TestWeight down(*device_, "down", ElementType::f32, WeightRole::matrix, {4, 8, 8},
                        random_floats(256, 3));
  const TestWeight router(*device_, "router", ElementType::f32, WeightRole::matrix, {4, 8},
                          random_floats(32, 4));
  const Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), 8});
  const Value routes = route(matmul(x, graph_.weight(router.weight())),
                             {.n_used = 2, .gating = ExpertGating::softmax, .normalize = true});
  graph_.output(
      experts(x, routes, {{}, graph_.weight(up.weight()), graph_.weight(down.weight())}, {.activation = Activation::silu}));
  const auto plan = device_->compile(graph_, {2, 0}, 2);
  std::vector<float> input = random_floats(16, 5);
  const std::vector<float> healthy = run(*plan, input, 2, 8, 2);
  std::fill_n(input.begin(), 8, std::nanf(""));
  const std::vector<float> result = run(*plan, input, 2, 8, 2);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(std::isnan(result[i]));
    EXPECT_EQ(result[8 + i], healthy[8 + i]);
  }
}

TEST_F(CpuPlan, LooksUpRowsOfTokensAndTakesEmbeddingsForTheRest) {
  const TestWeight table(*device_, "table", ElementType::f16, WeightRole::matrix, {20, 32},
                         random_floats(640, 1));
  const Value tokens = graph_.input("tokens", ElementType::i32, {Dim::tokens()});
  const Value embeddings = graph_.input("embeddings", ElementType::f32, {Dim::tokens(), 32});
  graph_.output(scale(embed(graph_.weight(table.weight()), tokens, embeddings), 1));
  const auto plan = device_->compile(graph_, {3, 0}, 1);
  const std::vector<std::int32_t> ids = {7, -1, 19};
  const std::vector<float> given = random_floats(96, 9);
  std::vector<float> out(96);
  const void* inputs[] = {ids.data(), given.data()};
  float* outputs[] = {out.data()};
  plan->run({.extents = {3, 0}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(out[i], table.values()[7 * 32 + i], 2e-3);
    EXPECT_EQ(out[32 + i], given[32 + i]);
    EXPECT_NEAR(out[64 + i], table.values()[19 * 32 + i], 2e-3);
  }
}

TEST(CpuDevice, RefusesCacheTypesByName) {
  const auto device = create_cpu_device();
  try {
    device->create_kv({ElementType::q4_k, ElementType::f16, 1, 32, 32}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.message().find("Q4_K"), std::string::npos);
  }
}

TEST(CpuDevice, GivesVectorsBackAsTheFileHadThem) {
  const auto device = create_cpu_device();
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    std::vector<std::byte> bytes(row_bytes(type, 33)), back(bytes.size());
    encode_row(type, random_floats(33, 5), bytes);
    const auto storage = device->create_weight(type, WeightRole::vector, {33});
    storage->set_rows(0, 0, bytes);
    storage->get_rows(0, 0, back);
    EXPECT_EQ(back, bytes);
  }
}

TEST(CpuDevice, ReportsMemoryItCannotGet) {
  const auto device = create_cpu_device();
  try {
    device->create_kv({ElementType::f16, ElementType::f16, 1u << 20, 1u << 12, 1u << 12},
                      std::size_t{1} << 40);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
}

}  // namespace
}  // namespace quipu
