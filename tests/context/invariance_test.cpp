// The same bits, however tokens are divided into batches and micro-batches, on any number of threads, beside
// any other sequences, and wherever in memory a sequence lies.
#include <gtest/gtest.h>

#include <cstdlib>

#include "context/test_context.h"

namespace quipu::test {
namespace {

constexpr std::size_t kSizes[] = {1, 2, 3, 7, 8, 31, 32, 33, 64};

struct Case {
  std::string model;
  std::optional<ElementType> matrices = std::nullopt;  ///< of a golden model
  ElementType cache = ElementType::f16;
};

std::string name_of(const Case& tested) {
  std::string name = tested.model;
  if (tested.matrices) name.append("_").append(info(*tested.matrices).name);
  if (tested.cache != ElementType::f16) name.append("_cache_").append(info(tested.cache).name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
void PrintTo(const Case& tested, std::ostream* out) {
  *out << name_of(tested);
}

class Invariance : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t kLength = 97;

  ContextParams params(std::uint32_t n_seq_max = 1, bool is_unified = true) const {
    ContextParams params = small_params();
    params.n_ctx = is_unified ? 1024 : 256 * n_seq_max;
    params.n_seq_max = n_seq_max;
    params.kv_unified = is_unified;
    params.type_k = params.type_v = GetParam().cache;
    return params;
  }

  // Every row of a text, computed alone, in one batch and on one thread.
  std::vector<Bits> alone(std::span<const Token> text) const {
    InferenceContext context(model_, params());
    EXPECT_EQ(context.decode(TestBatch().add(text, 0, 0).view()), DecodeStatus::ok);
    return rows(context, text.size());
  }
  static std::vector<Bits> rows(const InferenceContext& context, std::size_t n) {
    std::vector<Bits> result;
    for (std::size_t i = 0; i < n; ++i)
      result.push_back(bits_of(context.logits(static_cast<std::ptrdiff_t>(i))));
    return result;
  }
  // Decodes a text in batches of `size`; its rows.
  std::vector<Bits> in_batches(InferenceContext& context, std::span<const Token> text, std::size_t size,
                               SequenceId sequence = 0, std::size_t first = 0) const {
    std::vector<Bits> result;
    for (std::size_t i = first; i < text.size(); i += size) {
      const auto part = text.subspan(i, std::min(size, text.size() - i));
      const TestBatch batch = TestBatch().add(part, static_cast<Position>(i), sequence);
      EXPECT_EQ(context.decode(batch.view()), DecodeStatus::ok);
      for (Bits& row : rows(context, part.size())) result.push_back(std::move(row));
    }
    return result;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named(GetParam().model, GetParam().matrices);
  std::vector<Token> text_ = some_tokens(*model_, kLength, 1);
  std::vector<Token> other_ = some_tokens(*model_, kLength, 2);
  std::vector<Bits> expected_ = alone(text_);
};

TEST_P(Invariance, OfBatchSizesAndThreads) {
  for (const int n_threads : {1, 2, 3}) {
    for (const std::size_t size : kSizes) {
      ContextParams varied = params();
      varied.n_threads = varied.n_threads_batch = n_threads;
      InferenceContext context(model_, varied);
      // Threads that outnumber the processors take turns at every meeting: not too many of those.
      const std::size_t length = n_threads == 1 ? kLength : std::min(kLength, 4 * size + 1);
      const auto end = expected_.begin() + static_cast<std::ptrdiff_t>(length);
      EXPECT_EQ(in_batches(context, std::span(text_).first(length), size),
                std::vector(expected_.begin(), end))
          << size << " a batch, " << n_threads << " threads";
    }
  }
}

TEST_P(Invariance, OfMicroBatchSizes) {
  for (const std::uint32_t n_ubatch : {1U, 7U, 31U, 32U, 33U, 64U, 97U}) {
    ContextParams varied = params();
    varied.n_ubatch = n_ubatch;
    varied.n_threads_batch = 2;
    InferenceContext context(model_, varied);
    EXPECT_EQ(in_batches(context, text_, kLength), expected_) << n_ubatch << " a micro-batch";
  }
}

TEST_P(Invariance, OfTheRowsAskedFor) {
  InferenceContext context(model_, params());
  TestBatch batch;
  batch.add(text_, 0, 0, false);
  for (std::size_t t = 5; t < kLength; t += 13) batch.outputs[t] = 1;
  ASSERT_EQ(context.decode(batch.view()), DecodeStatus::ok);
  for (std::size_t t = 5; t < kLength; t += 13) {
    EXPECT_EQ(bits_of(context.logits(static_cast<std::ptrdiff_t>(t))), expected_[t]);
  }
}

TEST_P(Invariance, OfOtherSequencesInTheBatch) {
  for (const bool is_unified : {true, false}) {
    for (const std::uint32_t n_ubatch : {5U, 32U, 256U}) {
      ContextParams varied = params(3, is_unified);
      varied.n_ubatch = n_ubatch;
      varied.n_threads_batch = 2;
      InferenceContext context(model_, varied);
      TestBatch batch;
      std::vector<std::ptrdiff_t> own, others;
      for (std::size_t i = 0; i < kLength; ++i) {
        own.push_back(static_cast<std::ptrdiff_t>(batch.tokens.size()));
        batch.add(text_[i], static_cast<Position>(i), {2});
        if (i % 3 == 0) batch.add(other_[i / 3], static_cast<Position>(i / 3 + 4), {1});
        others.push_back(static_cast<std::ptrdiff_t>(batch.tokens.size()));
        if (i < 60) batch.add(text_[i], static_cast<Position>(i), {0});
      }
      ASSERT_EQ(context.decode(batch.view()), DecodeStatus::ok);
      for (std::size_t i = 0; i < kLength; ++i) {
        EXPECT_EQ(bits_of(context.logits(own[i])), expected_[i]) << i;
      }
      for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(bits_of(context.logits(others[i])), expected_[i]) << i;
    }
  }
}

TEST_P(Invariance, OfAPromptBesideATokenOfAnother) {
  const std::vector<Bits> expected_other = alone(std::span(other_).first(50));
  InferenceContext context(model_, params(2));
  in_batches(context, std::span(text_).first(40), 40);
  TestBatch batch;
  batch.add(std::span(text_).subspan(40, 1), 40, 0);
  batch.add(std::span(other_).first(50), 0, 1);
  ASSERT_EQ(context.decode(batch.view()), DecodeStatus::ok);
  std::vector<Bits> actual = rows(context, 51);
  EXPECT_EQ(actual.front(), expected_[40]);
  actual.erase(actual.begin());
  EXPECT_EQ(actual, expected_other);
}

TEST_P(Invariance, OfIdenticalBranches) {
  for (const SequenceId n_branches : {2, 4}) {
    for (std::size_t n_rows = 28; n_rows <= 40; n_rows += static_cast<std::size_t>(n_branches)) {
      InferenceContext context(model_, params(4));
      const std::size_t n_prefix = 30;
      in_batches(context, std::span(text_).first(n_prefix), n_prefix);
      for (SequenceId s = 1; s < n_branches; ++s) context.memory().copy(0, s, -1, -1);
      const std::size_t n_each = n_rows / static_cast<std::size_t>(n_branches);
      TestBatch batch;
      for (SequenceId s = 0; s < n_branches; ++s) {
        batch.add(std::span(text_).subspan(n_prefix, n_each), static_cast<Position>(n_prefix), s);
      }
      ASSERT_EQ(context.decode(batch.view()), DecodeStatus::ok);
      const std::vector<Bits> actual = rows(context, batch.tokens.size());
      for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(actual[i], expected_[n_prefix + i % n_each]);
    }
  }
}

TEST_P(Invariance, OfWhereTheSequenceLies) {
  for (const bool is_unified : {true, false}) {
    InferenceContext context(model_, params(4, is_unified));
    Memory& memory = context.memory();
    // Pages in disorder: sequences come, part and go.
    in_batches(context, other_, 97, 0);
    memory.copy(0, 1, -1, -1);
    in_batches(context, std::span(text_).first(70), 33, 2);
    memory.remove(0, -1, 50);
    memory.remove(1, 20, -1);
    in_batches(context, std::span(other_).first(40), 7, 1, 20);
    memory.remove(0, -1, -1);
    EXPECT_EQ(in_batches(context, text_, 31, 3), expected_);
    // And on a sequence that was there before, which also went on in another.
    memory.copy(2, 0, -1, -1);
    in_batches(context, other_, 8, 0, 70);
    const std::vector<Bits> rest(expected_.begin() + 70, expected_.end());
    EXPECT_EQ(in_batches(context, text_, 3, 2, 70), rest);
  }
}

TEST_P(Invariance, OfACopy) {
  for (const std::size_t n_prefix : {16UL, 45UL}) {
    InferenceContext context(model_, params(2));
    in_batches(context, std::span(text_).first(n_prefix), 32, 0);
    context.memory().copy(0, 1, -1, -1);
    in_batches(context, other_, 11, 0, n_prefix);
    const std::vector<Bits> rest(expected_.begin() + static_cast<std::ptrdiff_t>(n_prefix), expected_.end());
    EXPECT_EQ(in_batches(context, text_, 11, 1, n_prefix), rest);
  }
}

TEST_P(Invariance, OfARemovedTail) {
  InferenceContext context(model_, params());
  in_batches(context, std::span(text_).first(37), 37);
  in_batches(context, other_, 60, 0, 37);
  ASSERT_TRUE(context.memory().remove(0, 37, -1));
  const std::vector<Bits> rest(expected_.begin() + 37, expected_.end());
  EXPECT_EQ(in_batches(context, text_, 64, 0, 37), rest);
}

// Removing a middle changes the result, but for everyone in the same way.
TEST_P(Invariance, OfLayoutsAfterARemovedMiddle) {
  std::vector<std::vector<Bits>> results;
  for (const std::size_t size : {97UL, 8UL, 1UL}) {
    InferenceContext context(model_, params(2));
    if (size == 8) in_batches(context, other_, 40, 1);
    in_batches(context, std::span(text_).first(80), size, 0);
    if (size == 8) context.memory().remove(1, -1, -1);
    if (size == 1) context.memory().copy(0, 1, -1, -1);
    ASSERT_TRUE(context.memory().remove(0, 21, 55));
    results.push_back(in_batches(context, text_, size, 0, 80));
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST_P(Invariance, OfWhatWindowsForget) {
  ContextParams forgetful = params(3);
  forgetful.swa_full = false;
  forgetful.n_ubatch = 31;
  InferenceContext context(model_, forgetful);
  in_batches(context, other_, 40, 1);
  EXPECT_EQ(in_batches(context, text_, 33), expected_);
}

TEST_P(Invariance, OfTheReuseOfPlans) {
  std::vector<std::vector<Bits>> results;
  for (const bool reuse : {true, false}) {
    if (!reuse) setenv("LLAMA_GRAPH_REUSE_DISABLE", "1", 1);
    InferenceContext context(model_, params(2));
    unsetenv("LLAMA_GRAPH_REUSE_DISABLE");
    std::vector<Bits>& result = results.emplace_back();
    for (std::size_t i = 0; i < 10; ++i) {
      for (const SequenceId s : {0, 1}) {
        const Token token = s == 0 ? text_[i] : other_[i];
        const Position position = context.memory().max_position(s) + 1;
        ASSERT_EQ(context.decode(TestBatch().add(token, position, {s}).view()), DecodeStatus::ok);
        result.push_back(bits_of(context.logits(0)));
      }
      if (i == 4) context.memory().copy(0, 1, 2, 4);
      if (i == 6) context.memory().remove(0, 3, -1);
    }
    EXPECT_EQ(context.counters().plans_reused, reuse ? 19U : 0U);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(Invariance, OfLargeBatches) {
  const std::vector<Token> text = some_tokens(*model_, 520, 3);
  std::vector<std::vector<Bits>> results;
  for (const std::size_t size : {512UL, 33UL, 130UL}) {
    ContextParams varied = params();
    varied.n_batch = varied.n_ubatch = 512;
    varied.n_threads = varied.n_threads_batch = size == 33 ? 1 : 2;
    InferenceContext context(model_, varied);
    results.push_back(in_batches(context, text, size));
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

std::vector<Case> types_of_weights() {
  std::vector<Case> cases;
  for (const ElementTypeInfo& type : all_element_types()) {
    if (type.decodable) cases.push_back({"llama", type.type});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Weights, Invariance, ::testing::ValuesIn(types_of_weights()),
                         [](const auto& tested) { return name_of(tested.param); });

INSTANTIATE_TEST_SUITE_P(
    Caches, Invariance,
    ::testing::Values(Case{"quipu-mini", {}, ElementType::bf16}, Case{"quipu-mini", {}, ElementType::q8_0},
                      Case{"quipu-mini", {}, ElementType::q5_1}, Case{"quipu-mini", {}, ElementType::q5_0},
                      Case{"quipu-mini", {}, ElementType::q4_1}, Case{"quipu-mini", {}, ElementType::q4_0},
                      Case{"quipu-mini", {}, ElementType::iq4_nl}),
    [](const auto& tested) { return name_of(tested.param); });

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         ::testing::Values(Case{"quipu-mini"}, Case{"quipu-mini", {}, ElementType::f32},
                                           Case{"llama"}, Case{"qwen2"}, Case{"qwen3"},
                                           Case{"qwen3moe-experts"},
                                           Case{"qwen3moe-experts", ElementType::q8_0},
                                           Case{"gemma3", {}, ElementType::f32}, Case{"gemma3-v-deep"}),
                         [](const auto& tested) { return name_of(tested.param); });

// A window of 16 that has room for 256 cells: beyond them it forgets, and the bits stay.
TEST(WindowInvariance, OfWhatIsForgottenInALongSequence) {
  const auto model = model_named("gemma3-v-deep");
  const std::vector<Token> text = some_tokens(*model, 600);
  std::vector<std::vector<Bits>> results;
  for (const bool full : {true, false}) {
    for (const std::uint32_t n_ubatch : {8U, 64U}) {
      ContextParams params = small_params();
      params.n_ctx = 1024;
      params.n_batch = 64;
      params.n_ubatch = n_ubatch;
      params.swa_full = full;
      InferenceContext context(model, params);
      std::vector<Bits>& result = results.emplace_back();
      for (std::size_t i = 0; i < 600; i += 50) {
        const auto part = std::span(text).subspan(i, 50);
        ASSERT_EQ(context.decode({.tokens = part}), DecodeStatus::ok);
        result.push_back(bits_of(context.logits(-1)));
      }
      EXPECT_EQ(context.memory().min_position(0) > 0, !full);
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(WindowInvariance, OfARemovedTailThatTheWindowAllows) {
  const auto model = model_named("gemma3");
  const std::vector<Token> text = some_tokens(*model, 600);
  ContextParams params = small_params();
  params.n_ctx = 1024;
  params.n_batch = 1024;
  params.n_ubatch = 8;
  params.swa_full = false;
  InferenceContext context(model, params);
  ASSERT_EQ(context.decode({.tokens = text}), DecodeStatus::ok);
  EXPECT_FALSE(context.memory().remove(0, 100, -1));
  EXPECT_EQ(context.memory().max_position(0), 599);

  const Position valid = context.memory().min_position(0) + 15;  // all that it sees is held
  ASSERT_TRUE(context.memory().remove(0, valid, -1));
  const auto rest = std::span(text).subspan(static_cast<std::size_t>(valid));
  ASSERT_EQ(context.decode({.tokens = rest}), DecodeStatus::ok);
  const Bits again = bits_of(context.logits(-1));

  InferenceContext fresh(model, params);
  ASSERT_EQ(fresh.decode({.tokens = text}), DecodeStatus::ok);
  EXPECT_EQ(again, bits_of(fresh.logits(-1)));
}

TEST(WindowInvariance, AFullWindowAllowsEveryRemoval) {
  const auto model = model_named("gemma3");
  const std::vector<Token> text = some_tokens(*model, 600);
  ContextParams params = small_params();
  params.n_ctx = 1024;
  params.n_batch = 1024;
  InferenceContext context(model, params);
  ASSERT_EQ(context.decode({.tokens = text}), DecodeStatus::ok);
  const Bits expected = bits_of(context.logits(-1));
  ASSERT_TRUE(context.memory().remove(0, 100, -1));
  ASSERT_EQ(context.decode({.tokens = std::span(text).subspan(100)}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context.logits(-1)), expected);
}

}  // namespace
}  // namespace quipu::test
