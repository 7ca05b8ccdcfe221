// A plan of whole layers: how often the threads meet.
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/plan_fixture.h"
#include "graph/ops/attention.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"

namespace quipu {
namespace {

using test::random_floats;
using test::TestWeight;

constexpr std::size_t kWidth = 64, kHidden = 96, kHeads = 4, kKvHeads = 2, kHeadDim = 16, kExperts = 4;
constexpr std::size_t kTokens = 8;

/// Layers as LLaMA and Qwen3 have them, or with experts, that all use the same weights.
class LayerPlan : public test::CpuPlan {
 protected:
  Value matrix(std::string name, const Shape& shape) {
    std::size_t n = 1;
    for (std::size_t i = 0; i < shape.rank(); ++i) n *= shape.dim(i);
    weights_.push_back(std::make_unique<TestWeight>(*device_, std::move(name), ElementType::q8_0,
                                                    WeightRole::matrix, shape, random_floats(n, 1)));
    return graph_.weight(weights_.back()->weight());
  }

  Value attention_block(Value x, Value angles) {
    const Value normed = rms_norm(x, {}, 1e-5f);
    const auto heads = [&](const char* name, std::size_t n) {
      const Value y = matmul(normed, matrix(name, {n * kHeadDim, kWidth}));
      return view(y, {Dim::tokens(), n, kHeadDim});
    };
    Value q = heads("q", kHeads), k = heads("k", kKvHeads);
    const Value v = heads("v", kKvHeads);
    q = rope(rms_norm(q, {}, 1e-5f), angles, RopeStyle::halves);
    k = rope(rms_norm(k, {}, 1e-5f), angles, RopeStyle::halves);
    caches_.push_back(
        device_->create_kv({ElementType::f16, ElementType::f16, kKvHeads, kHeadDim, kHeadDim}, 1));
    const Value attended = attention(q, k, v, {.cache = caches_.back().get(), .layout = 0, .scale = 0.25f});
    return add(x, matmul(attended, matrix("o", {kWidth, kHeads * kHeadDim})));
  }

  Value feed_forward_block(Value x) {
    const Value normed = rms_norm(x, {}, 1e-5f);
    const Value gate = matmul(normed, matrix("gate", {kHidden, kWidth}));
    const Value up = matmul(normed, matrix("up", {kHidden, kWidth}));
    return add(x, matmul(gated(Activation::silu, gate, up), matrix("down", {kWidth, kHidden})));
  }

  Value experts_block(Value x) {
    const Value normed = rms_norm(x, {}, 1e-5f);
    const Value routes = route(matmul(normed, matrix("router", {kExperts, kWidth})),
                               {.n_used = 2, .gating = ExpertGating::softmax, .normalize = true});
    const Value gate = matrix("gates", {kExperts, kHidden, kWidth});
    const Value up = matrix("ups", {kExperts, kHidden, kWidth});
    const Value down = matrix("downs", {kExperts, kWidth, kHidden});
    return add(x, experts(normed, routes, {gate, up, down}, {.activation = Activation::silu}));
  }

  /// Meetings of two threads in a run of `n_tokens` through `n_layers`.
  std::size_t n_meetings(std::size_t n_layers, std::size_t n_tokens, bool with_experts = false) {
    Value x = graph_.input("x", ElementType::f32, {Dim::tokens(), kWidth});
    const Value positions = graph_.input("positions", ElementType::i32, {Dim::tokens()});
    const Value angles = rope_angles(positions, {std::vector<double>(kHeadDim / 2, 0.5), 1});
    for (std::size_t i = 0; i < n_layers; ++i) {
      x = attention_block(x, angles);
      x = with_experts ? experts_block(x) : feed_forward_block(x);
    }
    graph_.output(x);
    const auto plan = device_->compile(graph_, {kTokens, 0}, 2);

    std::vector<std::int32_t> numbers(16, -1), page{0};
    std::iota(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(n_tokens), 0);
    AttentionLayout layout;
    layout.page_tables = {page};
    layout.cell_positions = numbers;
    for (std::size_t i = 0; i < n_tokens; ++i) {
      const auto place = static_cast<std::int32_t>(i);
      layout.tokens.push_back({0, place, place});
    }
    const std::vector<float> input = random_floats(n_tokens * kWidth, 2);
    std::vector<float> out(n_tokens * kWidth);
    const void* inputs[] = {input.data(), numbers.data()};
    float* outputs[] = {out.data()};
    const AttentionLayout* layouts[] = {&layout};
    plan->run(
        {.extents = {n_tokens, 0}, .inputs = inputs, .outputs = outputs, .layouts = layouts, .n_threads = 2});
    return plan->n_meetings();
  }

  std::vector<std::unique_ptr<TestWeight>> weights_;
  std::vector<std::unique_ptr<KvStorage>> caches_;
};

TEST_F(LayerPlan, MeetsFiveTimesALayerForOneToken) {
  // before all layers: the first norm | queries, keys, values | attention | output | gate, up | down
  EXPECT_EQ(n_meetings(3, 1), 1 + 3 * 5u);
}

TEST_F(LayerPlan, MeetsTenTimesALayerForManyTokens) {
  EXPECT_EQ(n_meetings(3, kTokens), 1 + 3 * 10u);
}

TEST_F(LayerPlan, MeetsFiveTimesALayerOfExpertsForOneToken) {
  // the router is small enough to follow; gates, ups | downs
  EXPECT_EQ(n_meetings(3, 1, true), 1 + 3 * 5u);
}

}  // namespace
}  // namespace quipu
