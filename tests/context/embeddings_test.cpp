// Embeddings and causality of models that decode: switches at run time, and the same bits in any division.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "context/test_context.h"

namespace quipu::test {
namespace {

class Embeddings : public ::testing::Test {
 protected:
  static ContextParams params(Pooling pooling, std::uint32_t n_ubatch = 256) {
    ContextParams params = small_params();
    params.n_seq_max = 2;
    params.kv_unified = true;
    params.n_ubatch = n_ubatch;
    params.embeddings = true;
    params.pooling = pooling;
    return params;
  }
  // Two texts, token by token in turn.
  TestBatch interleaved() const {
    TestBatch batch;
    for (std::size_t i = 0; i < 20; ++i) {
      batch.add(text_[i], static_cast<Position>(i), {0}, false);
      batch.add(text_[i + 20], static_cast<Position>(i), {1}, false);
    }
    return batch;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("llama");
  std::vector<Token> text_ = some_tokens(*model_, 40);
};

TEST_F(Embeddings, EveryTokenIsAnOutputWhateverItsFlag) {
  InferenceContext context(model_, params(Pooling::none));
  ASSERT_EQ(context.decode(interleaved().view()), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 40; ++t) EXPECT_EQ(context.embeddings(t).size(), context.n_embd_out());
}

TEST_F(Embeddings, LogitsAreBesideThem) {
  InferenceContext with(model_, params(Pooling::none));
  ASSERT_EQ(with.decode({.tokens = text_}), DecodeStatus::ok);
  InferenceContext without(model_, small_params());
  ASSERT_EQ(without.decode({.tokens = text_}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(with.logits(-1)), bits_of(without.logits(-1)));
}

TEST_F(Embeddings, AreOfOneBatchInAnyNumberOfMicroBatches) {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    InferenceContext whole(model_, params(pooling));
    ASSERT_EQ(whole.decode(interleaved().view()), DecodeStatus::ok);
    for (const std::uint32_t n_ubatch : {1U, 3U, 16U}) {
      InferenceContext divided(model_, params(pooling, n_ubatch));
      ASSERT_EQ(divided.decode(interleaved().view()), DecodeStatus::ok);
      for (const SequenceId s : {0, 1}) {
        EXPECT_EQ(bits_of(divided.sequence_embedding(s)), bits_of(whole.sequence_embedding(s)));
      }
    }
  }
}

TEST_F(Embeddings, OfASequenceAreThoseOfItAlone) {
  InferenceContext both(model_, params(Pooling::mean));
  ASSERT_EQ(both.decode(interleaved().view()), DecodeStatus::ok);
  InferenceContext alone(model_, params(Pooling::mean));
  ASSERT_EQ(alone.decode(TestBatch().add(std::span(text_).last(20), 0, 1).view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(both.sequence_embedding(1)), bits_of(alone.sequence_embedding(1)));
}

TEST_F(Embeddings, CanBeSwitchedOnAndOff) {
  const CapturedLog quiet;
  InferenceContext context(model_, small_params());
  ASSERT_EQ(context.decode({.tokens = std::span(text_).first(8)}), DecodeStatus::ok);
  EXPECT_TRUE(context.embeddings(-1).empty());
  context.set_embeddings(true);
  ASSERT_EQ(context.decode({.tokens = std::span(text_).subspan(8, 8)}), DecodeStatus::ok);
  EXPECT_EQ(context.embeddings(0).size(), context.n_embd_out());
  context.set_embeddings(false);
  ASSERT_EQ(context.decode({.tokens = std::span(text_).subspan(16)}), DecodeStatus::ok);
  EXPECT_TRUE(context.embeddings(-1).empty());

  InferenceContext undisturbed(model_, small_params());
  ASSERT_EQ(undisturbed.decode({.tokens = text_}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context.logits(-1)), bits_of(undisturbed.logits(-1)));
}

TEST_F(Embeddings, RankingNeedsAHead) {
  EXPECT_THROW(InferenceContext(model_, params(Pooling::rank)), Error);
}

TEST_F(Embeddings, WithoutCausalityABatchIsNeverDivided) {
  ContextParams small = small_params();
  small.n_ubatch = 16;
  InferenceContext context(model_, small);
  context.set_causal(false);
  try {
    context.decode({.tokens = std::span(text_).first(17)});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("n_ubatch is 16"));
  }
  EXPECT_EQ(context.memory().max_position(0), -1);
  EXPECT_EQ(context.decode({.tokens = std::span(text_).first(16)}), DecodeStatus::ok);
  context.set_causal(true);
  EXPECT_EQ(context.decode({.tokens = std::span(text_).subspan(16)}), DecodeStatus::ok);
}

TEST_F(Embeddings, AnAbortInARunTakesItsTokensBackForEverySequence) {
  InferenceContext context(model_, params(Pooling::none));
  context.set_abort([&] { return context.memory().max_position(0) >= 0; });
  EXPECT_EQ(context.decode(interleaved().view()), DecodeStatus::aborted);
  EXPECT_EQ(context.memory().max_position(0), -1);
  EXPECT_EQ(context.memory().max_position(1), -1);
  const CapturedLog quiet;
  EXPECT_TRUE(context.embeddings(-1).empty());
}

}  // namespace
}  // namespace quipu::test
