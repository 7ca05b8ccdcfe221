// Contexts of models that were loaded without data: what they would take, and nothing else.
#include <gtest/gtest.h>

#include "context/state/context_state.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

struct Case {
  const char* name;
  const char* model;
  ElementType cache = ElementType::f16;
  std::optional<Pooling> pooling = {};
  bool swa_full = true;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class DryRun : public ::testing::TestWithParam<Case> {
 protected:
  static ContextParams params() {
    ContextParams params = small_params();
    params.n_ctx = 1024;
    params.n_seq_max = 3;
    params.type_k = params.type_v = GetParam().cache;
    params.pooling = GetParam().pooling;
    params.swa_full = GetParam().swa_full;
    return params;
  }
  static std::shared_ptr<const LoadedModel> without_data() {
    const std::string name = GetParam().model;
    if (name == "quipu-mini") {
      return LoadedModel::load(std::filesystem::path(QUIPU_SOURCE_DIR) / "models/quipu-mini.gguf",
                               {.without_data = true});
    }
    return LoadedModel::load(golden_model(load_golden(name)), name, {.without_data = true});
  }
};

TEST_P(DryRun, FiguresAreThoseOfARealOne) {
  const CapturedLog quiet;
  const auto model = without_data(), real_model = model_named(GetParam().model);
  const InferenceContext dry(model, params()), real(real_model, params());
  EXPECT_EQ(model->device_bytes(), real_model->device_bytes());
  EXPECT_EQ(dry.memory_bytes(), real.memory_bytes());
  EXPECT_EQ(dry.compute_bytes(), real.compute_bytes());
  EXPECT_EQ(dry.output_bytes(), real.output_bytes());
}

TEST_P(DryRun, ComputesNothing) {
  const CapturedLog quiet;
  InferenceContext context(without_data(), params());
  EXPECT_THROW(context.decode(TestBatch().add(1, 0, {0}).view()), Error);
  EXPECT_THROW(context.encode(TestBatch().add(1, 0, {0}).view()), Error);
  EXPECT_THROW(state_access(context), Error);
  context.memory().clear(true);
  EXPECT_EQ(context.memory().max_position(0), -1);
}

INSTANTIATE_TEST_SUITE_P(
    Models, DryRun,
    ::testing::Values(Case{"KeysAndValues", "quipu-mini"}, Case{"Quantized", "quipu-mini", ElementType::q4_0},
                      Case{"Windows", "gemma3", ElementType::f16, {}, false},
                      Case{"Experts", "qwen3moe-experts"}, Case{"Latent", "deepseek2-experts"},
                      Case{"Encoder", "bert", ElementType::f16, Pooling::mean}, Case{"EncoderDecoder", "t5"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Figures, AreWhatARunTakes) {
  const auto model = model_named("llama");
  InferenceContext context(model, small_params());
  const std::size_t memory = context.memory_bytes(), compute = context.compute_bytes();
  EXPECT_EQ(context.output_bytes(), 0U);
  ASSERT_EQ(context.decode({.tokens = some_tokens(*model, 256)}), DecodeStatus::ok);
  EXPECT_EQ(context.memory_bytes(), memory);
  EXPECT_EQ(context.compute_bytes(), compute);
  EXPECT_GE(context.output_bytes(), model->hparams().n_vocab * sizeof(float));
}

}  // namespace
}  // namespace quipu::test
