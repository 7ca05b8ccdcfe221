// Embeddings and causality of models that decode: switches at run time, and the same bits in any division.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "context/test_context.h"
#include "model/edited_model.h"

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
  InferenceContext context(model_, small_params());
  ASSERT_EQ(context.decode({.tokens = std::span(text_).first(8)}), DecodeStatus::ok);
  EXPECT_THROW(context.embeddings(-1), Error);
  context.set_embeddings(true);
  ASSERT_EQ(context.decode({.tokens = std::span(text_).subspan(8, 8)}), DecodeStatus::ok);
  EXPECT_EQ(context.embeddings(0).size(), context.n_embd_out());
  context.set_embeddings(false);
  ASSERT_EQ(context.decode({.tokens = std::span(text_).subspan(16)}), DecodeStatus::ok);
  EXPECT_THROW(context.embeddings(-1), Error);

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

TEST_F(Embeddings, WithoutCausalityTokensOfSequencesThatPartAreRefused) {
  ContextParams both = small_params();
  both.n_seq_max = 2;
  both.kv_unified = true;
  both.causal = false;
  InferenceContext context(model_, both);
  EXPECT_THAT(refusal_of([&] {
                context.decode(TestBatch().add(1, 0, {0, 1}).add(2, 1, {0}).add(3, 1, {1}).view());
              }),
              ::testing::HasSubstr("token 0 of the batch names sequences 0 and 1, which part later"));
  EXPECT_EQ(context.decode(TestBatch().add(1, 0, {0, 1}).add(2, 1, {0, 1}).view()), DecodeStatus::ok);
}

TEST_F(Embeddings, AnAbortInARunTakesItsTokensBackForEverySequence) {
  InferenceContext context(model_, params(Pooling::none));
  context.set_abort([&] { return context.memory().max_position(0) >= 0; });
  EXPECT_EQ(context.decode(interleaved().view()), DecodeStatus::aborted);
  EXPECT_EQ(context.memory().max_position(0), -1);
  EXPECT_EQ(context.memory().max_position(1), -1);
  EXPECT_THROW(context.embeddings(-1), Error);
}

// Many texts in one batch have the embeddings that each has in a batch and a context of its own.
class EmbeddingBatches : public ::testing::TestWithParam<std::tuple<const char*, Pooling>> {
 protected:
  static constexpr std::size_t kTexts = 20;

