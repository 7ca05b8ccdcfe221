// What tells architectures apart whose goldens are alike, since so small a model does not show it. The models
// here are other architectures' goldens under the name in question.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/edited_model.h"
#include "model/forward.h"
#include "quipu/error.h"

namespace quipu {
namespace {

using test::EditedModel;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

EditedModel golden_as(std::string_view golden, std::string_view architecture) {
  EditedModel edited(golden);
  edited.as(architecture);
  return edited;
}

Hparams with_layers(EditedModel edited, std::uint32_t n_layers) {
  return edited.set("block_count", n_layers).hparams();
}

std::vector<float> outputs_of(const EditedModel& edited) {
  const auto model = edited.load();
  return test::Forward(*model, edited.tokens().size()).run(edited.tokens(), 2);
}

std::vector<bool> rotating(const Hparams& hparams) {
  std::vector<bool> rotates;
  for (const LayerHparams& layer : hparams.layers) rotates.push_back(layer.rotates);
  return rotates;
}

std::vector<std::uint32_t> windows(const Hparams& hparams) {
  std::vector<std::uint32_t> sizes;
  for (const LayerHparams& layer : hparams.layers) sizes.push_back(layer.window);
  return sizes;
}

gguf::Array numbers(std::vector<std::uint32_t> values) {
  return gguf::Array(std::move(values));
}

const std::vector<float> kNoOutput(64 * 64, 0.0f), kNoDown(96 * 64, 0.0f);

TEST(Differences, OfDeciALayerWithoutHeadsHasOnlyAFeedForwardLayer) {
  EditedModel lacking = golden_as("llama", "deci");
  lacking.set("attention.head_count", numbers({4, 0})).set("attention.head_count_kv", numbers({2, 0}));
  for (const char* name : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output"})
    lacking.erase("blk.1." + std::string(name) + ".weight");
  EditedModel silent("llama");  // what its attention adds is 0
  EXPECT_EQ(outputs_of(lacking), outputs_of(silent.tensor("blk.1.attn_output.weight", {64, 64}, kNoOutput)));
  EXPECT_EQ(lacking.load()->cache_specs().size(), 1u);
}

TEST(Differences, OfDeciALayerWithoutKeysHasOnlyTheOutputMatrixOfAttention) {
  EditedModel linear = golden_as("llama", "deci");
  linear.set("attention.head_count_kv", numbers({2, 0}));
  linear.tensor("blk.1.attn_output.weight", {64, 64}, kNoOutput);
  for (const char* name : {"attn_q", "attn_k", "attn_v"})
    linear.erase("blk.1." + std::string(name) + ".weight");
  EditedModel silent("llama");
  EXPECT_EQ(outputs_of(linear), outputs_of(silent.tensor("blk.1.attn_output.weight", {64, 64}, kNoOutput)));
}

TEST(Differences, OfDeciALayerWithoutAnythingPassesItsInputOn) {
  EditedModel lacking = golden_as("llama", "deci"), silent("llama");
  lacking.set("attention.head_count", numbers({4, 0})).set("attention.head_count_kv", numbers({2, 0}));
  lacking.set("feed_forward_length", numbers({96, 0}));
  for (const char* name : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate",
                           "ffn_up", "ffn_down"})
    lacking.erase("blk.1." + std::string(name) + ".weight");
  silent.tensor("blk.1.attn_output.weight", {64, 64}, kNoOutput);
  silent.tensor("blk.1.ffn_down.weight", {96, 64}, kNoDown);
  EXPECT_EQ(outputs_of(lacking), outputs_of(silent));
}

TEST(Differences, ScoresOfMistral3GrowWithTheTemperatureOfTheirPosition) {
  EditedModel tempered = golden_as("llama", "mistral3");
  tempered.set("attention.temperature_scale", 0.1f).set("attention.temperature_length", 8u);
  const auto plain = outputs_of(EditedModel("llama"));
  const auto changed = outputs_of(tempered);
  const auto eight = static_cast<std::ptrdiff_t>(plain.size() / tempered.tokens().size() * 8);
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + eight, changed.begin()));  // there it is 1
  EXPECT_FALSE(std::equal(plain.begin() + eight, plain.end(), changed.begin() + eight));
}

