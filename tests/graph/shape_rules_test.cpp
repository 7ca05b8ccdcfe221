// What operations give and what they refuse, by shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"

namespace quipu {
namespace {

using testing::HasSubstr;

class ShapeRules : public testing::Test {
 protected:
  Value rows(std::size_t width) { return graph_.input("x", ElementType::f32, {Dim::tokens(), width}); }
  Value heads(std::size_t n, std::size_t width) {
    return graph_.input("heads", ElementType::f32, {Dim::tokens(), n, width});
  }
  Value vector(std::size_t n) { return weight(WeightRole::vector, {n}); }
  Value weight(WeightRole role, const Shape& shape) {
    weights_.push_back(std::make_unique<Weight>(Weight{"weight", ElementType::f32, role, shape, nullptr}));
    return graph_.weight(*weights_.back());
  }
  /// The message of the Error that `build` throws; empty if it throws none.
  template <typename Build>
  static std::string refusal(Build build) {
    try {
      build();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  Graph graph_;
  std::vector<std::unique_ptr<Weight>> weights_;
};

TEST_F(ShapeRules, LayerNormKeepsTheShapeAndChecksItsWeights) {
  EXPECT_EQ(layer_norm(heads(3, 8), vector(8), vector(8), 1e-5f).shape(), (Shape{Dim::tokens(), 3, 8}));
  EXPECT_THAT(refusal([&] { layer_norm(rows(8), vector(8), vector(7), 1e-5f); }), HasSubstr("[7]"));
  EXPECT_THAT(refusal([&] { layer_norm(rows(8), {}, vector(8), 1e-5f); }), HasSubstr("bias"));
}

TEST_F(ShapeRules, SliceStaysInsideTheLastDimension) {
  EXPECT_EQ(slice(heads(3, 8), 2, 6).shape(), (Shape{Dim::tokens(), 3, 6}));
  EXPECT_THAT(refusal([&] { slice(rows(8), 4, 5); }), HasSubstr("4 to 9"));
  EXPECT_NE(refusal([&] { slice(rows(8), 9, 1); }), "");
  EXPECT_NE(refusal([&] { slice(rows(8), 0, 0); }), "");
}

TEST_F(ShapeRules, ConcatAddsLastDimensionsOfEqualHeadsOrOne) {
  EXPECT_EQ(concat(heads(3, 8), heads(3, 2)).shape(), (Shape{Dim::tokens(), 3, 10}));
  EXPECT_EQ(concat(heads(3, 8), heads(1, 2)).shape(), (Shape{Dim::tokens(), 3, 10}));
  EXPECT_EQ(concat(rows(4), rows(5)).shape(), (Shape{Dim::tokens(), 9}));
  EXPECT_THAT(refusal([&] { concat(heads(3, 8), heads(2, 2)); }), HasSubstr("[n_tokens, 2, 2]"));
  EXPECT_NE(refusal([&] { concat(heads(3, 8), rows(2)); }), "");
}

TEST_F(ShapeRules, ClampRefusesBoundsInTheWrongOrder) {
  EXPECT_NE(refusal([&] { clamp(rows(4), 2, 1); }), "");
}

TEST_F(ShapeRules, LookUpsAreAsWideAsTheirTable) {
  const Value ids = graph_.input("rows", ElementType::i32, {Dim::tokens()});
  EXPECT_EQ(look_up(weight(WeightRole::matrix, {9, 4}), ids).shape(), (Shape{Dim::tokens(), 4}));
  EXPECT_NE(refusal([&] { look_up(weight(WeightRole::matrix, {9, 4}), rows(1)); }), "");
}

TEST_F(ShapeRules, AddRowNamesARowThatIsNotThere) {
  EXPECT_EQ(add_row(rows(4), weight(WeightRole::vector, {2, 4}), 1).shape(), (Shape{Dim::tokens(), 4}));
  EXPECT_THAT(refusal([&] { add_row(rows(4), weight(WeightRole::vector, {2, 4}), 2); }), HasSubstr("row 2"));
}

TEST_F(ShapeRules, EachHeadHasItsMatrix) {
  const Value matrices = weight(WeightRole::matrix, {3, 5, 8});
  EXPECT_EQ(head_matmul(heads(3, 8), matrices).shape(), (Shape{Dim::tokens(), 3, 5}));
  EXPECT_THAT(refusal([&] { head_matmul(heads(2, 8), matrices); }), HasSubstr("[3, 5, 8]"));
  EXPECT_THAT(refusal([&] { head_matmul(heads(3, 7), matrices); }), HasSubstr("[n_tokens, 3, 7]"));
}

TEST_F(ShapeRules, GroupsOfExpertsMustHoldThoseInUse) {
  const auto with_groups = [&](std::size_t n_groups, std::size_t n_groups_used) {
    return refusal([&] {
      route(rows(8), {.n_used = 3,
                      .gating = ExpertGating::sigmoid,
                      .normalize = true,
                      .n_groups = n_groups,
                      .n_groups_used = n_groups_used});
    });
  };
  EXPECT_EQ(with_groups(4, 2), "");
  EXPECT_THAT(with_groups(4, 1), HasSubstr("1 of 4 groups"));
  EXPECT_NE(with_groups(3, 3), "");
  EXPECT_NE(with_groups(4, 5), "");
}

TEST_F(ShapeRules, ASelectionBiasHasOneElementForEachExpert) {
  const RouteParams params{.n_used = 2, .gating = ExpertGating::sigmoid, .normalize = true};
  EXPECT_EQ(route(rows(8), params, vector(8)).shape(), (Shape{Dim::tokens(), 2, 2}));
  EXPECT_NE(refusal([&] { route(rows(8), params, vector(7)); }), "");
}

}  // namespace
}  // namespace quipu
