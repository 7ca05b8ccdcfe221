// Batches that are refused: the message names the token and the value, and nothing changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

class BatchChecks : public ::testing::Test {
 protected:
  static ContextParams params(bool is_unified) {
    ContextParams params = small_params();
    params.n_ctx = 512;
    params.n_batch = 64;
    params.n_seq_max = 4;
    params.kv_unified = is_unified;
    return params;
  }

  BatchChecks() { start(true); }

  // Sequence 0 holds ten tokens, and there are logits of the last.
  void start(bool is_unified) {
    const CapturedLog quiet;  // of rounding
    context_ = std::make_unique<InferenceContext>(model_, params(is_unified));
    const std::vector<Token> tokens = some_tokens(*model_, 10);
    ASSERT_EQ(context_->decode({.tokens = tokens}), DecodeStatus::ok);
    logits_ = bits_of(context_->logits(-1));
  }

  // The message with which a batch is refused; checks that it left no trace.
  std::string refusal(const BatchView& view) {
    std::string message = "accepted";
    try {
      context_->decode(view);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      message = error.message();
    }
    EXPECT_EQ(context_->memory().max_position(0), 9);
    EXPECT_EQ(context_->memory().min_position(0), 0);
    for (SequenceId s = 1; s < 4; ++s) EXPECT_EQ(context_->memory().max_position(s), -1);
    EXPECT_EQ(bits_of(context_->logits(-1)), logits_);
    EXPECT_EQ(bits_of(context_->logits(9)), logits_);
    return message;
  }
  std::string refusal(const TestBatch& batch) { return refusal(batch.view()); }