TEST(Differences, OfSmolLm3EveryFourthLayerDoesNotRotate) {
  EXPECT_THAT(rotating(with_layers(golden_as("llama", "smollm3"), 8)),
              ElementsAre(true, true, true, false, true, true, true, false));
}

TEST(Differences, NanbeigeRunsItsLayersAgainWithCellsOfTheirOwn) {
  EditedModel looped = golden_as("llama", "nanbeige"), unrolled("llama");
  looped.set("num_loops", 2u).set("skip_loop_final_norm", true);
  unrolled.set("block_count", 4u);
  for (const std::string layer : {"0.", "1."}) {
    const std::string copy = layer == "0." ? "2." : "3.";
    const auto repeat = [&](const std::string& name, std::vector<std::uint64_t> dims) {
      unrolled.tensor("blk." + copy + name, std::move(dims), unrolled.values("blk." + layer + name));
    };
    for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) repeat(norm, {64});
    for (const char* matrix : {"attn_q.weight", "attn_output.weight"}) repeat(matrix, {64, 64});
    for (const char* matrix : {"attn_k.weight", "attn_v.weight"}) repeat(matrix, {64, 32});
    for (const char* matrix : {"ffn_gate.weight", "ffn_up.weight"}) repeat(matrix, {64, 96});
    repeat("ffn_down.weight", {96, 64});
  }
  EXPECT_EQ(looped.load()->cache_specs().size(), 4u);
  EXPECT_EQ(outputs_of(looped), outputs_of(unrolled));
}

TEST(Differences, NanbeigeNormsBetweenLoopsUnlessToldNotTo) {
  EditedModel looped = golden_as("llama", "nanbeige");
  looped.set("num_loops", 2u);
  const auto normed = outputs_of(looped);
  EXPECT_NE(outputs_of(looped.set("skip_loop_final_norm", true)), normed);
}

TEST(Differences, BaichuanOf32LayersRotates) {
  const Hparams hparams = with_layers(golden_as("llama", "baichuan"), 32);
  EXPECT_THAT(rotating(hparams), Each(true));
  EXPECT_EQ(hparams.max_alibi_bias, 0);
}

TEST(Differences, BaichuanOf40LayersHasAlibi) {
  const Hparams hparams = with_layers(golden_as("llama", "baichuan"), 40);
  EXPECT_THAT(rotating(hparams), Each(false));
  EXPECT_EQ(hparams.max_alibi_bias, 8);
}

TEST(Differences, OfExaone4TheModelOf64LayersHasWindowsAndRotatesOnlyThere) {
  EditedModel exaone = golden_as("llama", "exaone4");
  const Hparams hparams = with_layers(exaone.erase_key("attention.sliding_window_pattern"), 64);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(hparams.layers[i].window, i % 4 == 3 ? 0u : 16u) << i;
    EXPECT_EQ(hparams.layers[i].rotates, i % 4 != 3) << i;
  }
}

TEST(Differences, OfExaone4SmallerModelsHaveNoWindowsAndRotateEverywhere) {
  const Hparams hparams = with_layers(golden_as("llama", "exaone4"), 30);
  EXPECT_THAT(windows(hparams), Each(0u));
  EXPECT_THAT(rotating(hparams), Each(true));
}

TEST(Differences, OfGemma2And3TheModelOf27BDividesScoresByTheRootOfTheSharedWidth) {
  for (const auto& [name, n_layers] : {std::pair("gemma2", 46u), std::pair("gemma3", 62u)}) {
    EditedModel gemma = golden_as("gemma3", name);
    gemma.set("attention.key_length", 32u).set("attention.value_length", 32u);
    EXPECT_FLOAT_EQ(with_layers(gemma, n_layers).attention_scale, 0.25f) << name;  // 64 / 4 heads
    EXPECT_FLOAT_EQ(with_layers(gemma, n_layers - 1).attention_scale, 1 / std::sqrt(32.0f)) << name;
  }
}

TEST(Differences, GraniteTakesItsMultipliersFromTheFile) {
  for (const char* name : {"granite", "granitemoe", "granite_swa"}) {
    EditedModel granite = golden_as("llama", name);
    granite.set("embedding_scale", 12.0f).set("residual_scale", 0.22f).set("logit_scale", 16.0f);
    granite.set("attention.scale", 0.015625f).set("attention.sliding_window_pattern", numbers({0, 1}));
    const Hparams hparams = granite.hparams();
    EXPECT_EQ(hparams.input_scale, 12) << name;
    EXPECT_EQ(hparams.residual_scale, 0.22f) << name;
    EXPECT_EQ(hparams.logit_scale, 1.0f / 16) << name;
    EXPECT_EQ(hparams.attention_scale, 0.015625f) << name;
  }
}

