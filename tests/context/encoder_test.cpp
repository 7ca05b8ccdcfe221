// Models with encoders: texts are seen at once, and nothing is remembered but what a decoder looks at.
#include <gtest/gtest.h>

#include "context/test_context.h"

namespace quipu::test {
namespace {

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

TEST(Encoder, ModelsThatOnlyDecodeHaveNone) {
  const auto model = model_named("llama");
  InferenceContext context(model, small_params());
  EXPECT_THROW(context.encode({.tokens = some_tokens(*model, 3)}), Error);
}

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
