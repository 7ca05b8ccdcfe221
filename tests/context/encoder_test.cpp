// Models with encoders: texts are seen at once, and nothing is remembered but what a decoder looks at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

TEST(Encoder, DecodingIsEncoding) {
  const auto model = model_named("bert-full");
  const std::vector<Token> text = some_tokens(*model, 12);
  ContextParams params = small_params();
  params.pooling = Pooling::none;
  InferenceContext decoding(model, params), encoding(model, params);
  ASSERT_EQ(decoding.decode({.tokens = text}), DecodeStatus::ok);
  ASSERT_EQ(encoding.encode({.tokens = text}), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 12; ++t) {
    EXPECT_EQ(bits_of(decoding.embeddings(t)), bits_of(encoding.embeddings(t)));
  }
}

TEST(Encoder, RemembersNothing) {
  const auto model = model_named("bert-full");
  const std::vector<Token> text = some_tokens(*model, 12);
  InferenceContext context(model, small_params());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(context.encode({.tokens = text}), DecodeStatus::ok);
    EXPECT_EQ(context.memory().max_position(0), -1);
  }
  EXPECT_TRUE(context.memory().remove(0, -1, -1));
  EXPECT_FALSE(context.memory().can_shift());
}

TEST(Encoder, GivesEveryTokensRow) {
  const auto model = model_named("bert-full");
  ContextParams params = small_params();
  params.pooling = Pooling::none;
  params.n_outputs_max = 3;  // means nothing to an encoder
  InferenceContext context(model, params);
  const std::vector<Token> text = some_tokens(*model, 12);
  ASSERT_EQ(context.encode(TestBatch().add(text, 0, 0, false).view()), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 12; ++t) EXPECT_EQ(context.embeddings(t).size(), context.n_embd_out());
}

// Tokens of several sequences are those of each.
class SharedTokens : public ::testing::Test {
 protected:
  static ContextParams params(Pooling pooling) {
    ContextParams params = small_params();
    params.n_seq_max = 3;
    params.pooling = pooling;
    return params;
  }
  // Sequences 0 and 1 begin alike and part; 2 goes with 0 all the way.
  TestBatch shared() const {
    TestBatch batch;
    for (std::size_t i = 0; i < 5; ++i) batch.add(text_[i], static_cast<Position>(i), {0, 1, 2});
    batch.add(text_[5], 5, {0, 2}).add(other_[0], 5, {1}).add(text_[6], 6, {2, 0}).add(other_[1], 6, {1});
    return batch;
  }
  std::vector<Token> of(SequenceId sequence) const {
    std::vector<Token> tokens(text_.begin(), text_.begin() + 5);
    if (sequence == 1) {
      tokens.insert(tokens.end(), {other_[0], other_[1]});
    } else {
      tokens.insert(tokens.end(), {text_[5], text_[6]});
    }
    return tokens;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("bert-full");
  std::vector<Token> text_ = some_tokens(*model_, 7), other_ = some_tokens(*model_, 2, 9);
};

TEST_F(SharedTokens, GiveEachSequenceTheEmbeddingThatItHasAlone) {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    InferenceContext together(model_, params(pooling));
    ASSERT_EQ(together.encode(shared().view()), DecodeStatus::ok);
    for (const SequenceId s : {0, 1, 2}) {
      InferenceContext alone(model_, params(pooling));
      ASSERT_EQ(alone.encode(TestBatch().add(of(s), 0, s).view()), DecodeStatus::ok);
      EXPECT_EQ(bits_of(together.sequence_embedding(s)), bits_of(alone.sequence_embedding(s)));
    }
  }
}

