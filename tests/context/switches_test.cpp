// What can be switched while a context lives: warm-up, thread pools, observers. None changes a bit of what is
// computed without it, or afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/thread_pool.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Notes shapes and inputs by node; asks for those whose name contains `only`.
class Recorder final : public RunObserver {
 public:
  bool wants(const ObservedNode& node) override {
    EXPECT_EQ(node.output.data, nullptr);
    asked.emplace_back(node.output.name);
    return node.output.name.find(only) != std::string_view::npos;
  }
  bool observe(const ObservedNode& node) override {
    EXPECT_NE(node.output.data, nullptr);
    const std::string name(node.output.name);
    seen.push_back(name);
    dims[name] = {node.output.dims.begin(), node.output.dims.begin() + node.output.rank};
    for (const ObservedTensor& input : node.inputs) inputs[name].emplace_back(input.name);
    return seen.size() < limit;
  }

  std::string only;
  std::size_t limit = SIZE_MAX;
  std::vector<std::string> asked, seen;
  std::map<std::string, std::vector<std::size_t>> dims;
  std::map<std::string, std::vector<std::string>> inputs;
};

class Switches : public ::testing::Test {
 protected:
  static Bits logits_after(InferenceContext& context, std::span<const Token> tokens) {
    EXPECT_EQ(context.decode({.tokens = tokens}), DecodeStatus::ok);
    return bits_of(context.logits(-1));
  }
};

TEST_F(Switches, WarmUpUsesEveryExpert) {
  for (const char* name : {"qwen3moe-experts", "deepseek2-experts-v-groups"}) {
    const auto model = model_named(name);
    const std::vector<Token> text = some_tokens(*model, 50);
    InferenceContext context(model, small_params()), undisturbed(model, small_params());
    Recorder recorder;
    recorder.only = "ffn_moe_routes-1";
    context.set_observer(&recorder);
    context.set_warm_up(true);
    logits_after(context, text);
    const auto& routes = recorder.dims["ffn_moe_routes-1"];
    ASSERT_EQ(routes.size(), 3U) << name;
    EXPECT_EQ(routes[1], model->hparams().experts.n_experts);

    context.set_warm_up(false);
    context.memory().clear(false);
    const Bits observed = logits_after(context, text);
    EXPECT_EQ(recorder.dims["ffn_moe_routes-1"][1], model->hparams().experts.n_used);
    context.set_observer(nullptr);
    context.memory().clear(false);
    const Bits expected = logits_after(undisturbed, text);
    EXPECT_EQ(observed, expected);
    EXPECT_EQ(logits_after(context, text), expected);
  }
}

TEST_F(Switches, WarmUpOfAnyBatchThatFitsRuns) {
  const auto model = model_named("qwen3moe-experts");
  InferenceContext context(model, small_params());
  const std::size_t before = context.compute_bytes();
  context.set_warm_up(true);
  EXPECT_EQ(context.decode({.tokens = some_tokens(*model, 256)}), DecodeStatus::ok);
  EXPECT_GT(context.compute_bytes(), before);
  context.set_warm_up(false);
  EXPECT_EQ(context.compute_bytes(), before);
  context.set_warm_up(true);
  context.memory().clear(false);
  context.set_causal(false);
  EXPECT_EQ(context.decode({.tokens = some_tokens(*model, 256)}), DecodeStatus::ok);
}

TEST_F(Switches, WarmUpChangesNothingWhereThereAreNoExperts) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 20);
  InferenceContext context(model, small_params()), other(model, small_params());
  context.set_warm_up(true);
  const auto reallocations = context.counters().reallocations;
  EXPECT_EQ(logits_after(context, text), logits_after(other, text));
  EXPECT_EQ(context.counters().reallocations, reallocations + 1);  // the row of outputs
}

TEST_F(Switches, AttachedPoolsGiveTheSameBits) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 40);
  InferenceContext alone(model, small_params());
  const Bits expected = logits_after(alone, text);
  for (const int n_threads : {1, 2, 4}) {
    ContextParams params = small_params();
    params.n_threads = params.n_threads_batch = n_threads;
    InferenceContext context(model, params);
    auto pool = std::make_shared<WorkerPool>(3);
    std::weak_ptr<WorkerPool> watched = pool;
    context.attach_pools(std::move(pool), std::make_shared<WorkerPool>(2));
    EXPECT_EQ(logits_after(context, text), expected);
    EXPECT_FALSE(watched.expired());  // the context keeps it
    context.memory().remove(0, 39, -1);
    EXPECT_EQ(logits_after(context, std::span(text).last(1)), expected);
    context.set_threads(5, 5);
    context.memory().remove(0, 39, -1);
    EXPECT_EQ(logits_after(context, std::span(text).last(1)), expected);
    context.attach_pools(nullptr, nullptr);
    EXPECT_TRUE(watched.expired());
    context.memory().clear(false);
    EXPECT_EQ(logits_after(context, text), expected);
  }
}

