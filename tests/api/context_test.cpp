// Running the built-in model through the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "quipu/quipu.h"
#include "support/files.h"
#include "support/golden.h"

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
    bytes = context.save({.tokens = tokens_, .compression = Compression::zstd});
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_LT(bytes.size(), context.save({.tokens = tokens_}).size());
  EXPECT_EQ(other.load(bytes), tokens_);
  EXPECT_EQ(other.save({.tokens = tokens_}), context.save({.tokens = tokens_}));
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
  const std::size_t state_bytes = context.state_bytes();
  for (const Token bad : {-1, 1024, 2147483647})
    EXPECT_THROW(context.decode(std::vector<Token>{5, bad}), Error);
  for (const SequenceId bad : {-1, 1, 1000000})
    EXPECT_THROW(context.decode(Batch::text(tokens_, 0, bad)), Error);
  EXPECT_THROW(context.decode(std::vector<Token>(513, 5)), Error);
  EXPECT_THROW(context.decode(std::vector<Token>{}), Error);
  EXPECT_EQ(context.state_bytes(), state_bytes);
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

TEST_F(ApiContext, AModelThatOnlyDecodesEncodesBesideItsMemory) {
  Context context(*model_);
  EXPECT_FALSE(model_->has_encoder());
  ASSERT_EQ(context.encode(tokens_), DecodeResult::ok);
  EXPECT_EQ(context.logits(0).size(), model_->n_vocab());
  EXPECT_EQ(context.max_position(0), -1);
}

TEST_F(ApiContext, ADecoderLooksAtWhatItsEncoderRead) {
  const TempDir folder;
  write_golden_model(folder / "m.gguf", load_golden("t5"));
  const Model model = Model::load(folder / "m.gguf");
  EXPECT_TRUE(model.has_encoder());
  EXPECT_TRUE(model.has_decoder());
  ASSERT_TRUE(model.decoder_start_token().has_value());
  const std::vector<Token> start{*model.decoder_start_token()}, text{5, 6, 7}, other{8, 9};
  Context context(model);
  EXPECT_THROW(context.decode(start), Error);
  ASSERT_EQ(context.encode(text), DecodeResult::ok);
  ASSERT_EQ(context.decode(start), DecodeResult::ok);
  const std::vector<float> of_text = logits_of(context);
  context.clear();
  ASSERT_EQ(context.encode(other), DecodeResult::ok);
  ASSERT_EQ(context.decode(start), DecodeResult::ok);
  EXPECT_NE(logits_of(context), of_text);
  EXPECT_EQ(model_->decoder_start_token(), std::nullopt);
}

