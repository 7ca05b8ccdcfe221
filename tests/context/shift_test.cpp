// Positions that change in the memory of a model: what comes after, in logits.
#include <gtest/gtest.h>

#include <algorithm>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using Row = std::vector<float>;

Row next(InferenceContext& context, std::span<const Token> tokens, SequenceId sequence = 0) {
  const Position first = context.memory().max_position(sequence) + 1;
  EXPECT_EQ(context.decode(TestBatch().add(tokens, first, sequence).view()), DecodeStatus::ok);
  const auto row = context.logits(-1);
  return {row.begin(), row.end()};
}

/// Room for three sequences, each of its own.
ContextParams separate_params() {
  ContextParams params = small_params();
  params.n_ctx = 768;
  params.n_seq_max = 3;
  return params;
}

TEST(Shifts, EverySequenceIsShifted) {
  const auto model = model_named("quipu-mini");
  const auto tokens = some_tokens(*model, 60);
  InferenceContext context(model, separate_params());
  for (const SequenceId s : {0, 1, 2}) next(context, tokens, s);
  for (const SequenceId s : {0, 2}) {
    ASSERT_TRUE(context.memory().remove(s, 5, 25));
    context.memory().add(s, 25, -1, -20);
  }
  const Row first = next(context, std::span(tokens).first(3), 0);
  EXPECT_EQ(next(context, std::span(tokens).first(3), 2), first);
  EXPECT_NE(next(context, std::span(tokens).first(3), 1), first);
}

TEST(Shifts, TwoInARowAreOneByTheirSumWhoeverRunsInBetween) {
  const auto model = model_named("quipu-mini");
  const auto tokens = some_tokens(*model, 60);
  const auto after = [&](std::vector<Position> deltas, bool others_run) {
    InferenceContext context(model, separate_params());
    next(context, tokens, 0);
    for (const Position delta : deltas) {
      context.memory().add(0, 30, -1, delta);
      if (others_run) next(context, tokens, 1);
    }
    return next(context, std::span(tokens).first(3), 0);
  };
  const Row expected = after({-2}, false);
  EXPECT_EQ(after({3, -5}, false), expected);
  EXPECT_EQ(after({3, -5}, true), expected);
}

TEST(Shifts, AShiftOfEverythingChangesNothingThatCanBeSeen) {
  const auto model = model_named("quipu-mini");
  const auto tokens = some_tokens(*model, 60);
  ContextParams params = small_params();
  params.type_k = ElementType::f32;
  const auto after = [&](Position begin, Position delta) {
    InferenceContext context(model, params);
    next(context, tokens);
    context.memory().add(0, begin, -1, delta);
    return next(context, std::span(tokens).first(3));
  };
  const Row expected = after(0, 0);
  EXPECT_LT(nmse(after(0, 100), expected), 1e-9);  // only distances count
  EXPECT_GT(nmse(after(30, 100), expected), 1e-7);
}

TEST(Shifts, AnAbortLeavesAShiftToBeDone) {
  const auto model = model_named("quipu-mini");
  const auto tokens = some_tokens(*model, 60);
  const auto after = [&](int asked_before_abort) {
    InferenceContext context(model, small_params());
    next(context, tokens);
    context.memory().add(0, 30, -1, 7);
    if (asked_before_abort > 0) {
      int n = 0;
      context.set_abort([&] { return ++n == asked_before_abort; });
      const auto batch = TestBatch().add(std::span(tokens).first(3), 67, 0);
      EXPECT_EQ(context.decode(batch.view()), DecodeStatus::aborted);
      context.set_abort({});
    }
    return next(context, std::span(tokens).first(3));
  };
  const Row expected = after(0);
  for (const int asked : {1, 2, 3, 4}) EXPECT_EQ(after(asked), expected) << asked;
}

struct Case {
  const char* name;
  const char* model;
  ElementType type;
  bool swa_full = true;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class ShiftedKeys : public ::testing::TestWithParam<Case> {
 protected:
  /// The rows of a context that loses a part of its past `n_shifts` times and goes on.
  std::vector<Row> rows(ElementType type, int n_shifts) const {
    const auto model = model_named(GetParam().model);
    ContextParams params = small_params();
    params.type_k = type;
    params.swa_full = GetParam().swa_full;
    InferenceContext context(model, params);
    EXPECT_TRUE(context.memory().can_shift());
    const auto tokens = some_tokens(*model, 200);
    std::vector<Row> rows{next(context, tokens)};
    for (int i = 0; i < n_shifts; ++i) {
      EXPECT_TRUE(context.memory().remove(0, 10, 30));
      context.memory().add(0, 30, -1, -20);
      EXPECT_EQ(context.memory().max_position(0), 179);
      rows.push_back(next(context, std::span(tokens).first(20)));
    }
    return rows;
  }
};

// The distance to keys of full precision is that of the type, not more with every shift.
TEST_P(ShiftedKeys, AreAsPreciseAsTheirType) {
  constexpr int kShifts = 3;
  const auto exact = rows(ElementType::f32, kShifts), rounded = rows(GetParam().type, kShifts);
  const double noise = nmse(rounded[0], exact[0]);
  for (std::size_t i = 1; i < rounded.size(); ++i) {
    EXPECT_LT(nmse(rounded[i], exact[i]), 10 * noise + 1e-9) << "shift " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ShiftedKeys,
                         ::testing::Values(Case{"F16", "quipu-mini", ElementType::f16},
                                           Case{"BF16", "quipu-mini", ElementType::bf16},
                                           Case{"Q8_0", "quipu-mini", ElementType::q8_0},
                                           Case{"Q5_1", "quipu-mini", ElementType::q5_1},
                                           Case{"Q5_0", "quipu-mini", ElementType::q5_0},
                                           Case{"Q4_1", "quipu-mini", ElementType::q4_1},
                                           Case{"Q4_0", "quipu-mini", ElementType::q4_0},
                                           Case{"IQ4_NL", "quipu-mini", ElementType::iq4_nl},
                                           Case{"Windows", "gemma3", ElementType::f16, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace quipu::test
