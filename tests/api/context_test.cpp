// Running the built-in model through the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "quipu/quipu.h"

namespace quipu::test {
namespace {

class ApiContext : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new Model(Model::built_in()); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  static std::vector<float> logits_of(Context& context, std::ptrdiff_t index = -1) {
    const std::span<const float> row = context.logits(index);
    return {row.begin(), row.end()};
  }

  static Model* model_;
  std::vector<Token> tokens_ = model_->tokenizer().tokenize("Once upon a time there was a llama");
};
Model* ApiContext::model_ = nullptr;

TEST_F(ApiContext, GivesARowOfLogitsForTheLastToken) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(context.logits(-1).size(), model_->n_vocab());
  EXPECT_EQ(context.max_position(0), static_cast<Position>(tokens_.size()) - 1);
}

TEST_F(ApiContext, BothFormsOfABatchGiveTheSame) {
  Context flat(*model_), positions(*model_);
  ASSERT_EQ(flat.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(positions.decode(Batch::text(tokens_, 0)), DecodeResult::ok);
  EXPECT_EQ(logits_of(flat), logits_of(positions));
}

TEST_F(ApiContext, TheFlatFormContinuesTheSequence) {
  Context whole(*model_), parts(*model_);
  ASSERT_EQ(whole.decode(tokens_), DecodeResult::ok);
  const std::span<const Token> tokens(tokens_);
  ASSERT_EQ(parts.decode(tokens.first(3)), DecodeResult::ok);
  ASSERT_EQ(parts.decode(tokens.subspan(3)), DecodeResult::ok);
  EXPECT_EQ(logits_of(whole), logits_of(parts));
}

TEST_F(ApiContext, ASecondContextSharesItsMemory) {
  Context whole(*model_), first(*model_);
  ContextOptions options;
  options.memory_of = &first;
  Context second(*model_, options);
  ASSERT_EQ(whole.decode(tokens_), DecodeResult::ok);
  const std::span<const Token> tokens(tokens_);
  ASSERT_EQ(first.decode(tokens.first(3)), DecodeResult::ok);
  ASSERT_EQ(second.decode(tokens.subspan(3)), DecodeResult::ok);
  EXPECT_EQ(logits_of(second), logits_of(whole));
  EXPECT_EQ(first.max_position(0), whole.max_position(0));
}

TEST_F(ApiContext, LoadsCompressedStates) {
  Context context(*model_), other(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  std::vector<std::byte> bytes;
  try {
    bytes = context.save(tokens_, Compression::zstd);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_LT(bytes.size(), context.save(tokens_).size());
  EXPECT_EQ(other.load(bytes), tokens_);
  EXPECT_EQ(other.save(tokens_), context.save(tokens_));
}

TEST_F(ApiContext, RowsGoByPlaceInTheBatch) {
  Context context(*model_);
  Batch batch = Batch::text(tokens_, 0);
  batch.set_output(1, true);
  ASSERT_EQ(context.decode(batch), DecodeResult::ok);
  Context shorter(*model_);
  ASSERT_EQ(shorter.decode(std::span(tokens_).first(2)), DecodeResult::ok);
  EXPECT_EQ(logits_of(context, 1), logits_of(shorter));
  EXPECT_EQ(logits_of(context, -2), logits_of(shorter));
}

TEST_F(ApiContext, LogitsThatWereNotAskedForAreAnError) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  EXPECT_THROW(context.logits(0), Error);
  EXPECT_THROW(context.logits(1000), Error);
  EXPECT_THROW(context.logits(-2), Error);
}

TEST_F(ApiContext, ABadTokenIsAnErrorThatChangesNothing) {
  Context context(*model_), undisturbed(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(undisturbed.decode(tokens_), DecodeResult::ok);
  for (const Token bad : {-1, 1024, 2147483647})
    EXPECT_THROW(context.decode(std::vector<Token>{5, bad}), Error);
  EXPECT_THROW(context.decode(std::vector<Token>{}), Error);
  EXPECT_EQ(logits_of(context), logits_of(undisturbed));
  ASSERT_EQ(context.decode(std::vector<Token>{7}), DecodeResult::ok);
  ASSERT_EQ(undisturbed.decode(std::vector<Token>{7}), DecodeResult::ok);
  EXPECT_EQ(logits_of(context), logits_of(undisturbed));
}

TEST_F(ApiContext, SequencesAreCopiedKeptAndRemoved) {
  ContextOptions options;
  options.n_seq_max = 2;
  options.kv_unified = true;
  Context context(*model_, options);
  ASSERT_EQ(context.decode(Batch::text(tokens_, 0, 0)), DecodeResult::ok);
  context.copy(0, 1);
  EXPECT_EQ(context.max_position(1), context.max_position(0));
  EXPECT_TRUE(context.remove(0, 2));
  EXPECT_EQ(context.max_position(0), 1);
  context.keep(1);
  EXPECT_EQ(context.max_position(0), -1);
  EXPECT_EQ(context.min_position(1), 0);
  context.clear();
  EXPECT_EQ(context.max_position(1), -1);
}

TEST_F(ApiContext, AFullMemoryIsAResultAndNoError) {
  ContextOptions options;
  options.n_ctx = 256;
  Context context(*model_, options);
  const std::vector<Token> many(256, 5);
  ASSERT_EQ(context.decode(many), DecodeResult::ok);
  EXPECT_EQ(context.decode(std::vector<Token>{5}), DecodeResult::no_room);
  EXPECT_EQ(context.max_position(0), 255);
}

TEST_F(ApiContext, TheAbortCallbackStopsABatch) {
  ContextOptions options;
  bool stop = false;
  options.abort = [&] { return stop; };
  Context context(*model_, options);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  stop = true;
  EXPECT_EQ(context.decode(std::vector<Token>{5}), DecodeResult::aborted);
  EXPECT_THROW(context.logits(-1), Error);
}

TEST_F(ApiContext, CountsPromptAndGenerationApart) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(context.decode(std::vector<Token>{5}), DecodeResult::ok);
  ASSERT_EQ(context.decode(std::vector<Token>{6}), DecodeResult::ok);
  const Counters counters = context.counters();
  EXPECT_EQ(counters.prompt_tokens, tokens_.size());
  EXPECT_EQ(counters.generation_tokens, 2u);
  EXPECT_GT(counters.prompt_seconds, 0);
  EXPECT_GT(counters.generation_seconds, 0);
  context.reset_counters();
  EXPECT_EQ(context.counters().generation_tokens, 0u);
}

TEST_F(ApiContext, OptionsThatMakeNoSenseAreRefusedByName) {
  ContextOptions options;
  options.n_seq_max = 257;
  try {
    Context context(*model_, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("n_seq_max"));
    EXPECT_THAT(error.message(), testing::HasSubstr("257"));
  }
}

TEST_F(ApiContext, OutlivesTheModelHandleItWasMadeWith) {
  std::optional<Context> context;
  {
    const Model model = Model::built_in();
    context.emplace(model);
  }
  EXPECT_EQ(context->decode(tokens_), DecodeResult::ok);
}

TEST_F(ApiContext, EmbeddingsArePooledForEachSequence) {
  ContextOptions options;
  options.n_seq_max = 2;
  options.embeddings = true;
  options.pooling = Pooling::mean;
  Context context(*model_, options);
  Batch batch = Batch::text(tokens_, 0, 0);
  batch.append(std::span(tokens_).first(3), 0, 1);
  ASSERT_EQ(context.decode(batch), DecodeResult::ok);
  EXPECT_EQ(context.sequence_embedding(0).size(), context.n_embd_out());
  EXPECT_NE(std::vector(context.sequence_embedding(0).begin(), context.sequence_embedding(0).end()),
            std::vector(context.sequence_embedding(1).begin(), context.sequence_embedding(1).end()));
  EXPECT_THROW(context.sequence_embedding(2), Error);
  EXPECT_THROW(context.embedding(0), Error);
}

TEST_F(ApiContext, EmbeddingsOfTokensGoByPlaceInTheBatch) {
  Context context(*model_);
  context.set_embeddings(true);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(context.embedding(0).size(), context.n_embd_out());
  context.set_embeddings(false);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  EXPECT_THROW(context.embedding(0), Error);
}

TEST_F(ApiContext, AModelWithoutAnEncoderDoesNotEncode) {
  Context context(*model_);
  EXPECT_FALSE(model_->has_encoder());
  EXPECT_THROW(context.encode(tokens_), Error);
}

TEST_F(ApiContext, PositionsCanBeShifted) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  const Position last = context.max_position(0);
  ASSERT_TRUE(context.can_shift());
  context.remove(0, 1, 3);
  context.add(0, 3, -1, -2);
  EXPECT_EQ(context.max_position(0), last - 2);
  EXPECT_EQ(context.decode(tokens_), DecodeResult::ok);
}

TEST_F(ApiContext, ASavedStateGoesOnWithTheSameBits) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  const std::vector<std::byte> state = context.save(tokens_);
  const std::vector<std::byte> sequence = context.save_sequence(0);
  ContextOptions options;
  options.n_seq_max = 3;
  options.n_ctx = 1024;
  Context whole(*model_), other(*model_, options);
  EXPECT_EQ(whole.load(state), tokens_);
  other.load_sequence(2, sequence);
  const std::vector<Token> next{5};
  ASSERT_EQ(context.decode(next), DecodeResult::ok);
  ASSERT_EQ(whole.decode(next), DecodeResult::ok);
  ASSERT_EQ(other.decode(Batch::text(next, other.max_position(2) + 1, 2)), DecodeResult::ok);
  EXPECT_EQ(logits_of(whole), logits_of(context));
  EXPECT_EQ(logits_of(other), logits_of(context));
}

TEST_F(ApiContext, ADamagedStateChangesNothing) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  std::vector<std::byte> state = context.save();
  state[state.size() / 2] ^= std::byte{1};
  EXPECT_THROW(context.load(state), Error);
  EXPECT_EQ(context.max_position(0), static_cast<Position>(tokens_.size()) - 1);
}

TEST_F(ApiContext, SaysWhatItTakes) {
  Context context(*model_);
  const MemoryUse use = context.memory_use();
  EXPECT_GE(use.model, model_->bytes() / 2);
  EXPECT_GT(use.context, 0U);
  EXPECT_GT(use.compute, 0U);

  ModelOptions dry;
  dry.without_data = true;
  const Context of_no_data(Model::built_in(dry));
  EXPECT_EQ(of_no_data.memory_use().model, use.model);
  EXPECT_EQ(of_no_data.memory_use().context, use.context);
  EXPECT_EQ(of_no_data.memory_use().compute, use.compute);
}

TEST_F(ApiContext, CanBeMoved) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  const std::vector<float> expected = logits_of(context);
  Context moved = std::move(context);
  EXPECT_EQ(logits_of(moved), expected);
}

}  // namespace
}  // namespace quipu::test