TEST_F(Switches, OnePoolServesBothKindsOfMicroBatches) {
  const auto model = model_named("llama");
  InferenceContext context(model, small_params());
  auto pool = std::make_shared<WorkerPool>(2);
  context.attach_pools(pool, nullptr);
  EXPECT_EQ(pool.use_count(), 3);
  EXPECT_THAT(refusal_of([&] { context.attach_pools(nullptr, pool); }),
              HasSubstr("needs one for single tokens"));
}

TEST_F(Switches, AnObserverIsAskedForEveryNodeAndSeesThoseItWants) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 12);
  InferenceContext context(model, small_params()), other(model, small_params());
  Recorder recorder;
  recorder.only = "out-";
  context.set_observer(&recorder);
  EXPECT_EQ(logits_after(context, text), logits_after(other, text));
  for (const char* name :
       {"l_out-0", "l_out-1", "ffn_out-0", "attn_norm-1", "result_norm", "result_output"}) {
    EXPECT_THAT(recorder.asked, Contains(name));
  }
  EXPECT_LT(recorder.seen.size(), recorder.asked.size());
  EXPECT_THAT(recorder.seen, Contains("l_out-0"));
  EXPECT_THAT(recorder.seen, ::testing::Not(Contains("result_output")));
  EXPECT_THAT(recorder.dims["l_out-0"], ElementsAre(12, model->hparams().n_embd));
}

TEST_F(Switches, ProductsShowTheirInputAndTheirWeight) {
  const auto model = model_named("llama");
  InferenceContext context(model, small_params());
  Recorder recorder;
  context.set_observer(&recorder);
  logits_after(context, some_tokens(*model, 3));
  EXPECT_THAT(recorder.inputs["ffn_out-0"], Contains("blk.0.ffn_down.weight"));
  EXPECT_THAT(recorder.inputs["result_output"], ElementsAre("result_norm", HasSubstr(".weight")));
  EXPECT_THAT(recorder.inputs["ffn_up-1"], ElementsAre("ffn_norm-1", "blk.1.ffn_up.weight"));
}

TEST_F(Switches, AnObserverMayEndARunAtAnyNode) {
  const auto model = model_named("llama");
  const std::vector<Token> text = some_tokens(*model, 12);
  InferenceContext context(model, small_params()), other(model, small_params());
  Recorder all;
  context.set_observer(&all);
  const Bits expected = logits_after(context, text);
  for (std::size_t n = 1; n < all.seen.size(); n += 7) {
    context.memory().clear(false);
    Recorder recorder;
    recorder.limit = n;
    context.set_observer(&recorder);
    EXPECT_EQ(context.decode({.tokens = text}), DecodeStatus::aborted);
    EXPECT_EQ(context.memory().max_position(0), -1);
    EXPECT_THROW(context.logits(-1), Error);
  }
  context.set_observer(nullptr);
  EXPECT_EQ(logits_after(context, text), expected);
}

TEST_F(Switches, GiveTheSameBitsWithAndWithoutReuseOfPlans) {
  for (const char* name : {"llama", "gemma3", "qwen3moe-experts"}) {
    const auto model = model_named(name);
    const std::vector<Token> text = some_tokens(*model, 40);
    std::vector<std::vector<Bits>> results;
    for (const bool reuse : {true, false}) {
      ContextParams params = small_params();
      params.n_seq_max = 2;
      params.kv_unified = true;
      if (!reuse) setenv("LLAMA_GRAPH_REUSE_DISABLE", "1", 1);
      InferenceContext context(model, params);
      unsetenv("LLAMA_GRAPH_REUSE_DISABLE");
      std::vector<Bits>& rows = results.emplace_back();
      for (std::size_t i = 0; i < text.size(); ++i) {
        const auto s = static_cast<SequenceId>(i % 2);
        context.set_embeddings(i % 5 < 2);
        context.set_causal(i % 7 != 3);
        context.set_warm_up(i % 11 == 10);
        if (i == 13) context.memory().copy(0, 1, 2, 4);
        if (i == 21) context.memory().remove(0, 5, -1);
        const Position position = context.memory().max_position(s) + 1;
        ASSERT_EQ(context.decode(TestBatch().add(text[i], position, {s}).view()), DecodeStatus::ok);
        rows.push_back(bits_of(context.logits(0)));
        if (i % 5 < 2) rows.push_back(bits_of(context.embeddings(0)));
      }
      EXPECT_EQ(context.counters().plans_reused > 0, reuse);
    }
    EXPECT_EQ(results[0], results[1]) << name;
  }
}

TEST_F(Switches, EncodersAreObservedToo) {
  const auto model = model_named("bert-full");
  ContextParams params = small_params();
  params.pooling = Pooling::none;
  InferenceContext context(model, params);
  Recorder recorder;
  context.set_observer(&recorder);
  ASSERT_EQ(context.encode({.tokens = some_tokens(*model, 5)}), DecodeStatus::ok);
  EXPECT_THAT(recorder.seen, Contains("l_out-0"));
}

}  // namespace
}  // namespace quipu::test