TEST(Differences, MiniCpmHasMultipliersOfItsOwnWhereTheFileHasNone) {
  EditedModel minicpm = golden_as("llama", "minicpm");
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) minicpm.erase_key(key);
  const Hparams hparams = minicpm.hparams();
  EXPECT_EQ(hparams.input_scale, 12);
  EXPECT_FLOAT_EQ(hparams.residual_scale, 1.4f / std::sqrt(2.0f));
  EXPECT_EQ(hparams.logit_scale, 64.0f / 256);
}

TEST(Differences, GraniteThatWasNotTrainedWithRotationHasNone) {
  for (const char* name : {"granite", "granitemoe"}) {
    EditedModel granite = golden_as("llama", name);
    granite.set("rope.scaling.finetuned", false);
    EXPECT_THAT(rotating(granite.hparams()), Each(false)) << name;
  }
}

TEST(Differences, GraniteSwaListsTheLayersThatRotateAndThoseWithWindows) {
  EditedModel granite = golden_as("llama", "granite_swa");
  granite.set("attention.sliding_window_pattern", numbers({1, 0}));
  granite.set("attention.rope_pattern", numbers({0, 1}));
  EXPECT_THAT(windows(granite.hparams()), ElementsAre(16, 0));
  EXPECT_THAT(rotating(granite.hparams()), ElementsAre(false, true));
}

TEST(Differences, Grok2HasADenseLayerBesideTheExperts) {
  EditedModel grok = golden_as("llama-experts", "grok");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const char* norm : {"attn_output_norm.weight", "post_ffw_norm.weight"})
      grok.tensor(layer + norm, {64});
  }
  const auto experts_alone = outputs_of(grok);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    grok.tensor(layer + "ffn_gate.weight", {64, 96}).tensor(layer + "ffn_up.weight", {64, 96});
    grok.tensor(layer + "ffn_down.weight", {96, 64});
  }
  EXPECT_NE(outputs_of(grok), experts_alone);
}

TEST(Differences, SectionsOfQwen3VlAreInterleavedWhileTheyLast) {
  for (const auto& [golden, name] :
       {std::pair("qwen3", "qwen3vl"), std::pair("qwen3moe-experts", "qwen3vlmoe")}) {
    EditedModel qwen = golden_as(golden, name);
    qwen.set("rope.dimension_sections", numbers({4, 2, 2, 0}));
    EXPECT_THAT(qwen.hparams().rope.pair_dimensions, ElementsAre(0, 1, 2, 0, 1, 2, 0, 3)) << name;
  }
}

TEST(Differences, SectionsOfQwen2VlPaddleOcrAndHunyuanVlStandInARow) {
  for (const char* name : {"qwen2vl", "paddleocr", "hunyuan_vl"}) {
    EditedModel edited = golden_as("qwen3", name);
    edited.set("rope.dimension_sections", numbers({2, 3, 3, 0}));
    EXPECT_THAT(edited.hparams().rope.pair_dimensions, ElementsAre(0, 0, 1, 1, 1, 2, 2, 2)) << name;
  }
}

TEST(Differences, MissingSectionsAreNamed) {
  EditedModel paddle = golden_as("llama", "paddleocr");
  paddle.erase_key("rope.dimension_sections");
  try {
    paddle.hparams();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("'paddleocr.rope.dimension_sections'"));
  }
}

TEST(Differences, PanguNeedsABiasThatPaddleOcrMayLack) {
  EXPECT_NO_THROW(golden_as("qwen2", "paddleocr").load());
  EXPECT_THROW(golden_as("qwen2", "pangu-embedded").load(), Error);
}

TEST(Differences, OnlyLlamaOfItsLikesHasExperts) {
  EXPECT_EQ(golden_as("llama-experts", "mistral3").hparams().experts.n_experts, 4u);
  for (const char* name : {"xverse", "internlm2", "ernie4_5", "deci", "smollm3", "nanbeige"})
    EXPECT_EQ(golden_as("llama-experts", name).hparams().experts.n_experts, 0u) << name;
}

}  // namespace
}  // namespace quipu
