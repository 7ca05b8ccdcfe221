// Sequences of batches and memory operations against the reference's numbers (tests/data/flows), each again
// with other thread counts, micro-batch sizes and the other cache layout: the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using Json = nlohmann::json;

Json load_flows() {
  return Json::parse(std::ifstream(data_dir() / "flows/flows.json"));
}

/// How a flow is run, beyond what it says itself.
struct Variation {
  int n_threads = 1;
  std::uint32_t n_ubatch = 0;  ///< 0: the flow's
  bool other_layout = false;   ///< of the cache
};

class Flow : public ::testing::TestWithParam<std::size_t> {
 protected:
  ContextParams params(const Variation& variation) const {
    const Json& given = flow_.at("context");
    ContextParams params = small_params();
    params.n_ctx = given.at("n_ctx");
    params.n_batch = given.at("n_batch");
    params.n_ubatch =
        variation.n_ubatch != 0 ? variation.n_ubatch : given.at("n_ubatch").get<std::uint32_t>();
    params.n_seq_max = given.at("n_seq_max");
    params.kv_unified = given.at("kv_unified") != variation.other_layout;
    if (variation.other_layout && !params.kv_unified) params.n_ctx *= params.n_seq_max;
    params.swa_full = given.at("swa_full");
    params.type_k = params.type_v = ElementType::f32;
    params.embeddings = given.at("embeddings");
    if (given.at("pooling") >= 0) params.pooling = static_cast<Pooling>(given.at("pooling").get<int>());
    params.n_threads = params.n_threads_batch = variation.n_threads;
    return params;
  }

  // As for the models themselves: the reference takes tanh-GELU from a half-precision table.
  double bound() const {
    static constexpr std::string_view kWithGelu[] = {"gemma3",      "gemma-embedding", "jina-bert-v2",
                                                     "modern-bert", "bert-full",       "mpt"};
    const std::string model = flow_.at("model");
    return std::find(std::begin(kWithGelu), std::end(kWithGelu), model) != std::end(kWithGelu) ? 2e-7 : 1e-9;
  }

  // What the flow gives, in its order. `is_first`: it is held to the reference.
  std::vector<Bits> run(const Variation& variation, bool is_first) {
    const CapturedLog quiet;
    InferenceContext context(model_named(flow_.at("model")), params(variation));
    std::vector<Bits> results;
    bound_ = bound();
    for (const Json& step : flow_.at("steps")) {
      const std::string op = step.at("op");
      if (op == "decode" || op == "encode") {
        compute(context, step, results, is_first);
      } else {
        operate(context, step);
      }
      if (HasFatalFailure()) break;
    }
    return results;
  }

  void compute(InferenceContext& context, const Json& step, std::vector<Bits>& results, bool is_first) {
    TestBatch batch;
    for (const Json& token : step.at("tokens")) {
      batch.add(token[0], token[1], token[2].get<std::vector<SequenceId>>(), token[3] != 0);
    }
    const DecodeStatus expected = step.at("result") == 1 ? DecodeStatus::no_room : DecodeStatus::ok;
    const DecodeStatus status =
        step.at("op") == "encode" ? context.encode(batch.view()) : context.decode(batch.view());
    ASSERT_EQ(status, expected);
    const auto take = [&](std::span<const float> row, std::size_t offset) {
      if (is_first) {
        const std::size_t n_cols = step.at("cols");
        EXPECT_LT(nmse(row, std::span(expected_).subspan(offset, n_cols)), bound_) << step.at("tokens");
      }
      results.push_back(bits_of(row));
    };
    const bool embeddings = flow_.at("context").at("embeddings");
    for (const Json& row : step.value("rows", Json::array())) {
      const std::ptrdiff_t index = row[0];
      take(embeddings ? context.embeddings(index) : context.logits(index), row[1]);
    }
    for (const Json& pooled : step.value("sequences", Json::array())) {
      take(context.sequence_embedding(pooled[0]), pooled[1]);
    }
  }

  void operate(InferenceContext& context, const Json& step) {
    Memory& memory = context.memory();
    const std::string op = step.at("op");
    if (op == "causal") return context.set_causal(step.at("value"));
    const std::int32_t sequence = step.at("seq");
    if (op == "remove") {
      EXPECT_EQ(memory.remove(sequence, step.at("p0"), step.at("p1")), step.at("result").get<bool>());
    } else if (op == "copy") {
      memory.copy(sequence, step.at("to"), step.at("p0"), step.at("p1"));
    } else if (op == "keep") {
      memory.keep(sequence);
    } else if (op == "add") {
      memory.add(sequence, step.at("p0"), step.at("p1"), step.at("delta"));
      bound_ = 1e-6;
    } else if (op == "divide") {
      memory.divide(sequence, step.at("p0"), step.at("p1"), step.at("by"));
      bound_ = 1e-6;
    } else if (op == "range") {
      EXPECT_EQ(memory.min_position(sequence), step.at("min").get<int>());
      EXPECT_EQ(memory.max_position(sequence), step.at("max").get<int>());
    } else {
      FAIL() << "unknown step " << step;
    }
  }

  // Not causal batches are never divided.
  bool can_be_divided() const {
    const auto has = [&](const char* op) {
      const Json& steps = flow_.at("steps");
      return std::any_of(steps.begin(), steps.end(), [&](const Json& step) { return step.at("op") == op; });
    };
    return !has("causal") && !has("encode") && model_named(flow_.at("model"))->hparams().causal;
  }
  bool shares_tokens() const {
    for (const Json& step : flow_.at("steps")) {
      for (const Json& token : step.value("tokens", Json::array())) {
        if (token[2].size() > 1) return true;
      }
    }
    return false;
  }

  Json flow_ = load_flows().at(GetParam());
  std::vector<float> expected_ = read_f32(data_dir() / "flows/flows.f32");
  double bound_ = 0;
};

TEST_P(Flow, GivesTheReferencesNumbersHoweverItIsComputed) {
  const std::vector<Bits> first = run({}, true);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(run({.n_threads = 2}, false), first) << "two threads";
  if (can_be_divided()) {
    EXPECT_EQ(run({.n_threads = 1, .n_ubatch = 3}, false), first) << "3 a micro-batch";
    EXPECT_EQ(run({.n_threads = 2, .n_ubatch = 17}, false), first) << "17 a micro-batch, two threads";
  }
  if (shares_tokens()) return;
  EXPECT_EQ(run({.other_layout = true}, false), first) << "the other layout";
}

INSTANTIATE_TEST_SUITE_P(All, Flow, ::testing::Range<std::size_t>(0, load_flows().size()),
                         [](const auto& tested) {
                           const Json flow = load_flows().at(tested.param);
                           std::string name =
                               flow.at("model").get<std::string>() + "_" + flow.at("name").get<std::string>();
                           const int pooling = flow.at("context").at("pooling");
                           if (pooling >= 0) name.append("_").append(std::to_string(pooling));
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace quipu::test
