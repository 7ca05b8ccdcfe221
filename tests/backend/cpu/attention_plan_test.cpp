// Attention as a step of plans: storing, reading without storing, sinks, and heads shared out among threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "backend/device.h"
#include "graph/ops/attention.h"

namespace quipu {
namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// One sequence at consecutive places, in a cache of its own.
class Sequence {
 public:
  Sequence(Device& device, const KvShape& shape, std::size_t n_pages)
      : cache_(device.create_kv(shape, n_pages)), pages_(n_pages), positions_(n_pages * 16, -1) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  KvStorage* cache() { return cache_.get(); }
  /// The next n tokens, which become cells.
  AttentionLayout append(std::size_t n) {
    AttentionLayout layout = look(0, 0);
    for (std::size_t i = 0; i < n; ++i, ++length_) {
      positions_[static_cast<std::size_t>(length_)] = length_;
      layout.tokens.push_back({0, length_, length_});
    }
    return layout;
  }
  /// n tokens that only look, at positions from `first` on.
  AttentionLayout look(std::int32_t first, std::size_t n) {
    AttentionLayout layout;
    layout.page_tables = {pages_};
    layout.cell_positions = positions_;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t position = first + static_cast<std::int32_t>(i);
      layout.tokens.push_back({0, position, position});
    }
    return layout;
  }

 private:
  std::unique_ptr<KvStorage> cache_;
  std::vector<std::int32_t> pages_;
  std::vector<std::int32_t> positions_;
  std::int32_t length_ = 0;
};

std::vector<float> run(Plan& plan, const AttentionLayout& layout, std::vector<const void*> inputs,
                       std::size_t out_width, unsigned n_threads) {
  const std::size_t n_tokens = layout.tokens.size();
  std::vector<float> out(n_tokens * out_width);
  std::vector<float*> outputs;
  if (out_width > 0) outputs.push_back(out.data());
  const AttentionLayout* layouts[] = {&layout};
  plan.run({.extents = {n_tokens, 0},
            .inputs = inputs,
            .outputs = outputs,
            .layouts = layouts,
            .n_threads = n_threads});
  return out;
}

class AttentionPlan : public testing::Test {
 protected:
  struct Inputs {
    Value q, k, v;
  };
  /// Declared in this order.
  static Value heads(Graph& graph, const char* name, std::size_t n, std::size_t dim) {
    return graph.input(name, ElementType::f32, {Dim::tokens(), n, dim});
  }
  static Inputs inputs(Graph& graph, std::size_t n_heads, std::size_t n_kv_heads, std::size_t k_dim,
                       std::size_t v_dim) {
    const Value q = heads(graph, "q", n_heads, k_dim);
    const Value k = heads(graph, "k", n_kv_heads, k_dim);
    const Value v = heads(graph, "v", n_kv_heads, v_dim);
    return {q, k, v};
  }

  std::unique_ptr<Device> device_ = create_cpu_device();
};

TEST_F(AttentionPlan, CellsStoredByOneGraphAreReadByAnother) {
  const KvShape shape{ElementType::f32, ElementType::f32, 2, 16, 24};
  const std::vector<float> q = random_floats(5 * 4 * 16, 1);
  const std::vector<float> k = random_floats(5 * 2 * 16, 2);
  const std::vector<float> v = random_floats(5 * 2 * 24, 3);

  Sequence together(*device_, shape, 2);
  Graph whole;
  const Inputs in = inputs(whole, 4, 2, 16, 24);
  whole.output(
      attention(in.q, in.k, in.v, {.cache = together.cache(), .layout = 0, .scale = 0.25f, .causal = false}));
  const auto whole_plan = device_->compile(whole, {8, 0}, 2);
  const std::vector<float> expected =
      run(*whole_plan, together.append(5), {q.data(), k.data(), v.data()}, 4 * 24, 2);

  Sequence apart(*device_, shape, 2);
  Graph storing;
  const Value stored_k = heads(storing, "k", 2, 16);
  const Value stored_v = heads(storing, "v", 2, 24);
  store_cells(stored_k, stored_v, {.cache = apart.cache(), .layout = 0});
  run(*device_->compile(storing, {8, 0}, 2), apart.append(5), {k.data(), v.data()}, 0, 2);
  Graph reading;
  reading.output(attention(heads(reading, "q", 4, 16), {}, {},
                           {.cache = apart.cache(), .layout = 0, .scale = 0.25f, .causal = false}));
  const auto reading_plan = device_->compile(reading, {8, 0}, 2);
  EXPECT_EQ(run(*reading_plan, apart.look(100, 5), {q.data()}, 4 * 24, 2), expected);
  EXPECT_EQ(run(*reading_plan, apart.look(0, 5), {q.data()}, 4 * 24, 1), expected);
}