  ContextParams params(std::uint32_t n_seq_max, bool is_unified) const {
    ContextParams params = small_params();
    params.n_seq_max = n_seq_max;
    params.kv_unified = is_unified;
    params.n_ctx = is_unified ? 1024 : 256 * n_seq_max;
    params.n_batch = params.n_ubatch = 1024;
    params.embeddings = true;
    params.pooling = std::get<Pooling>(GetParam());
    return params;
  }
  std::vector<Token> text(std::size_t i) const {
    return some_tokens(*model_, 1 + i * 99 / (kTexts - 1), static_cast<std::uint32_t>(i + 1));
  }
  // All vectors of a batch: of its sequences, or without pooling of its tokens.
  std::vector<Bits> vectors(InferenceContext& context, std::size_t first_token, std::size_t n_tokens,
                            SequenceId sequence) const {
    if (std::get<Pooling>(GetParam()) != Pooling::none)
      return {bits_of(context.sequence_embedding(sequence))};
    std::vector<Bits> rows;
    for (std::size_t t = first_token; t < first_token + n_tokens; ++t)
      rows.push_back(bits_of(context.embeddings(static_cast<std::ptrdiff_t>(t))));
    return rows;
  }
  // Texts `order` in batches of `n_seq_max`, by number of the text.
  std::vector<std::vector<Bits>> in_batches(const std::vector<std::size_t>& order, std::uint32_t n_seq_max,
                                            bool is_unified) const {
    InferenceContext context(model_, params(n_seq_max, is_unified));
    std::vector<std::vector<Bits>> results(kTexts);
    for (std::size_t first = 0; first < order.size(); first += n_seq_max) {
      const std::size_t n = std::min<std::size_t>(n_seq_max, order.size() - first);
      TestBatch batch;
      std::vector<std::size_t> starts;
      for (std::size_t s = 0; s < n; ++s) {
        starts.push_back(batch.tokens.size());
        batch.add(text(order[first + s]), 0, static_cast<SequenceId>(s), false);
      }
      context.memory().clear(false);
      EXPECT_EQ(context.decode(batch.view()), DecodeStatus::ok);
      for (std::size_t s = 0; s < n; ++s) {
        results[order[first + s]] =
            vectors(context, starts[s], text(order[first + s]).size(), static_cast<SequenceId>(s));
      }
    }
    return results;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named(std::get<const char*>(GetParam()));
};

TEST_P(EmbeddingBatches, GiveEachTextWhatItHasAlone) {
  std::vector<std::size_t> order(kTexts), reversed;
  for (std::size_t i = 0; i < kTexts; ++i) order[i] = i;
  reversed.assign(order.rbegin(), order.rend());
  const auto alone = in_batches(order, 1, false);
  for (const bool is_unified : {true, false}) {
    EXPECT_EQ(in_batches(order, 8, is_unified), alone);
    EXPECT_EQ(in_batches(reversed, 8, is_unified), alone);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingBatches,
                         ::testing::Combine(::testing::Values("llama", "bert-full"),
                                            ::testing::Values(Pooling::none, Pooling::mean, Pooling::first,
                                                              Pooling::last)));

// Pooled vectors against rows of tokens.
class PoolingByPosition : public ::testing::TestWithParam<const char*> {
 protected:
  ContextParams params(Pooling pooling, std::uint32_t n_ubatch) const {
    ContextParams params = small_params();
    params.n_seq_max = 8;
    params.kv_unified = true;
    params.n_ubatch = n_ubatch;
    params.embeddings = true;
    params.pooling = pooling;
    return params;
  }
  // Three sequences, each ascending, in no order otherwise.
  TestBatch shuffled() const {
    const std::vector<Token> tokens = some_tokens(*model_, 18);
    TestBatch batch;
    std::size_t i = 0;
    std::array<Position, 8> next{};
    for (const SequenceId s : {3, 3, 7, 1, 7, 3, 1, 1, 1, 7, 3, 3, 7, 1, 3, 7, 7, 3})
      batch.add(tokens[i++], next[static_cast<std::size_t>(s)]++, {s}, false);
    return batch;
  }
  std::shared_ptr<const LoadedModel> model_ = model_named(GetParam());
};

TEST_P(PoolingByPosition, FirstLastAndMeanAreThoseOfTheTokens) {
  const TestBatch batch = shuffled();
  InferenceContext rows(model_, params(Pooling::none, 256));
  ASSERT_EQ(rows.decode(batch.view()), DecodeStatus::ok);
  // Where the model decodes, the last tokens lie in a later micro-batch.
  const std::uint32_t n_ubatch = model_->has_memory() ? 7 : 256;
  InferenceContext first(model_, params(Pooling::first, n_ubatch)),
      last(model_, params(Pooling::last, n_ubatch)), mean(model_, params(Pooling::mean, n_ubatch));
  for (InferenceContext* context : {&first, &last, &mean})
    ASSERT_EQ(context->decode(batch.view()), DecodeStatus::ok);
  for (const SequenceId s : {1, 3, 7}) {
    std::vector<std::ptrdiff_t> tokens;
    for (std::size_t t = 0; t < batch.ids.size(); ++t) {
      if (batch.ids[t] == s) tokens.push_back(static_cast<std::ptrdiff_t>(t));
    }
    EXPECT_EQ(bits_of(first.sequence_embedding(s)), bits_of(rows.embeddings(tokens.front())));
    EXPECT_EQ(bits_of(last.sequence_embedding(s)), bits_of(rows.embeddings(tokens.back())));
    for (std::size_t i = 0; i < rows.n_embd_out(); ++i) {
      double sum = 0;
      for (const std::ptrdiff_t t : tokens) sum += static_cast<double>(rows.embeddings(t)[i]);
      EXPECT_NEAR(static_cast<double>(mean.sequence_embedding(s)[i]),
                  sum / static_cast<double>(tokens.size()), 1e-5);
    }
  }
}

TEST_P(PoolingByPosition, SequenceNumbersMayExceedTheTokens) {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    InferenceContext context(model_, params(pooling, 256));
    ASSERT_EQ(context.decode(TestBatch().add(1, 0, {3}).add(2, 1, {3}).add(3, 0, {7}).view()),
              DecodeStatus::ok);
    EXPECT_EQ(context.sequence_embedding(3).size(), context.n_embd_out());
    EXPECT_EQ(context.sequence_embedding(7).size(), context.n_embd_out());
    EXPECT_THROW(context.sequence_embedding(1), Error);
    ASSERT_EQ(context.decode(TestBatch().add(4, 0, {1}).view()), DecodeStatus::ok);
    EXPECT_THROW(context.sequence_embedding(3), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PoolingByPosition, ::testing::Values("llama", "bert-full"));

TEST(Ranking, GivesEachSequenceTheScoresOfItsFirstToken) {
  EditedModel edited("bert");
  edited.set("classifier.output_labels", gguf::Array(std::vector<std::string>{"no", "yes"}));
  edited.tensor("cls.weight", {64, 64}).tensor("cls.bias", {64});
  edited.tensor("cls.output.weight", {64, 2}).tensor("cls.output.bias", {2});
  const auto model = edited.load();
  ContextParams params = small_params();
  params.n_seq_max = 8;
  params.pooling = Pooling::rank;
  InferenceContext together(model, params), alone(model, params);
  const std::vector<Token> text = some_tokens(*model, 30);
  ASSERT_EQ(together.decode(TestBatch()
                                .add(std::span(text).first(9), 0, 3)
                                .add(std::span(text).subspan(9), 0, 7)
                                .add(std::span(text).first(9), 0, 5)
                                .view()),
            DecodeStatus::ok);
  ASSERT_EQ(alone.decode(TestBatch().add(std::span(text).subspan(9), 0, 0).view()), DecodeStatus::ok);
  ASSERT_EQ(together.sequence_embedding(7).size(), 2U);
  EXPECT_EQ(bits_of(together.sequence_embedding(7)), bits_of(alone.sequence_embedding(0)));
  EXPECT_EQ(bits_of(together.sequence_embedding(3)), bits_of(together.sequence_embedding(5)));
  EXPECT_NE(bits_of(together.sequence_embedding(3)), bits_of(together.sequence_embedding(7)));
  EXPECT_THROW(together.sequence_embedding(0), Error);
  EXPECT_THROW(together.embeddings(0), Error);
}

}  // namespace
}  // namespace quipu::test