TEST_F(SharedTokens, HaveTheRowOfTheirFirstSequence) {
  InferenceContext together(model_, params(Pooling::none)), alone(model_, params(Pooling::none));
  ASSERT_EQ(together.encode(shared().view()), DecodeStatus::ok);
  ASSERT_EQ(alone.encode(TestBatch().add(of(0), 0, 0).view()), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 6; ++t)
    EXPECT_EQ(bits_of(together.embeddings(t)), bits_of(alone.embeddings(t)));
  EXPECT_EQ(bits_of(together.embeddings(7)), bits_of(alone.embeddings(6)));
  ASSERT_EQ(alone.encode(TestBatch().add(of(1), 0, 1).view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(together.embeddings(-1)), bits_of(alone.embeddings(-1)));
}

TEST_F(SharedTokens, CountOnceForEachSequence) {
  ContextParams small = params(Pooling::mean);
  small.n_ubatch = 20;
  InferenceContext context(model_, small);
  EXPECT_THAT(refusal_of([&] { context.encode(shared().view()); }), HasSubstr("21 tokens, counted once"));
  small.n_ubatch = 21;
  InferenceContext enough(model_, small);
  EXPECT_EQ(enough.encode(shared().view()), DecodeStatus::ok);
}

TEST_F(SharedTokens, AreTextOfEverySequenceForADecoder) {
  const auto t5 = model_named("t5");
  ContextParams unified = params(Pooling::none);
  unified.kv_unified = true;
  InferenceContext together(t5, unified), alone(t5, unified);
  ASSERT_EQ(together.encode(shared().view()), DecodeStatus::ok);
  for (const SequenceId s : {0, 1, 2}) {
    ASSERT_EQ(alone.encode(TestBatch().add(of(s), 0, s).view()), DecodeStatus::ok);
    ASSERT_EQ(alone.decode(TestBatch().add(3, 0, {s}).view()), DecodeStatus::ok);
    ASSERT_EQ(together.decode(TestBatch().add(3, 0, {s}).view()), DecodeStatus::ok);
    EXPECT_EQ(bits_of(together.logits(0)), bits_of(alone.logits(0)));
    alone.memory().clear(false);
    together.memory().clear(false);
  }
  // A token that is decoded in several sequences must see the same text in all.
  EXPECT_EQ(together.decode(TestBatch().add(3, 0, {0, 2}).view()), DecodeStatus::ok);
  together.memory().clear(false);
  EXPECT_THAT(refusal_of([&] {
                together.decode(TestBatch().add(3, 0, {0, 1}).view());
              }),
              HasSubstr("different encoded texts"));
  // Texts that were given twice are the same as well.
  ASSERT_EQ(alone.encode(TestBatch().add(of(0), 0, 0).add(of(0), 0, 2).view()), DecodeStatus::ok);
  EXPECT_EQ(alone.decode(TestBatch().add(3, 0, {0, 2}).view()), DecodeStatus::ok);
}

// Models that only decode can encode as well, beside their memory.
class EncodingDecoder : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const LoadedModel> model_ = model_named(GetParam());
  std::vector<Token> text_ = some_tokens(*model_, 24);
};

TEST_P(EncodingDecoder, LooksBothWaysAndGivesEveryTokensRow) {
  ContextParams params = small_params();
  params.type_k = params.type_v = ElementType::f32;  // as encoding keeps them
  params.causal = false;
  InferenceContext decoding(model_, params), encoding(model_, small_params());
  ASSERT_EQ(decoding.decode(TestBatch().add(text_, 0, 0).view()), DecodeStatus::ok);
  ASSERT_EQ(encoding.encode({.tokens = text_}), DecodeStatus::ok);
  for (std::ptrdiff_t t = 0; t < 24; ++t) EXPECT_EQ(bits_of(encoding.logits(t)), bits_of(decoding.logits(t)));
}

TEST_P(EncodingDecoder, LeavesMemoryAndCausalityAsTheyWere) {
  InferenceContext context(model_, small_params()), undisturbed(model_, small_params());
  const std::span<const Token> text(text_);
  ASSERT_EQ(context.decode({.tokens = text.first(10)}), DecodeStatus::ok);
  ASSERT_EQ(context.encode({.tokens = text}), DecodeStatus::ok);
  EXPECT_EQ(context.memory().max_position(0), 9);
  ASSERT_EQ(context.decode({.tokens = text.subspan(10)}), DecodeStatus::ok);
  ASSERT_EQ(undisturbed.decode({.tokens = text}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context.logits(-1)), bits_of(undisturbed.logits(-1)));
}