TEST_F(AttentionPlan, HeadsOfOneKeyAreSharedOutWithTheSameBits) {
  constexpr std::size_t kHeads = 17;
  constexpr std::size_t kTokens = 37;
  for (const ElementType type : {ElementType::f16, ElementType::q8_0}) {
    const std::vector<float> q = random_floats(kTokens * kHeads * 576, 1);
    const std::vector<float> k = random_floats(kTokens * 576, 2);
    const std::vector<float> v = random_floats(kTokens * 512, 3);
    std::vector<std::vector<float>> results;
    for (const unsigned n_threads : {1u, 2u, 3u}) {
      Sequence sequence(*device_, {type, type, 1, 576, 512}, 4);
      Graph graph;
      const Inputs in = inputs(graph, kHeads, 1, 576, 512);
      graph.output(attention(in.q, in.k, in.v,
                             {.cache = sequence.cache(),
                              .layout = 0,
                              .scale = 0.05f,
                              .bias = {AttentionBias::Kind::alibi, random_floats(kHeads, 4)}}));
      const auto plan = device_->compile(graph, {kTokens, 0}, 3);
      std::vector<float> rows;
      std::size_t done = 0;
      for (const std::size_t n : {n_threads == 2 ? std::size_t{1} : kTokens, kTokens - 1}) {
        if (done == kTokens) break;
        const std::vector<float> part =
            run(*plan, sequence.append(n),
                {q.data() + done * kHeads * 576, k.data() + done * 576, v.data() + done * 512}, kHeads * 512,
                n_threads);
        rows.insert(rows.end(), part.begin(), part.end());
        done += n;
      }
      results.push_back(rows);
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST_F(AttentionPlan, BiasesAndSinksBelongToTheirHeads) {
  constexpr std::size_t kHeads = 4;
  constexpr std::int32_t kRadius = 2;
  const std::vector<float> sinks = {-1, 0.5f, 2, 0};
  const std::vector<float> biases = random_floats(kHeads * (2 * kRadius + 1), 3);
  const auto storage = device_->create_weight(ElementType::f32, WeightRole::vector, {kHeads});
  storage->set_rows(0, 0, std::as_bytes(std::span(sinks)));
  const Weight weight{"sinks", ElementType::f32, WeightRole::vector, {kHeads}, storage.get()};

  Sequence sequence(*device_, {ElementType::f32, ElementType::f32, 2, 1, 1}, 1);
  Graph graph;
  const Inputs in = inputs(graph, kHeads, 2, 1, 1);
  graph.output(attention(in.q, in.k, in.v,
                         {.cache = sequence.cache(),
                          .layout = 0,
                          .scale = 1,
                          .bias = {AttentionBias::Kind::relative, biases, kRadius}},
                         graph.weight(weight)));
  const auto plan = device_->compile(graph, {6, 0}, 2);
  const std::vector<float> q(6 * kHeads, 0.0f);
  const std::vector<float> k(6 * 2, 0.0f);
  const std::vector<float> v = random_floats(6 * 2, 4);
  const std::vector<float> out = run(*plan, sequence.append(6), {q.data(), k.data(), v.data()}, kHeads, 2);
  for (std::size_t t = 0; t < 6; ++t) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      double total = std::exp(sinks[head]);
      double sum = 0;
      for (std::size_t key = 0; key <= t; ++key) {
        const std::size_t column = kRadius - std::min<std::size_t>(t - key, kRadius);
        const double p = std::exp(biases[head * (2 * kRadius + 1) + column]);
        total += p;
        sum += p * v[key * 2 + head / 2];
      }
      EXPECT_NEAR(out[t * kHeads + head], sum / total, 1e-5) << t << ", " << head;
    }
  }
}

TEST_F(AttentionPlan, ScratchOfManyHeadsStaysSmall) {
  constexpr std::size_t kHeads = 128;
  Sequence sequence(*device_, {ElementType::f16, ElementType::f16, 1, 576, 512}, 4);
  Graph graph;
  graph.output(attention(heads(graph, "q", kHeads, 576), {}, {},
                         {.cache = sequence.cache(), .layout = 0, .scale = 1, .causal = false}));
  EXPECT_LT(device_->compile(graph, {512, 0}, 1)->bytes(), std::size_t{2} << 20);
}

}  // namespace
}  // namespace quipu
