#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"

namespace quipu {
namespace {

using testing::HasSubstr;

/// The message of the Error that `build` throws; empty if it throws none.
template <typename Build>
std::string message_of(Build build) {
  try {
    build();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class GraphTest : public testing::Test {
 protected:
  Value activations(std::size_t width) { return graph_.input("x", ElementType::f32, {Dim::tokens(), width}); }
  Value heads(std::string name, std::size_t n, std::size_t dim) {
    return graph_.input(std::move(name), ElementType::f32, {Dim::tokens(), n, dim});
  }

  Graph graph_;
  Weight matrix_{"blk.0.attn_q.weight", ElementType::q8_0, WeightRole::matrix, {48, 64}, nullptr};
  Weight vector_{"norm.weight", ElementType::f32, WeightRole::vector, {64}, nullptr};
};

TEST(Shape, PrintsTheWayPeopleReadIt) {
  EXPECT_EQ(to_string(Shape{Dim::tokens(), 16, 128}), "[n_tokens, 16, 128]");
  EXPECT_EQ(to_string(Shape{Dim::outputs()}), "[n_outputs]");
  EXPECT_EQ(to_string(Shape{4, 2}), "[4, 2]");
}

TEST(Shape, ResolvesCountsAtRunTime) {
  const Extents extents{7, 3};
  EXPECT_EQ(Dim::tokens().resolve(extents), 7u);
  EXPECT_EQ(Dim::outputs().resolve(extents), 3u);
  EXPECT_EQ(Dim(5).resolve(extents), 5u);
}

TEST_F(GraphTest, InfersTheShapeOfAProduct) {
  const Value y = matmul(activations(64), graph_.weight(matrix_));
  EXPECT_EQ(y.shape(), (Shape{Dim::tokens(), 48}));
}

TEST_F(GraphTest, NamesBothSidesOfAProductThatDoesNotFit) {
  const std::string message = message_of([&] { matmul(activations(65), graph_.weight(matrix_)); });
  EXPECT_THAT(message, HasSubstr("blk.0.attn_q.weight"));
  EXPECT_THAT(message, HasSubstr("[48, 64]"));
  EXPECT_THAT(message, HasSubstr("[n_tokens, 65]"));
}

TEST_F(GraphTest, GivesOneValueForEachWeight) {
  EXPECT_EQ(graph_.weight(matrix_), graph_.weight(matrix_));
  EXPECT_NE(graph_.weight(matrix_).id(), graph_.weight(vector_).id());
}

TEST_F(GraphTest, AddsABiasToEveryRow) {
  const Value y = add(activations(64), graph_.weight(vector_));
  EXPECT_EQ(y.shape(), (Shape{Dim::tokens(), 64}));
  EXPECT_THAT(message_of([&] { add(activations(63), graph_.weight(vector_)); }), HasSubstr("norm.weight"));
}

TEST_F(GraphTest, RefusesToAddTokensAndOutputs) {
  const Value outputs = graph_.input("y", ElementType::f32, {Dim::outputs(), 64});
  EXPECT_THAT(message_of([&] { add(activations(64), outputs); }), HasSubstr("[n_outputs, 64]"));
}

TEST_F(GraphTest, NormsOverTheLastDimension) {
  EXPECT_EQ(rms_norm(activations(64), graph_.weight(vector_), 1e-5f).shape(), (Shape{Dim::tokens(), 64}));
  EXPECT_THAT(message_of([&] { rms_norm(activations(32), graph_.weight(vector_), 1e-5f); }),
              HasSubstr("norm.weight"));
}

TEST_F(GraphTest, SeesRowsUnderAnotherShape) {
  const Value y = view(activations(64), {Dim::tokens(), 4, 16});
  EXPECT_EQ(y.shape(), (Shape{Dim::tokens(), 4, 16}));
  EXPECT_THAT(message_of([&] {
                view(activations(64), {Dim::tokens(), 5, 16});
              }),
              HasSubstr("[n_tokens, 5, 16]"));
}

TEST_F(GraphTest, SelectsOutputRows) {
  const Value rows = graph_.input("rows", ElementType::i32, {Dim::outputs()});
  EXPECT_EQ(select_rows(activations(64), rows).shape(), (Shape{Dim::outputs(), 64}));
}

TEST_F(GraphTest, AttendsWithGroupedHeads) {
  const Value out = attention(heads("q", 8, 16), heads("k", 2, 16), heads("v", 2, 32),
                              {.cache = nullptr, .layout = 0, .scale = 1});
  EXPECT_EQ(out.shape(), (Shape{Dim::tokens(), 256}));
}

TEST_F(GraphTest, RefusesHeadsThatDoNotGroup) {
  const auto build = [&] {
    attention(heads("q", 7, 16), heads("k", 2, 16), heads("v", 2, 16),
              {.cache = nullptr, .layout = 0, .scale = 1});
  };
  EXPECT_THAT(message_of(build), HasSubstr("[n_tokens, 7, 16]"));
}

TEST_F(GraphTest, RefusesBiasesThatDoNotMatchTheHeads) {
  const auto build = [&](AttentionBias bias) {
    return message_of([&] {
      attention(heads("q", 8, 16), heads("k", 2, 16), heads("v", 2, 16),
                {.cache = nullptr, .layout = 0, .scale = 1, .bias = std::move(bias)});
    });
  };
  EXPECT_THAT(build({AttentionBias::Kind::alibi, std::vector<float>(7)}), HasSubstr("7 slopes"));
  EXPECT_THAT(build({AttentionBias::Kind::relative, std::vector<float>(8 * 5), 3}), HasSubstr("of radius 3"));
  EXPECT_THAT(build({AttentionBias::Kind::relative, std::vector<float>(8 * 5), 2}), "");
}

TEST_F(GraphTest, RotatesNoMorePairsThanAHeadHas) {
  const Value positions = graph_.input("positions", ElementType::i32, {Dim::tokens()});
  const Value angles = rope_angles(positions, {std::vector<double>(9, 1.0), 1.0f});
  EXPECT_THAT(message_of([&] { rope(heads("q", 2, 16), angles, RopeStyle::halves); }),
              HasSubstr("[n_tokens, 9, 2]"));
}

TEST_F(GraphTest, RefusesMoreExpertsThanThereAre) {
  const Value logits = graph_.input("logits", ElementType::f32, {Dim::tokens(), 4});
  EXPECT_THAT(
      message_of([&] { route(logits, {.n_used = 5, .gating = ExpertGating::softmax, .normalize = true}); }),
      HasSubstr("5 experts"));
}

TEST_F(GraphTest, ChecksTheShapesOfExperts) {
  const Weight up{"up", ElementType::f32, WeightRole::matrix, {4, 32, 64}, nullptr};
  const Weight down{"down", ElementType::f32, WeightRole::matrix, {4, 64, 31}, nullptr};
  const Value x = activations(64);
  const Value logits = graph_.input("logits", ElementType::f32, {Dim::tokens(), 4});
  const Value routes = route(logits, {.n_used = 2, .gating = ExpertGating::softmax, .normalize = true});
  const auto build = [&] {
    experts(x, routes, {{}, graph_.weight(up), graph_.weight(down)}, {.activation = Activation::silu});
  };
  EXPECT_THAT(message_of(build), HasSubstr("down"));
}

TEST_F(GraphTest, KeepsTheNamesGivenToValues) {
  const Value y = graph_.label(scale(activations(4), 2), "l_out-3");
  EXPECT_EQ(y.name(), "l_out-3");
}

}  // namespace
}  // namespace quipu