TEST_P(EncodingDecoder, GivesEmbeddingsOfSequences) {
  ContextParams params = small_params();
  params.n_seq_max = 2;
  params.embeddings = true;
  params.pooling = Pooling::mean;
  params.n_outputs_max = 256;
  InferenceContext together(model_, params), alone(model_, params);
  const std::span<const Token> text(text_);
  TestBatch batch;
  for (std::size_t i = 0; i < 8; ++i) batch.add(text[i], static_cast<Position>(i), {0, 1});
  batch.add(text.subspan(8, 8), 8, 0).add(text.subspan(16), 8, 1);
  ASSERT_EQ(together.encode(batch.view()), DecodeStatus::ok);
  ASSERT_EQ(alone.encode(TestBatch().add(text.first(16), 0, 0).view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(together.sequence_embedding(0)), bits_of(alone.sequence_embedding(0)));
  EXPECT_NE(bits_of(together.sequence_embedding(0)), bits_of(together.sequence_embedding(1)));
  EXPECT_EQ(together.logits(0).size(), model_->hparams().n_vocab);
}

INSTANTIATE_TEST_SUITE_P(Models, EncodingDecoder,
                         ::testing::Values("llama", "gemma3", "deepseek2-experts", "mpt"));

class EncoderDecoder : public ::testing::Test {
 protected:
  static ContextParams params() {
    ContextParams params = small_params();
    params.n_seq_max = 2;
    params.kv_unified = true;
    return params;
  }
  std::shared_ptr<const LoadedModel> model_ = model_named("t5");
  std::vector<Token> text_ = some_tokens(*model_, 11), other_ = some_tokens(*model_, 7, 2);
};

TEST_F(EncoderDecoder, DecodingBeforeEncodingIsABadBatch) {
  InferenceContext context(model_, params());
  EXPECT_THROW(context.decode({.tokens = std::span(text_).first(1)}), Error);
  ASSERT_EQ(context.encode({.tokens = text_}), DecodeStatus::ok);
  EXPECT_EQ(context.decode({.tokens = std::span(text_).first(1)}), DecodeStatus::ok);
}

TEST_F(EncoderDecoder, TheTextThatWasEncodedLastCounts) {
  InferenceContext twice(model_, params()), once(model_, params());
  ASSERT_EQ(twice.encode({.tokens = other_}), DecodeStatus::ok);
  for (InferenceContext* context : {&twice, &once}) {
    ASSERT_EQ(context->encode({.tokens = text_}), DecodeStatus::ok);
    ASSERT_EQ(context->decode({.tokens = std::span(text_).first(4)}), DecodeStatus::ok);
  }
  EXPECT_EQ(bits_of(twice.logits(-1)), bits_of(once.logits(-1)));
}

TEST_F(EncoderDecoder, EncodingLeavesDecodingCausal) {
  InferenceContext whole(model_, params()), divided(model_, params());
  for (InferenceContext* context : {&whole, &divided})
    ASSERT_EQ(context->encode({.tokens = text_}), DecodeStatus::ok);
  ASSERT_EQ(whole.decode({.tokens = other_}), DecodeStatus::ok);
  for (const Token token : other_) ASSERT_EQ(divided.decode({.tokens = {&token, 1}}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(whole.logits(-1)), bits_of(divided.logits(-1)));
}

TEST_F(EncoderDecoder, ABatchThatCannotBeEncodedKeepsWhatWas) {
  ContextParams small = params();
  small.n_ubatch = 16;
  InferenceContext context(model_, small), undisturbed(model_, small);
  for (InferenceContext* both : {&context, &undisturbed})
    ASSERT_EQ(both->encode({.tokens = text_}), DecodeStatus::ok);
  EXPECT_THAT(refusal_of([&] { context.encode({}); }), HasSubstr("no tokens"));
  EXPECT_THAT(refusal_of([&] { context.encode({.tokens = some_tokens(*model_, 17)}); }),
              HasSubstr("n_ubatch is 16"));
  for (InferenceContext* both : {&context, &undisturbed})
    ASSERT_EQ(both->decode({.tokens = std::span(text_).first(2)}), DecodeStatus::ok);
  EXPECT_EQ(bits_of(context.logits(-1)), bits_of(undisturbed.logits(-1)));
}

TEST_F(EncoderDecoder, EverySequenceLooksAtItsOwnText) {
  InferenceContext both(model_, params());
  ASSERT_EQ(both.encode(TestBatch().add(text_, 0, 0).add(other_, 0, 1).view()), DecodeStatus::ok);
  ASSERT_EQ(both.decode(TestBatch().add(5, 0, {0}).add(5, 0, {1}).view()), DecodeStatus::ok);
  InferenceContext alone(model_, params());
  ASSERT_EQ(alone.encode(TestBatch().add(other_, 0, 1).view()), DecodeStatus::ok);
  ASSERT_EQ(alone.decode(TestBatch().add(5, 0, {1}).view()), DecodeStatus::ok);
  EXPECT_EQ(bits_of(both.logits(1)), bits_of(alone.logits(0)));
  EXPECT_NE(bits_of(both.logits(0)), bits_of(both.logits(1)));
}

TEST_F(EncoderDecoder, ASequenceWithoutTextIsABadBatch) {
  InferenceContext context(model_, params());
  ASSERT_EQ(context.encode(TestBatch().add(text_, 0, 0).view()), DecodeStatus::ok);
  EXPECT_THROW(context.decode(TestBatch().add(5, 0, {1}).view()), Error);
}

}  // namespace
}  // namespace quipu::test
