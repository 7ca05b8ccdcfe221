// Sequences of batches and memory operations against the reference's logits (tests/data/flows).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using Json = nlohmann::json;

Json load_flows() {
  return Json::parse(std::ifstream(data_dir() / "flows/flows.json"));
}

class Flow : public ::testing::TestWithParam<std::size_t> {
 protected:
  static ContextParams params(const Json& given) {
    ContextParams params = small_params();
    params.n_ctx = given.at("n_ctx");
    params.n_batch = given.at("n_batch");
    params.n_ubatch = given.at("n_ubatch");
    params.n_seq_max = given.at("n_seq_max");
    params.kv_unified = given.at("kv_unified");
    params.swa_full = given.at("swa_full");
    params.type_k = params.type_v = ElementType::f32;
    return params;
  }

  void decode(InferenceContext& context, const Json& step) const {
    TestBatch batch;
    for (const Json& token : step.at("tokens")) {
      batch.add(token[0], token[1], token[2].get<std::vector<SequenceId>>(), token[3] != 0);
    }
    const DecodeStatus expected = step.at("result") == 1 ? DecodeStatus::no_room : DecodeStatus::ok;
    ASSERT_EQ(context.decode(batch.view()), expected);
    if (!step.contains("rows")) return;
    const std::size_t n_cols = step.at("cols");
    for (const Json& row : step.at("rows")) {
      const std::ptrdiff_t index = row[0];
      const std::size_t offset = row[1];
      const auto wanted = std::span(expected_).subspan(offset, n_cols);
      EXPECT_LT(nmse(context.logits(index), wanted), bound_)
          << "row " << index << " of " << step.at("tokens");
    }
  }

  static void operate(Memory& memory, const Json& step) {
    const std::string op = step.at("op");
    const std::int32_t sequence = step.at("seq");
    if (op == "remove") {
      EXPECT_EQ(memory.remove(sequence, step.at("p0"), step.at("p1")), step.at("result").get<bool>());
    } else if (op == "copy") {
      memory.copy(sequence, step.at("to"), step.at("p0"), step.at("p1"));
    } else if (op == "keep") {
      memory.keep(sequence);
    } else if (op == "range") {
      EXPECT_EQ(memory.min_position(sequence), step.at("min").get<int>());
      EXPECT_EQ(memory.max_position(sequence), step.at("max").get<int>());
    } else {
      FAIL() << "unknown step " << step;
    }
  }

  Json flow_ = load_flows().at(GetParam());
  std::vector<float> expected_ = read_f32(data_dir() / "flows/flows.f32");
  double bound_ = flow_.at("model") == "gemma3" ? 2e-7 : 1e-9;  // as for the models themselves
};

TEST_P(Flow, GivesTheReferencesLogits) {
  const CapturedLog quiet;
  InferenceContext context(model_named(flow_.at("model")), params(flow_.at("context")));
  for (const Json& step : flow_.at("steps")) {
    if (step.at("op") == "decode") {
      decode(context, step);
    } else {
      operate(context.memory(), step);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Flow, ::testing::Range<std::size_t>(0, load_flows().size()),
                         [](const auto& tested) {
                           const Json flow = load_flows().at(tested.param);
                           std::string name =
                               flow.at("model").get<std::string>() + "_" + flow.at("name").get<std::string>();
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace quipu::test
