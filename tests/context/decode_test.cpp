// Result codes, rows, operations on the memory, counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

class Decoding : public ::testing::Test {
 protected:
  static ContextParams params() {
    ContextParams params = small_params();
    params.n_seq_max = 4;
    params.kv_unified = true;
    return params;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("llama");
  InferenceContext context_{model_, params()};
};

TEST_F(Decoding, GivesTheReferencesLogits) {
  for (const char* name : {"llama", "qwen2", "qwen3", "qwen3moe-experts", "gemma3"}) {
    const Golden golden = load_golden(name);
    ContextParams f32 = small_params();
    f32.type_k = f32.type_v = ElementType::f32;
    f32.n_threads_batch = 2;
    InferenceContext context(model_named(name), f32);
    ASSERT_EQ(context.decode(TestBatch().add(golden.tokens, 0, 0).view()), DecodeStatus::ok);
    std::vector<float> logits;
    for (std::size_t t = 0; t < golden.tokens.size(); ++t) {
      const auto row = context.logits(static_cast<std::ptrdiff_t>(t));
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LT(nmse(logits, golden.expected), golden.architecture == "gemma3" ? 2e-7 : 1e-9) << name;
  }
}

TEST_F(Decoding, RowsAreFoundByBatchIndexAndFromTheEnd) {
  const std::vector<Token> tokens = some_tokens(*model_, 6);
  TestBatch all, some;
  all.add(tokens, 0, 0);
  some.add(tokens, 0, 0);
  some.outputs = {0, 1, 0, 1, 0, 0};
  InferenceContext other(model_, params());
  ASSERT_EQ(other.decode(all.view()), DecodeStatus::ok);
  ASSERT_EQ(context_.decode(some.view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context_.logits(1)), bits_of(other.logits(1)));
  EXPECT_EQ(bits_of(context_.logits(3)), bits_of(other.logits(3)));
  EXPECT_EQ(bits_of(context_.logits(-1)), bits_of(other.logits(3)));
  EXPECT_EQ(bits_of(context_.logits(-2)), bits_of(other.logits(1)));
}

TEST_F(Decoding, ARowThatWasNotAskedForIsAnErrorThatNamesTheToken) {
  TestBatch batch;
  batch.add(some_tokens(*model_, 6), 0, 0, false);
  batch.outputs[2] = 1;
  ASSERT_EQ(context_.decode(batch.view()), DecodeStatus::ok);
  for (const std::ptrdiff_t index : {0L, 5L, 6L, 1000000L, -2L, PTRDIFF_MAX, PTRDIFF_MIN}) {
    EXPECT_THAT(refusal_of([&] { context_.logits(index); }),
                HasSubstr("logits of token " + std::to_string(index)));
  }
}

TEST_F(Decoding, ABatchMayAskForNothing) {
  TestBatch batch;
  batch.add(some_tokens(*model_, 6), 0, 0, false);
  ASSERT_EQ(context_.decode(batch.view()), DecodeStatus::ok);
  EXPECT_THROW(context_.logits(-1), Error);
  EXPECT_EQ(context_.memory().max_position(0), 5);
}

TEST_F(Decoding, ThereAreNoRowsBeforeTheFirstBatch) {
  EXPECT_THROW(context_.logits(0), Error);
  EXPECT_THROW(context_.logits(-1), Error);
}

TEST_F(Decoding, AFullMemoryHasNoRoomAndStaysAsItWas) {
  const std::vector<Token> tokens = some_tokens(*model_, 257);
  ASSERT_EQ(context_.decode({.tokens = std::span(tokens).first(250)}), DecodeStatus::ok);
  EXPECT_EQ(context_.decode({.tokens = std::span(tokens).first(7)}), DecodeStatus::no_room);
  EXPECT_EQ(context_.memory().max_position(0), 249);
  EXPECT_EQ(context_.decode({.tokens = std::span(tokens).subspan(250, 6)}), DecodeStatus::ok);
  EXPECT_EQ(context_.decode({.tokens = std::span(tokens).last(1)}), DecodeStatus::no_room);
  EXPECT_TRUE(context_.memory().remove(0, 0, 64));
  EXPECT_EQ(context_.decode({.tokens = std::span(tokens).last(1)}), DecodeStatus::ok);
  EXPECT_EQ(context_.memory().max_position(0), 256);
}

TEST_F(Decoding, EmbeddingsStandForTokens) {
  const std::vector<Token> tokens = some_tokens(*model_, 8);
  const std::size_t width = model_->hparams().n_embd;
  ASSERT_EQ(context_.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::ok);

  // The rows of the embedding matrix, for every other token.
  const Weight* table = model_->find_weight("token_embd.weight");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->type, ElementType::f32);
  std::vector<float> embeddings(tokens.size() * width);
  TestBatch mixed = TestBatch().add(tokens, 0, 0);
  for (std::size_t t = 0; t < tokens.size(); t += 2) {
    table->storage->get_rows(0, static_cast<std::size_t>(tokens[t]),
                             std::as_writable_bytes(std::span(embeddings).subspan(t * width, width)));
    mixed.tokens[t] = kNoToken;
  }
  BatchView view = mixed.view();
  view.embeddings = embeddings;
  view.embedding_width = width;
  ContextParams small = params();
  small.n_ubatch = 3;
  InferenceContext other(model_, small);
  ASSERT_EQ(other.decode(view), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 8; ++t)
    EXPECT_EQ(bits_of(other.logits(t)), bits_of(context_.logits(t))) << t;
}

// It is asked in the middle of the third micro-batch.
TEST_F(Decoding, AnAbortKeepsTheMicroBatchesThatAreDone) {
  ContextParams aborting = params();
  aborting.n_ubatch = 4;
  InferenceContext context(model_, aborting);
  context.set_abort([&] { return context.memory().max_position(0) > 7; });
  const std::vector<Token> tokens = some_tokens(*model_, 12);
  EXPECT_EQ(context.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::aborted);
  EXPECT_EQ(context.memory().max_position(0), 7);
  EXPECT_THROW(context.logits(0), Error);
  // It goes on from there with the same bits.
  context.set_abort({});
  ASSERT_EQ(context.decode(TestBatch().add(std::span(tokens).subspan(8), 8, 0).view()), DecodeStatus::ok);
  ASSERT_EQ(context_.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context.logits(-1)), bits_of(context_.logits(-1)));
}

