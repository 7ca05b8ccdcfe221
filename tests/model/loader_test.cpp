// Loading: what is refused, with which words, and what a loaded model knows of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gguf/writer.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/tensor_check.h"
#include "quipu/error.h"
#include "support/files.h"
#include "support/golden.h"

namespace quipu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const LoadedModel> load(const test::Golden& golden, const ModelLoadOptions& options = {}) {
  return LoadedModel::load(test::golden_model(golden), "tiny", options);
}

/// The message with which a model is refused; empty if it loads.
std::string refusal(const test::Golden& golden) {
  try {
    load(golden);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class Loader : public testing::Test {
 protected:
  void erase_tensor(std::string_view name) {
    std::erase_if(golden_.tensors, [&](const test::GoldenTensor& tensor) { return tensor.name == name; });
  }
  test::GoldenTensor& tensor(std::string_view name) {
    return *std::find_if(golden_.tensors.begin(), golden_.tensors.end(),
                         [&](const auto& t) { return t.name == name; });
  }

  test::Golden golden_ = test::load_golden("llama");
};

TEST_F(Loader, NamesAMissingTensorAndItsShape) {
  erase_tensor("blk.1.ffn_up.weight");
  EXPECT_THAT(refusal(golden_), AllOf(HasSubstr("tiny"), HasSubstr("'blk.1.ffn_up.weight'"),
                                      HasSubstr("[96, 64]"), HasSubstr("missing")));
}

TEST_F(Loader, NamesAMisshapenTensorWithBothShapes) {
  tensor("blk.0.attn_k.weight").dims = {64, 33};
  EXPECT_THAT(refusal(golden_),
              AllOf(HasSubstr("'blk.0.attn_k.weight'"), HasSubstr("[32, 64]"), HasSubstr("[33, 64]")));
}

TEST_F(Loader, NamesATensorOfATypeThatItCannotHave) {
  tensor("blk.0.attn_norm.weight").type = ElementType::i32;
  EXPECT_THAT(refusal(golden_), AllOf(HasSubstr("'blk.0.attn_norm.weight'"), HasSubstr("I32")));
}

std::vector<std::string> problems_of(const test::Golden& golden) {
  const std::vector<std::byte> bytes = test::golden_model(golden);
  std::vector<std::string> messages;
  for (const Error& problem : check_model(gguf::Reader::from_memory(bytes, "tiny")).problems)
    messages.push_back(problem.message());
  return messages;
}

TEST_F(Loader, ListsAllProblemsOfAFileAtOnce) {
  EXPECT_THAT(problems_of(golden_), IsEmpty());
  tensor("blk.0.attn_norm.weight").type = ElementType::i32;
  tensor("token_embd.weight").type = ElementType::i32;
  erase_tensor("blk.1.ffn_up.weight");
  EXPECT_THAT(
      problems_of(golden_),
      ElementsAre(AllOf(HasSubstr("'token_embd.weight' must be a type of matrices"), HasSubstr("I32")),
                  AllOf(HasSubstr("'blk.0.attn_norm.weight' must be F32, F16 or BF16"), HasSubstr("I32")),
                  HasSubstr("'blk.1.ffn_up.weight' [96, 64] is missing")));
  golden_.metadata.set("llama.rope.scaling.type", std::string("spiral"));
  EXPECT_THAT(problems_of(golden_), ElementsAre(HasSubstr("'spiral'")));
}

TEST_F(Loader, LoadsWithTensorsThatItDoesNotKnow) {
  golden_.tensors.push_back({"vision.patch.weight", ElementType::f32, {8, 8}});
  EXPECT_EQ(refusal(golden_), "");
}

TEST_F(Loader, TakesTheTokenEmbeddingsWhereThereIsNoHead) {
  erase_tensor("output.weight");
  const auto model = load(golden_);
  test::Forward forward(*model, 1);
  const std::int32_t token = 3;
  EXPECT_EQ(forward.run({&token, 1}).size(), model->hparams().n_vocab);
}

TEST_F(Loader, NamesAnUnknownArchitecture) {
  golden_.metadata.set("general.architecture", std::string("mamba9"));
  golden_.metadata.set("mamba9.vocab_size", std::uint32_t{160});
  EXPECT_THAT(refusal(golden_), HasSubstr("'mamba9'"));
}

TEST_F(Loader, NamesAnUnknownRotationScaling) {
  golden_.metadata.set("llama.rope.scaling.type", std::string("spiral"));
  EXPECT_THAT(refusal(golden_), HasSubstr("'spiral'"));
}

TEST_F(Loader, NamesKeysThatAreMissingOrOutOfRange) {
  const auto refused_with = [&](std::string key, gguf::Value value) {
    test::Golden changed = golden_;
    changed.metadata.set(key, std::move(value));
    const std::string message = refusal(changed);
    EXPECT_THAT(message, HasSubstr("'" + key + "'"));
  };
  refused_with("llama.block_count", std::uint32_t{0});
  refused_with("llama.block_count", std::uint32_t{4000000000});
  refused_with("llama.embedding_length", std::uint32_t{0});
  refused_with("llama.embedding_length", std::string("wide"));
  refused_with("llama.attention.head_count", std::uint32_t{0});
  refused_with("llama.rope.dimension_count", std::uint32_t{17});
  refused_with("llama.rope.dimension_count", std::uint32_t{18});
  refused_with("llama.rope.freq_base", -1.0f);
  refused_with("llama.attention.layer_norm_rms_epsilon", 0.0f);
  refused_with("llama.rope.scaling.factor", -2.0f);
}

TEST_F(Loader, RefusesHeadsThatKeyHeadsDoNotDivide) {
  golden_.metadata.set("llama.attention.head_count_kv", std::uint32_t{3});
  EXPECT_THAT(refusal(golden_), HasSubstr("4 query heads"));
}

TEST_F(Loader, RefusesMoreExpertsInUseThanThereAre) {
  golden_ = test::load_golden("llama-experts");
  golden_.metadata.set("llama.expert_used_count", std::uint32_t{5});
  EXPECT_THAT(refusal(golden_), HasSubstr("'llama.expert_used_count'"));
}

TEST_F(Loader, RefusesFrequencyFactorsThatAreNotPositive) {
  golden_ = test::load_golden("llama-v-freq-factors");
  tensor("rope_freqs.weight").name = "unused";
  std::vector<float> factors(8, 0.0f);
  std::vector<gguf::TensorToWrite> tensors;
  std::vector<std::vector<float>> values;
  values.reserve(golden_.tensors.size());
  for (const test::GoldenTensor& t : golden_.tensors) {
    values.push_back(test::golden_weights(t, golden_.seed));
    tensors.push_back(
        gguf::tensor_in_memory(t.name, ElementType::f32, t.dims, std::as_bytes(std::span(values.back()))));
  }
  tensors.push_back(
      gguf::tensor_in_memory("rope_freqs.weight", ElementType::f32, {8}, std::as_bytes(std::span(factors))));
  EXPECT_THROW(LoadedModel::load(gguf::write_memory(golden_.metadata, tensors), "tiny"), Error);
}

TEST_F(Loader, ReportsProgressUpToTheEnd) {
  float last = 0;
  bool ascending = true;
  load(golden_, {.progress = [&](float share) {
         ascending = ascending && share >= last;
         last = share;
         return true;
       }});
  EXPECT_TRUE(ascending);
  EXPECT_FLOAT_EQ(last, 1.0f);
}

TEST_F(Loader, StopsWhenProgressSaysSo) {
  EXPECT_THROW(load(golden_, {.progress = [](float) { return false; }}), Error);
}

TEST_F(Loader, GivesTheSameLogitsMappedAndRead) {
  const test::TempDir folder;
  test::write_golden_model(folder / "tiny.gguf", golden_);
  const auto logits = [&](bool use_mmap) {
    const auto model = LoadedModel::load(folder / "tiny.gguf", {.use_mmap = use_mmap, .progress = {}});
    return test::Forward(*model, golden_.tokens.size()).run(golden_.tokens);
  };
  EXPECT_EQ(logits(true), logits(false));
}

TEST_F(Loader, GivesTheSameLogitsForASplitFile) {
  const test::TempDir folder;
  const gguf::Reader whole = gguf::Reader::open([&] {
    test::write_golden_model(folder / "tiny.gguf", golden_);
    return folder / "tiny.gguf";
  }());
  std::vector<gguf::TensorToWrite> tensors;
  for (const gguf::TensorInfo& info : whole.tensors()) {
    tensors.push_back(gguf::tensor_in_memory(info.name, info.type, info.dims, whole.data(info)));
  }
  const auto shards = gguf::write_split(folder / "split", whole.metadata(), tensors, 3);
  const auto logits = [&](const std::filesystem::path& path) {
    const auto model = LoadedModel::load(path);
    return test::Forward(*model, golden_.tokens.size()).run(golden_.tokens);
  };
  EXPECT_EQ(logits(shards.front()), logits(folder / "tiny.gguf"));
}

TEST_F(Loader, GivesTheSameLogitsForAFileOfAnotherAlignment) {
  const auto logits = [&] {
    const auto model = load(golden_);
    return test::Forward(*model, golden_.tokens.size()).run(golden_.tokens);
  };
  const std::vector<float> expected = logits();
  golden_.metadata.set("general.alignment", std::uint32_t{64});
  EXPECT_EQ(logits(), expected);
}

TEST_F(Loader, CountsParametersAndBytes) {
  const auto model = load(golden_);
  std::uint64_t n_params = 0;
  for (const test::GoldenTensor& t : golden_.tensors) {
    std::uint64_t n = 1;
    for (const std::uint64_t dim : t.dims) n *= dim;
    n_params += n;
  }
  EXPECT_EQ(model->n_params(), n_params);
  EXPECT_EQ(model->file_bytes(), n_params * sizeof(float));
  EXPECT_GE(model->device_bytes(), model->file_bytes());
}

TEST(Hparams, ReadsWindowsByPatternWithTheArchitecturesOwnPeriodAsDefault) {
  test::Golden golden = test::load_golden("gemma3-v-deep");
  const auto windows = [&] {
    const auto model = load(golden);
    std::vector<bool> windowed;
    for (const LayerHparams& layer : model->hparams().layers) windowed.push_back(layer.window > 0);
    return windowed;
  };
  EXPECT_EQ(windows(), (std::vector<bool>{true, false, true, false, true, false}));
  golden.metadata.set("gemma3.attention.sliding_window_pattern",
                      gguf::Array(std::vector<std::uint32_t>{0, 0, 1, 1, 0, 1}));
  EXPECT_EQ(windows(), (std::vector<bool>{false, false, true, true, false, true}));
  golden.metadata.set("gemma3.attention.sliding_window_pattern",
                      gguf::Array(std::vector<gguf::Bool>{{true}, {false}, {true}, {true}, {true}, {false}}));
  EXPECT_EQ(windows(), (std::vector<bool>{true, false, true, true, true, false}));
}

/// Every block format gives a model near the F32 one: the whole path from file to logits, for each type.
class ModelTypes : public testing::TestWithParam<ElementType> {};

TEST_P(ModelTypes, StaysNearTheF32Model) {
  const test::Golden golden = test::widened(test::load_golden("qwen3"), 8);
  const auto logits = [&](std::optional<ElementType> type) {
    const auto model = LoadedModel::load(test::golden_model(golden, type), "wide");
    return test::Forward(*model, golden.tokens.size()).run(golden.tokens, 2);
  };
  const std::vector<float> exact = logits(std::nullopt);
  const bool coarse = GetParam() == ElementType::q2_k || GetParam() == ElementType::q3_k;
  EXPECT_LT(test::nmse(logits(GetParam()), exact), coarse ? 0.5 : 0.05);
}

TEST_P(ModelTypes, GivesTheSameBitsTokenByToken) {
  const test::Golden golden = test::widened(test::load_golden("qwen3moe-experts"), 8);
  const auto model = LoadedModel::load(test::golden_model(golden, GetParam()), "wide");
  test::Forward whole(*model, golden.tokens.size(), ElementType::f16);
  test::Forward stepwise(*model, golden.tokens.size(), ElementType::f16);
  std::vector<float> logits;
  for (const std::int32_t& token : golden.tokens) {
    const std::vector<float> row = stepwise.run({&token, 1}, 2);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  EXPECT_EQ(logits, whole.run(golden.tokens, 1));
}

INSTANTIATE_TEST_SUITE_P(AllTypes, ModelTypes,
                         testing::Values(ElementType::f16, ElementType::bf16, ElementType::q4_0,
                                         ElementType::q4_1, ElementType::q5_0, ElementType::q5_1,
                                         ElementType::q8_0, ElementType::q2_k, ElementType::q3_k,
                                         ElementType::q4_k, ElementType::q5_k, ElementType::q6_k),
                         [](const auto& test) { return std::string(quipu::info(test.param).name); });

}  // namespace
}  // namespace quipu