  // After all refusals: does the sequence go on as if nothing had been?
  void expect_undisturbed() {
    InferenceContext other(model_, params(true));
    const std::vector<Token> tokens = some_tokens(*model_, 10);
    other.decode({.tokens = tokens});
    const std::vector<Token> next{5};
    ASSERT_EQ(other.decode({.tokens = next}), DecodeStatus::ok);
    ASSERT_EQ(context_->decode({.tokens = next}), DecodeStatus::ok);
    EXPECT_EQ(bits_of(context_->logits(0)), bits_of(other.logits(0)));
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("llama");
  std::int32_t n_vocab_ = static_cast<std::int32_t>(model_->hparams().n_vocab);
  std::unique_ptr<InferenceContext> context_;
  Bits logits_;
};

TEST_F(BatchChecks, ABatchHasTokens) {
  EXPECT_THAT(refusal(BatchView{}), HasSubstr("no tokens"));
  expect_undisturbed();
}

TEST_F(BatchChecks, TokensAreOfTheVocabulary) {
  for (const Token id : {-1, -2, n_vocab_, INT_MAX, INT_MIN}) {
    EXPECT_THAT(refusal(TestBatch().add(1, 10, {0}).add(id, 11, {0})),
                HasSubstr("token 1 of the batch has id " + std::to_string(id)));
  }
  expect_undisturbed();
}

TEST_F(BatchChecks, SequencesExist) {
  for (const SequenceId s : {-1, 4, 1000000, INT_MIN}) {
    EXPECT_THAT(refusal(TestBatch().add(1, 10, {0}).add(1, 0, {s})),
                HasSubstr("token 1 of the batch names sequence " + std::to_string(s)));
  }
  EXPECT_THAT(refusal(TestBatch().add(1, 10, {})), HasSubstr("token 0 of the batch names no sequence"));
  expect_undisturbed();
}

TEST_F(BatchChecks, SequencesExistInACacheOfTheirOwnToo) {
  start(false);
  EXPECT_THAT(refusal(TestBatch().add(1, 0, {4})), HasSubstr("token 0 of the batch names sequence 4"));
}

TEST_F(BatchChecks, TokensFitTheBatchSize) {
  const std::vector<Token> tokens = some_tokens(*model_, 65);
  EXPECT_THAT(refusal(BatchView{.tokens = tokens}), HasSubstr("65 tokens; n_batch is 64"));
  expect_undisturbed();
}

TEST_F(BatchChecks, PositionsContinueTheSequence) {
  for (const Position position : {11, 9, 5, 0, -1, INT_MAX}) {
    EXPECT_THAT(refusal(TestBatch().add(1, position, {0})),
                HasSubstr("token 0 of the batch has position " + std::to_string(position) +
                          ", but sequence 0 continues at 10"));
  }
  EXPECT_THAT(refusal(TestBatch().add(1, 10, {0}).add(1, 12, {0})),
              HasSubstr("token 1 of the batch has position 12"));
  EXPECT_THAT(refusal(TestBatch().add(1, 11, {0}).add(1, 10, {0})),
              HasSubstr("token 0 of the batch has position 11"));
  EXPECT_THAT(refusal(TestBatch().add(1, 10, {0}).add(1, 10, {0})),
              HasSubstr("token 1 of the batch has position 10"));
  EXPECT_THAT(refusal(TestBatch().add(1, 3, {1}).add(1, 5, {1})), HasSubstr("sequence 1 continues at 4"));
  EXPECT_THAT(refusal(TestBatch().add(1, -5, {1})), HasSubstr("position -5"));
  expect_undisturbed();
}

TEST_F(BatchChecks, TheHighestPositionIsNotOne) {
  EXPECT_THAT(refusal(TestBatch().add(1, INT_MAX, {1})), HasSubstr("position 2147483647"));
  EXPECT_THAT(refusal(TestBatch().add(1, INT_MAX - 1, {1}).add(1, INT_MAX, {1})), HasSubstr("token 1"));
  EXPECT_EQ(context_->decode(TestBatch().add(1, INT_MAX - 1, {1}).view()), DecodeStatus::ok);
  EXPECT_EQ(context_->memory().max_position(1), INT_MAX - 1);
  EXPECT_TRUE(context_->memory().remove(1, -1, -1));
  EXPECT_EQ(context_->memory().max_position(1), -1);
}

TEST_F(BatchChecks, JoinedSequencesHoldTheSameCells) {
  EXPECT_THAT(refusal(TestBatch().add(1, 10, {0, 1})),
              HasSubstr("token 0 of the batch names sequences 0 to 1, which do not hold the same cells"));
  EXPECT_THAT(refusal(TestBatch().add(1, 0, {1, 2}).add(1, 1, {1}).add(1, 2, {1, 2})), HasSubstr("token 2"));
  EXPECT_THAT(refusal(TestBatch().add(1, 0, {1}).add(1, 0, {2}).add(1, 1, {1, 2})), HasSubstr("token 2"));
  expect_undisturbed();
}

TEST_F(BatchChecks, SequencesOfTheirOwnDoNotJoin) {
  start(false);
  EXPECT_THAT(refusal(TestBatch().add(1, 0, {1, 2})), HasSubstr("names 2 sequences, which needs kv_unified"));
  EXPECT_EQ(refusal(TestBatch().add(n_vocab_, 0, {1, 1})).substr(0, 7), "token 0");
}

TEST_F(BatchChecks, ASequenceNamedTwiceIsNamedOnce) {
  start(false);
  EXPECT_EQ(context_->decode(TestBatch().add(1, 10, {0, 0}).view()), DecodeStatus::ok);
  EXPECT_EQ(context_->memory().max_position(0), 10);
}

TEST_F(BatchChecks, ArraysHaveOneEntryForEachToken) {
  TestBatch batch = TestBatch().add(1, 10, {0}).add(2, 11, {0});
  const std::vector<Position> positions{10};
  BatchView view = batch.view();
  view.positions = positions;
  EXPECT_THAT(refusal(view), HasSubstr("batch of 2 tokens has 1 positions"));
  const std::vector<std::size_t> ends{2, 1};
  view = batch.view();
  view.sequence_ends = ends;
  EXPECT_THAT(refusal(view), HasSubstr("token 1 of the batch: its sequences end at 1"));
  const std::vector<std::size_t> far{1, 1000};
  view.sequence_ends = far;
  EXPECT_THAT(refusal(view), HasSubstr("token 1 of the batch: its sequences end at 1000"));
}

TEST_F(BatchChecks, EmbeddingsAreAsWideAsTheModels) {
  const std::vector<float> numbers(100);
  EXPECT_THAT(refusal(BatchView{.embeddings = numbers, .embedding_width = 100}), HasSubstr("are 100 wide"));
  const std::vector<float> cut(model_->hparams().n_embd - 1);
  EXPECT_THAT(refusal(BatchView{.embeddings = cut, .embedding_width = model_->hparams().n_embd}),
              HasSubstr("no tokens"));
  const std::vector<float> odd(model_->hparams().n_embd + 1);
  EXPECT_THAT(refusal(BatchView{.embeddings = odd, .embedding_width = model_->hparams().n_embd}),
              HasSubstr("numbers as embeddings"));
}

TEST_F(BatchChecks, OutputsAreLimited) {
  ContextParams limited = params(true);
  limited.n_outputs_max = 5;
  InferenceContext context(model_, limited);
  const std::vector<Token> tokens = some_tokens(*model_, 6);
  try {
    context.decode(TestBatch().add(tokens, 0, 0).view());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("6 outputs; n_outputs_max is 5"));
  }
  EXPECT_EQ(context.memory().max_position(0), -1);
}

TEST_F(BatchChecks, MissingArraysHaveDefaults) {
  const std::vector<Token> tokens{7, 8, 9};
  ASSERT_EQ(context_->decode({.tokens = tokens}), DecodeStatus::ok);
  EXPECT_EQ(context_->memory().max_position(0), 12);
  EXPECT_THROW(context_->logits(0), Error);
  EXPECT_THROW(context_->logits(1), Error);
  EXPECT_FALSE(context_->logits(2).empty());
}

TEST_F(BatchChecks, MissingPositionsContinueEverySequence) {
  TestBatch batch = TestBatch().add(7, 0, {1}).add(8, 0, {0}).add(9, 0, {1});
  BatchView view = batch.view();
  view.positions = {};
  ASSERT_EQ(context_->decode(view), DecodeStatus::ok);
  EXPECT_EQ(context_->memory().max_position(0), 10);
  EXPECT_EQ(context_->memory().max_position(1), 1);
}

TEST_F(BatchChecks, AnEmptySequenceMayBeginAnywhere) {
  ASSERT_EQ(context_->decode(TestBatch().add(7, 1000, {1}).add(8, 1001, {1}).view()), DecodeStatus::ok);
  EXPECT_EQ(context_->memory().min_position(1), 1000);
}

}  // namespace
}  // namespace quipu::test