TEST_F(Decoding, AnObserverSeesNodesAndMayEndTheRun) {
  struct Counting : RunObserver {
    bool observe(const ObservedNode&) override { return ++n_seen != last; }
    int n_seen = 0;
    int last = -1;
  } observer;
  const std::vector<Token> tokens = some_tokens(*model_, 12);
  ASSERT_EQ(context_.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::ok);
  const Bits expected = bits_of(context_.logits(-1));

  InferenceContext observed(model_, params());
  observed.set_observer(&observer);
  observer.last = 5;
  EXPECT_EQ(observed.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::aborted);
  EXPECT_EQ(observer.n_seen, 5);
  EXPECT_EQ(observed.memory().max_position(0), -1);
  observer.last = -1;
  ASSERT_EQ(observed.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::ok);
  EXPECT_GT(observer.n_seen, 20);
  EXPECT_EQ(bits_of(observed.logits(-1)), expected);
}

TEST_F(Decoding, AThrowingAbortCallbackLeavesAUsableContext) {
  bool armed = true;
  context_.set_abort([&]() -> bool {
    if (armed) throw std::runtime_error("no");
    return false;
  });
  const std::vector<Token> tokens = some_tokens(*model_, 3);
  EXPECT_THROW(context_.decode({.tokens = tokens}), std::runtime_error);
  EXPECT_EQ(context_.memory().max_position(0), -1);
  armed = false;
  EXPECT_EQ(context_.decode({.tokens = tokens}), DecodeStatus::ok);
}

TEST_F(Decoding, JoinedTokensGiveTheLogitsOfSeparateRuns) {
  const std::vector<Token> tokens = some_tokens(*model_, 30);
  TestBatch joined;
  for (std::size_t i = 0; i < 20; ++i) joined.add(tokens[i], static_cast<Position>(i), {1, 3});
  joined.add(std::span(tokens).subspan(20), 20, 1);
  joined.add(std::span(tokens).subspan(20), 20, 3);
  ASSERT_EQ(context_.decode(joined.view()), DecodeStatus::ok);
  InferenceContext other(model_, params());
  ASSERT_EQ(other.decode(TestBatch().add(tokens, 0, 0).view()), DecodeStatus::ok);
  for (std::ptrdiff_t i = 0; i < 30; ++i) EXPECT_EQ(bits_of(context_.logits(i)), bits_of(other.logits(i)));
  for (std::ptrdiff_t i = 20; i < 30; ++i)
    EXPECT_EQ(bits_of(context_.logits(i + 10)), bits_of(other.logits(i)));
}