TEST_F(ApiContext, ComputesOnThreadsThatAreAttached) {
  Context alone(*model_);
  ASSERT_EQ(alone.decode(tokens_), DecodeResult::ok);
  ContextOptions options;
  options.n_threads = options.n_threads_batch = 4;
  Context first(*model_, options), second(*model_, options);
  {
    const ThreadPool pool(2), batch_pool(3);
    EXPECT_EQ(batch_pool.n_threads(), 3);
    first.attach(pool, batch_pool);
    second.attach(pool);
  }  // the contexts keep them
  ASSERT_EQ(first.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(second.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(logits_of(first), logits_of(alone));
  EXPECT_EQ(logits_of(second), logits_of(alone));
  first.detach();
  first.clear();
  ASSERT_EQ(first.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(logits_of(first), logits_of(alone));
}

TEST_F(ApiContext, AThreadPoolHasAsManyThreadsAsCompute) {
  EXPECT_EQ(ThreadPool().n_threads(), available_threads());
  EXPECT_EQ(ThreadPool(-1).n_threads(), available_threads());
  EXPECT_THROW(ThreadPool(100000), Error);
}

/// Keeps the greatest magnitude in each layer's output; may end the run.
class Magnitudes final : public Observer {
 public:
  bool wants(const NodeView& node) override {
    EXPECT_TRUE(node.output.floats.empty());
    return node.output.name.starts_with("l_out-") || node.output.name == "ffn_up-0";
  }
  bool observe(const NodeView& node) override {
    const TensorView& output = node.output;
    EXPECT_EQ(output.floats.size(), output.dims[0] * output.dims[1]);
    if (node.operation == "matmul") {
      EXPECT_EQ(node.inputs[0].floats.size(), output.dims[0] * node.inputs[0].dims[1]);
      EXPECT_TRUE(node.inputs[1].is_weight);
      EXPECT_EQ(node.inputs[1].name, "blk.0.ffn_up.weight");
      EXPECT_TRUE(node.inputs[1].floats.empty());
    }
    ++n_seen;
    return n_seen != last;
  }

  int n_seen = 0;
  int last = -1;
};

TEST_F(ApiContext, AnObserverSeesWhatItWantsAndMayEndARun) {
  Context context(*model_), unobserved(*model_);
  const auto observer = std::make_shared<Magnitudes>();
  context.set_observer(observer);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(unobserved.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(logits_of(context), logits_of(unobserved));
  EXPECT_EQ(observer->n_seen, 7);  // six layers, one product

  observer->last = 9;
  EXPECT_EQ(context.decode(std::vector<Token>{5}), DecodeResult::aborted);
  EXPECT_EQ(observer->n_seen, 9);
  EXPECT_THROW(context.logits(-1), Error);
  context.set_observer(nullptr);
  EXPECT_EQ(observer.use_count(), 1);
  ASSERT_EQ(context.decode(std::vector<Token>{5}), DecodeResult::ok);
  ASSERT_EQ(unobserved.decode(std::vector<Token>{5}), DecodeResult::ok);
  EXPECT_EQ(logits_of(context), logits_of(unobserved));
}

TEST_F(ApiContext, AnObserversExceptionIsAnErrorAndTheContextGoesOn) {
  struct Throwing final : Observer {
    bool observe(const NodeView&) override { throw std::runtime_error("enough"); }
  };
  Context context(*model_);
  context.set_observer(std::make_shared<Throwing>());
  EXPECT_THROW(context.decode(tokens_), Error);
  EXPECT_EQ(context.max_position(0), -1);
  context.set_observer(nullptr);
  EXPECT_EQ(context.decode(tokens_), DecodeResult::ok);
}

TEST_F(ApiContext, WarmUpLeavesNoTrace) {
  Context warmed(*model_), cold(*model_);
  warmed.set_warm_up(true);
  ASSERT_EQ(warmed.decode(tokens_), DecodeResult::ok);
  warmed.set_warm_up(false);
  warmed.clear();
  ASSERT_EQ(warmed.decode(tokens_), DecodeResult::ok);
  ASSERT_EQ(cold.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(logits_of(warmed), logits_of(cold));
}

TEST_F(ApiContext, EmbeddingsMayStandForTokens) {
  Context context(*model_);
  const std::vector<SequenceId> zero{0};
  Batch batch;
  batch.add(5, 0, {0}, false);
  batch.add(std::vector<float>(model_->n_embd(), 0.1f), 1, zero, false);
  batch.add(6, 2, {0}, true);
  EXPECT_EQ(context.decode(batch), DecodeResult::ok);
  EXPECT_EQ(context.logits(-1).size(), model_->n_vocab());
  Batch narrow;
  narrow.add(std::vector<float>(3, 0.1f), 3, zero, true);
  EXPECT_THROW(context.decode(narrow), Error);
}

TEST_F(ApiContext, ASequenceIsWhatTheContextSaysOfItsNumber) {
  ContextOptions options;
  options.n_seq_max = 3;
  options.kv_unified = true;
  Context context(*model_, options), alone(*model_);
  const Sequence one(context, 1), two(context, 2);
  EXPECT_TRUE(one.is_empty());
  EXPECT_EQ(one.end(), 0);
  ASSERT_EQ(one.decode(std::span(tokens_).first(3)), DecodeResult::ok);
  ASSERT_EQ(one.decode(std::span(tokens_).subspan(3)), DecodeResult::ok);
  ASSERT_EQ(alone.decode(tokens_), DecodeResult::ok);
  EXPECT_EQ(logits_of(context), logits_of(alone));
  EXPECT_EQ(one.end(), static_cast<Position>(tokens_.size()));
  one.copy_to(2);
  EXPECT_TRUE(one.remove(2));
  EXPECT_EQ(one.end(), 2);
  EXPECT_EQ(two.end(), static_cast<Position>(tokens_.size()));
  const std::vector<std::byte> state = two.save({.tokens = tokens_});
  EXPECT_EQ(one.load(state), tokens_);
  EXPECT_EQ(one.end(), two.end());
  two.remove(1, 3);
  two.add(3, -1, -2);
  EXPECT_EQ(two.end(), static_cast<Position>(tokens_.size()) - 2);
  EXPECT_THROW(Sequence(context, 3).decode(tokens_), Error);
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
  const std::vector<std::byte> state = context.save({.tokens = tokens_});
  const std::vector<std::byte> sequence = context.save({.sequence = 0});
  ContextOptions options;
  options.n_seq_max = 3;
  options.n_ctx = 1024;
  Context whole(*model_), other(*model_, options);
  EXPECT_EQ(whole.load(state), tokens_);
  other.load(sequence, 2);
  const std::vector<Token> next{5};
  ASSERT_EQ(context.decode(next), DecodeResult::ok);
  ASSERT_EQ(whole.decode(next), DecodeResult::ok);
  ASSERT_EQ(other.decode(Batch::text(next, other.max_position(2) + 1, 2)), DecodeResult::ok);
  EXPECT_EQ(logits_of(whole), logits_of(context));
  EXPECT_EQ(logits_of(other), logits_of(context));
}

TEST_F(ApiContext, SizesOfStatesAreThoseOfWhatIsSaved) {
  Context context(*model_);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  for (const SaveOptions& options :
       {SaveOptions{}, SaveOptions{.tokens = tokens_}, SaveOptions{.sequence = 0}})
    EXPECT_EQ(context.state_bytes(options), context.save(options).size());
}

TEST_F(ApiContext, ASequencesFileIsRestoredUnderAnotherNumber) {
  const TempDir folder;
  ContextOptions options;
  options.n_seq_max = 2;
  Context context(*model_, options);
  ASSERT_EQ(context.decode(tokens_), DecodeResult::ok);
  context.save_file(folder / "sequence", {.sequence = 0, .tokens = tokens_});
  EXPECT_EQ(Context::saved_tokens(folder / "sequence"), tokens_);
  EXPECT_EQ(Context::saved_tokens(context.save({.tokens = tokens_})), tokens_);
  EXPECT_EQ(context.load_file(folder / "sequence", 1), tokens_);
  EXPECT_EQ(context.max_position(1), context.max_position(0));
  EXPECT_THROW(context.load_file(folder / "sequence"), Error);  // it is no whole context
}

// Layers with a window forget; what they held at a point comes back from a state of them alone.
TEST_F(ApiContext, APartialStateTakesASequenceBack) {
  const TempDir folder;
  write_golden_model(folder / "m.gguf", load_golden("gemma3"));
  const Model model = Model::load(folder / "m.gguf");
  ContextOptions options;
  options.n_ctx = 1024;
  options.n_ubatch = 64;
  options.swa_full = false;
  Context context(model, options), undisturbed(model, options);
  const std::vector<Token> text(500, 7), more(450, 9);
  ASSERT_EQ(context.decode(text), DecodeResult::ok);
  ASSERT_EQ(undisturbed.decode(text), DecodeResult::ok);
  const SaveOptions partial{.sequence = 0, .partial_only = true};
  const std::vector<std::byte> state = context.save(partial);
  EXPECT_EQ(state.size(), context.state_bytes(partial));
  EXPECT_LT(state.size(), context.save({.sequence = 0}).size());
  ASSERT_EQ(context.decode(more), DecodeResult::ok);
  EXPECT_FALSE(context.remove(0, 500));  // the window has left it behind
  context.load(state, 0);
  EXPECT_EQ(context.max_position(0), 499);
  ASSERT_EQ(context.decode(std::vector<Token>{3}), DecodeResult::ok);
  ASSERT_EQ(undisturbed.decode(std::vector<Token>{3}), DecodeResult::ok);
  EXPECT_EQ(logits_of(context), logits_of(undisturbed));
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