TEST_F(Decoding, AChangeOfPositionsThatIsAbortedStaysPending) {
  const std::vector<Token> tokens = some_tokens(*model_, 20);
  InferenceContext other(model_, params());
  for (InferenceContext* context : {&context_, &other}) {
    ASSERT_EQ(context->decode({.tokens = tokens}), DecodeStatus::ok);
    ASSERT_TRUE(context->memory().remove(0, 2, 6));
    context->memory().add(0, 6, -1, -4);
  }
  context_.set_abort([] { return true; });
  EXPECT_EQ(context_.decode({.tokens = std::span(tokens).first(1)}), DecodeStatus::aborted);
  EXPECT_EQ(context_.memory().max_position(0), 15);
  EXPECT_THROW(context_.logits(-1), Error);
  context_.set_abort({});
  for (InferenceContext* context : {&context_, &other})
    ASSERT_EQ(context->decode({.tokens = std::span(tokens).first(1)}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context_.logits(-1)), bits_of(other.logits(-1)));
}

TEST_F(Decoding, OneBadSequenceDoesNotStopTheOthers) {
  EXPECT_THROW(context_.decode(TestBatch().add(1, 0, {0}).add(1, 5, {1}).add(1, 7, {1}).view()), Error);
  EXPECT_EQ(context_.decode(TestBatch().add(1, 0, {0}).view()), DecodeStatus::ok);
  EXPECT_EQ(context_.decode(TestBatch().add(1, 5, {1}).view()), DecodeStatus::ok);
}

TEST_F(Decoding, TokensCountAsTheyWereSubmitted) {
  const std::vector<Token> tokens = some_tokens(*model_, 9);
  ContextParams timed = params();
  timed.no_perf = false;
  timed.n_ubatch = 1;
  InferenceContext context(model_, timed);
  context.decode({.tokens = tokens});
  context.decode({.tokens = std::span(tokens).first(1)});
  context.decode({.tokens = std::span(tokens).first(1)});
  EXPECT_EQ(context.counters().prompt_tokens, 9U);
  EXPECT_EQ(context.counters().generation_tokens, 2U);
  EXPECT_GT(context.counters().prompt_seconds, 0);
  EXPECT_GT(context.counters().generation_seconds, 0);
  EXPECT_GT(context.counters().load_seconds, 0);
  EXPECT_EQ(context.counters().plans_reused, 10U);
}

TEST_F(Decoding, CountersWithoutTimesCount) {
  const std::vector<Token> tokens = some_tokens(*model_, 9);
  context_.decode({.tokens = tokens});
  EXPECT_EQ(context_.counters().prompt_tokens, 9U);
  EXPECT_EQ(context_.counters().prompt_seconds, 0);
  EXPECT_EQ(context_.counters().load_seconds, 0);
}

TEST_F(Decoding, AResetKeepsTheReallocations) {
  const std::vector<Token> tokens = some_tokens(*model_, 9);
  context_.decode({.tokens = tokens});
  EXPECT_EQ(context_.counters().reallocations, 1U);  // the first row of outputs
  context_.reset_counters();
  EXPECT_EQ(context_.counters().prompt_tokens, 0U);
  EXPECT_EQ(context_.counters().plans_reused, 0U);
  EXPECT_EQ(context_.counters().reallocations, 1U);
}

TEST_F(Decoding, TheOutputBufferGrowsOnlyWhenNeeded) {
  const std::vector<Token> tokens = some_tokens(*model_, 20);
  context_.decode(TestBatch().add(tokens, 0, 0).view());
  context_.decode(TestBatch().add(std::span(tokens).first(5), 20, 0).view());
  context_.decode(TestBatch().add(tokens, 25, 0).view());
  EXPECT_EQ(context_.counters().reallocations, 1U);
}

TEST_F(Decoding, ThreadsCanChange) {
  const std::vector<Token> tokens = some_tokens(*model_, 20);
  InferenceContext other(model_, params());
  other.decode({.tokens = tokens});
  context_.set_threads(2, 3);
  context_.decode({.tokens = tokens});
  EXPECT_EQ(bits_of(context_.logits(-1)), bits_of(other.logits(-1)));
  EXPECT_THROW(context_.set_threads(1, 100000), Error);
}

TEST_F(Decoding, GeneratingOneTokenAtATimeFillsTheContextWithoutGrowth) {
  const std::vector<Token> tokens = some_tokens(*model_, 256);
  context_.decode({.tokens = std::span(tokens).first(1)});
  const auto reallocations = context_.counters().reallocations;
  for (std::size_t i = 1; i < 256; ++i) {
    ASSERT_EQ(context_.decode({.tokens = std::span(tokens).subspan(i, 1)}), DecodeStatus::ok);
  }
  EXPECT_EQ(context_.counters().reallocations, reallocations);
}

}  // namespace
}  // namespace quipu::test
