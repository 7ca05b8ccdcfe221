// What architectures' descriptions promise beyond the goldens: other names for the same weights, options that
// files may take, what a loaded model says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/arch/blocks/position_bias.h"
#include "model/edited_model.h"
#include "model/forward.h"
#include "quipu/error.h"

namespace quipu {
namespace {

using test::EditedModel;
using test::joined;
using testing::AllOf;
using testing::HasSubstr;

std::vector<float> outputs_of(const EditedModel& edited) {
  const auto model = edited.load();
  test::Forward forward(*model, edited.tokens().size());
  if (!model->cross_cache_specs().empty()) forward.encode(edited.tokens());
  return forward.run(edited.tokens(), 2);
}

std::string refusal(const EditedModel& edited) {
  try {
    edited.load();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

/// Some goldens are not in the repository.
bool is_there(std::string_view golden) {
  return std::ranges::count(test::all_golden_names(), golden) != 0;
}

std::shared_ptr<const LoadedModel> load(std::string_view golden) {
  return EditedModel(golden).load();
}

TEST(Architectures, QueriesKeysAndValuesMayBeOneMatrix) {
  EditedModel fused("bert-full");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const std::string kind : {".weight", ".bias"}) {
      const auto values = joined(fused.values(layer + "attn_q" + kind), fused.values(layer + "attn_k" + kind),
                                 fused.values(layer + "attn_v" + kind));
      if (kind == ".weight") {
        fused.tensor(layer + "attn_qkv.weight", {64, 128}, values);
      } else {
        fused.tensor(layer + "attn_qkv.bias", {128}, values);
      }
      for (const char* part : {"attn_q", "attn_k", "attn_v"}) fused.erase(layer + part + kind);
    }
  }
  EXPECT_EQ(outputs_of(fused), outputs_of(EditedModel("bert-full")));
}

TEST(Architectures, AGateMayStandBeforeUpInOneMatrix) {
  EditedModel fused("jina-bert-v2");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    const auto values =
        joined(fused.values(layer + "ffn_gate.weight"), fused.values(layer + "ffn_up.weight"));
    fused.tensor(layer + "ffn_up.weight", {64, 192}, values).erase(layer + "ffn_gate.weight");
  }
  EXPECT_EQ(outputs_of(fused), outputs_of(EditedModel("jina-bert-v2")));
}

TEST(Architectures, LatentKeysAndValuesMayBeExpandedForTheCache) {
  constexpr std::size_t kHeads = 4, kRank = 32, kPlain = 16, kValue = 16;
  EditedModel expanded("deepseek2-experts");
  expanded.set("attention.key_length_mla", 0u).set("attention.value_length_mla", 0u);
  expanded.set("attention.key_length", 32u).set("attention.value_length", 16u);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    const std::vector<float> k_b = expanded.values(layer + "attn_k_b.weight");  // [heads, rank, plain]
    const std::vector<float> v_b = expanded.values(layer + "attn_v_b.weight");  // [heads, value, rank]
    std::vector<float> kv_b;
    for (std::size_t head = 0; head < kHeads; ++head) {
      for (std::size_t i = 0; i < kPlain; ++i) {
        for (std::size_t r = 0; r < kRank; ++r) kv_b.push_back(k_b[(head * kRank + r) * kPlain + i]);
      }
      const auto begin = v_b.begin() + static_cast<std::ptrdiff_t>(head * kValue * kRank);
      kv_b.insert(kv_b.end(), begin, begin + static_cast<std::ptrdiff_t>(kValue * kRank));
    }
    expanded.erase(layer + "attn_k_b.weight").erase(layer + "attn_v_b.weight");
    expanded.tensor(layer + "attn_kv_b.weight", {kRank, kHeads * (kPlain + kValue)}, kv_b);
  }
  EXPECT_LT(test::nmse(outputs_of(expanded), outputs_of(EditedModel("deepseek2-experts"))), 1e-11);
}

/// Each expert's rows of a, then its rows of b.
std::vector<float> joined_experts(const std::vector<float>& a, const std::vector<float>& b,
                                  std::size_t n_experts) {
  std::vector<float> both;
  const auto size = static_cast<std::ptrdiff_t>(a.size() / n_experts);
  for (auto i = a.begin(), j = b.begin(); i != a.end(); i += size, j += size) {
    both.insert(both.end(), i, i + size);
    both.insert(both.end(), j, j + size);
  }
  return both;
}

TEST(Architectures, GatesOfExpertsMayStandInTheMatrixOfUp) {
  if (!is_there("cohere2moe-experts")) GTEST_SKIP() << "no reference data";
  EditedModel merged("cohere2moe-experts");
  merged.tensor("blk.1.ffn_gate_up_exps.weight", {64, 192, 4},
                joined_experts(merged.values("blk.1.ffn_gate_exps.weight"),
                               merged.values("blk.1.ffn_up_exps.weight"), 4));
  merged.erase("blk.1.ffn_gate_exps.weight").erase("blk.1.ffn_up_exps.weight");
  EXPECT_EQ(outputs_of(merged), outputs_of(EditedModel("cohere2moe-experts")));
}

TEST(Architectures, Cohere2MoeHasTheNormThatItsEpsilonIsOf) {
  if (!is_there("cohere2moe-experts")) GTEST_SKIP() << "no reference data";
  EditedModel layer_norms("cohere2moe-experts");
  layer_norms.erase_key("attention.layer_norm_rms_epsilon");
  EXPECT_TRUE(layer_norms.load()->hparams().layer_norms);
  EXPECT_FALSE(EditedModel("cohere2moe-experts").load()->hparams().layer_norms);
}

TEST(Architectures, Mistral4MayHaveATemperature) {
  EditedModel plain_model("deepseek2-experts"), tempered("deepseek2-experts");
  plain_model.as("mistral4");
  tempered.as("mistral4");
  tempered.set("attention.temperature_scale", 0.1f).set("attention.temperature_length", 8u);
  const auto plain = outputs_of(plain_model);
  const auto changed = outputs_of(tempered);
  const std::size_t width = plain.size() / tempered.tokens().size();
  const auto eight = static_cast<std::ptrdiff_t>(8 * width);  // the temperature is 1 before position 8
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + eight, changed.begin()));
  EXPECT_FALSE(std::equal(plain.begin() + eight, plain.end(), changed.begin() + eight));
}

TEST(Architectures, OfStep35AndItsKindTheTensorsSayWhichLayersHaveExperts) {
  if (!is_there("step35-experts")) GTEST_SKIP() << "no reference data";
  EditedModel step("step35-experts");
  step.tensor("blk.0.ffn_gate.weight", {64, 96}).tensor("blk.0.ffn_up.weight", {64, 96});
  EXPECT_NE(refusal(EditedModel("step35-experts").tensor("blk.1.ffn_gate_inp.weight", {64, 4})), "");
  step.tensor("blk.0.ffn_down.weight", {96, 64}).tensor("blk.1.ffn_gate_inp.weight", {64, 4});
  for (const char* name : {"blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight"})
    step.tensor(name, {64, 96, 4});
  step.tensor("blk.1.ffn_down_exps.weight", {96, 64, 4});
  EXPECT_NE(outputs_of(step), outputs_of(EditedModel("step35-experts")));
  const auto unbounded = outputs_of(step);
  step.set("swiglu_clamp_exp", gguf::Array(std::vector<float>{0, 0.01f}));
  EXPECT_NE(outputs_of(step), unbounded);
}

TEST(Architectures, Llama4WindowsAreChunksAndItsQueriesAreNormedUnlessItHas128Experts) {
  if (!is_there("llama4-experts")) GTEST_SKIP() << "no reference data";
  const auto model = EditedModel("llama4-experts").load();
  std::vector<std::uint32_t> windows;
  for (const LayerCacheSpec& spec : model->cache_specs()) windows.push_back(spec.window);
  EXPECT_EQ(windows, (std::vector<std::uint32_t>{8192, 0, 8192, 0}));
  EXPECT_TRUE(model->hparams().plain_qk_norms);
  EXPECT_FALSE(model->key_rotation(3, {}));
  EditedModel without("llama4-experts");
  without.set("attention.sliding_window", 0u);
  EXPECT_TRUE(without.load()->key_rotation(3, {}));
}

/// Gemma 4 with layers 3 (windowed) and 4 (not) that read the cells of layers 2 and 1.
EditedModel gemma4_that_shares() {
  EditedModel shared("gemma4");
  shared.set("attention.sliding_window_pattern", gguf::Array(std::vector<std::uint32_t>{1, 0, 1, 1, 0}));
  shared.set("attention.shared_kv_layers", 2u);
  return shared;
}

TEST(Architectures, Gemma4LayersMayReadTheCellsOfEarlierOnes) {
  if (!is_there("gemma4")) GTEST_SKIP() << "no reference data";
  EditedModel shared = gemma4_that_shares();
  const auto before = outputs_of(shared);
  for (const std::string layer : {"blk.3.", "blk.4."}) {
    shared.erase(layer + "attn_k.weight").erase(layer + "attn_k_norm.weight");
  }
  EXPECT_EQ(outputs_of(shared), before);
  const auto model = shared.load();
  EXPECT_EQ(model->cache_specs().size(), 3u);
  EXPECT_EQ(model->hparams().layers[3].cache_of, 2u);
  EXPECT_EQ(model->hparams().layers[4].cache_of, 1u);

  test::Forward stepwise(*model, shared.tokens().size());
  std::vector<float> outputs;
  for (const std::int32_t& token : shared.tokens()) {
    const std::vector<float> row = stepwise.run({&token, 1}, 2);
    outputs.insert(outputs.end(), row.begin(), row.end());
  }
  EXPECT_EQ(outputs, before);
}

TEST(Architectures, Gemma4WindowsMayHaveHeadsOfTheirOwnSize) {
  if (!is_there("gemma4")) GTEST_SKIP() << "no reference data";
  EditedModel wide("gemma4");
  wide.set("attention.key_length", 32u).set("attention.value_length", 32u);
  wide.tensor("blk.4.attn_q.weight", {64, 128}).tensor("blk.4.attn_k.weight", {64, 64});
  wide.tensor("blk.4.attn_q_norm.weight", {32}).tensor("blk.4.attn_k_norm.weight", {32});
  wide.tensor("blk.4.attn_output.weight", {128, 64}).tensor("rope_freqs.weight", {16});
  const auto model = wide.load();
  EXPECT_EQ(model->cache_specs()[3].k_dim, 16u);
  EXPECT_EQ(model->cache_specs()[4].k_dim, 32u);
  EXPECT_EQ(outputs_of(wide).size(), 32u * 160u);
}

TEST(Architectures, T5LayersWithoutPositionBiasesTakeTheFirstOnes) {
  EditedModel shared("t5"), repeated("t5");
  for (const std::string side : {"enc.", "dec."}) {
    shared.erase(side + "blk.1.attn_rel_b.weight");
    repeated.tensor(side + "blk.1.attn_rel_b.weight", {4, 8},
                    repeated.values(side + "blk.0.attn_rel_b.weight"));
  }
  EXPECT_EQ(outputs_of(shared), outputs_of(repeated));
  EXPECT_NE(outputs_of(shared), outputs_of(EditedModel("t5")));
}

TEST(Architectures, T5MayHaveAGate) {
  // A gate of zeros closes the layer, as a "down" of zeros does.
  const std::vector<float> zeros(96 * 64, 0.0f);
  EditedModel gated("t5"), closed("t5");
  for (const std::string layer : {"enc.blk.0.", "enc.blk.1.", "dec.blk.0.", "dec.blk.1."}) {
    gated.tensor(layer + "ffn_gate.weight", {64, 96}, zeros);
    closed.tensor(layer + "ffn_down.weight", {96, 64}, zeros);
  }
  EXPECT_EQ(outputs_of(gated), outputs_of(closed));
}

TEST(Architectures, T5DecodersMayHaveTheirOwnNumberOfLayers) {
  EditedModel shallow("t5");
  shallow.set("decoder_block_count", 1u);
  const auto model = shallow.load();
  EXPECT_EQ(model->cache_specs().size(), 1u);
  EXPECT_EQ(model->cross_cache_specs().size(), 1u);
  EXPECT_EQ(model->encoder_cache_specs().size(), 2u);
  EXPECT_NE(outputs_of(shallow), outputs_of(EditedModel("t5")));
}

TEST(Architectures, LayersOfNextTokenPredictionAreLeftOut) {
  EditedModel with_more("deepseek2-experts");
  with_more.set("block_count", 3u).set("nextn_predict_layers", 1u);
  with_more.tensor("blk.2.nextn.eh_proj.weight", {128, 64});
  EXPECT_EQ(outputs_of(with_more), outputs_of(EditedModel("deepseek2-experts")));
}

TEST(Architectures, ModernBertsFirstLayerOfEachPeriodSeesEverything) {
  EditedModel pattern("modern-bert-v-deep");
  pattern.set("attention.sliding_window_pattern", 3u);
  const auto model = pattern.load();
  std::vector<bool> windowed;
  for (const LayerHparams& layer : model->hparams().layers) windowed.push_back(layer.window > 0);
  EXPECT_EQ(windowed, (std::vector<bool>{false, true, true, false, true, true}));
}

TEST(Architectures, ModernBertMayHaveAnotherActivation) {
  EditedModel silu("modern-bert");
  silu.set("hidden_activation", std::string("silu"));
  EXPECT_NE(outputs_of(silu), outputs_of(EditedModel("modern-bert")));
  silu.set("hidden_activation", std::string("gelu"));
  EXPECT_EQ(outputs_of(silu), outputs_of(EditedModel("modern-bert")));
}

TEST(Architectures, WithoutALargestBiasThereIsNoAlibi) {
  EditedModel plain("mpt"), tiny("mpt");
  plain.set("attention.max_alibi_bias", 0.0f).tensor("position_embd.weight", {64, 128});
  tiny.tensor("position_embd.weight", {64, 128});
  EXPECT_NE(outputs_of(plain), outputs_of(tiny));
  EXPECT_EQ(plain.load()->position_limit(), 128u);
  EXPECT_FALSE(plain.load()->can_shift());
}

TEST(Architectures, UnsupportedFeaturesAreNamed) {
  const auto with_key = [](std::string_view golden, std::string_view key, auto value) {
    return refusal(EditedModel(golden).set(key, value));
  };
  EXPECT_THAT(with_key("deepseek2-experts", "expert_gating_func", 9u),
              AllOf(HasSubstr("'deepseek2.expert_gating_func'"), HasSubstr("9")));
  EXPECT_THAT(with_key("bert", "pooling_type", 9u), HasSubstr("'bert.pooling_type'"));
  EXPECT_THAT(with_key("modern-bert", "hidden_activation", std::string("swish9")), HasSubstr("swish9"));
  EXPECT_THAT(with_key("t5", "attention.relative_buckets_count", 9u), HasSubstr("relative_buckets_count"));
  EXPECT_THAT(refusal(EditedModel("mpt").tensor("blk.1.ffn.act.scales", {96})),
              HasSubstr("'blk.1.ffn.act.scales'"));
}

TEST(Architectures, KeysThatContradictEachOtherAreNamed) {
  const auto with_key = [](std::string_view golden, std::string_view key, std::uint32_t value) {
    return refusal(EditedModel(golden).set(key, value));
  };
  EXPECT_THAT(with_key("deepseek2-experts-v-groups", "expert_group_count", 3), HasSubstr("3 groups"));
  EXPECT_THAT(with_key("deepseek2-experts", "attention.key_length_mla", 16), HasSubstr("16 elements"));
  EXPECT_THAT(with_key("deepseek2-experts", "nextn_predict_layers", 2), HasSubstr("nextn_predict_layers"));
  EXPECT_THAT(with_key("t5", "decoder_start_token_id", 160), HasSubstr("decoder_start_token_id"));
  EXPECT_THAT(with_key("modern-bert", "attention.key_length", 64), HasSubstr("attn_qkv"));
  EXPECT_THAT(with_key("gemma-embedding", "dense_3_feat_in", 32), HasSubstr("dense_3_feat_in"));
}

TEST(Architectures, AMissingTensorOfALatentLayerIsNamed) {
  EXPECT_THAT(refusal(EditedModel("deepseek2-experts").erase("blk.1.attn_k_b.weight")),
              AllOf(HasSubstr("'blk.1.attn_k_b.weight'"), HasSubstr("[4, 32, 16]")));
}

TEST(LoadedModel, KnowsWhatItKeepsAndGives) {
  const auto decoder = load("deepseek2-experts");
  EXPECT_TRUE(decoder->has_memory() && decoder->has_decoder() && decoder->has_logits());
  EXPECT_FALSE(decoder->has_encoder());
  EXPECT_TRUE(decoder->can_shift());

  const auto encoder = load("bert-v-bias");
  EXPECT_FALSE(encoder->has_memory() || encoder->has_encoder() || encoder->has_logits());
  EXPECT_TRUE(encoder->has_decoder());
  EXPECT_FALSE(encoder->hparams().causal);
  EXPECT_EQ(encoder->hparams().pooling, Pooling::mean);
  EXPECT_EQ(encoder->position_limit(), 128u);

  const auto both = load("t5");
  EXPECT_TRUE(both->has_memory() && both->has_encoder() && both->has_decoder() && both->has_logits());
  EXPECT_EQ(both->hparams().decoder_start_token, 0u);

  const auto half = load("t5encoder");
  EXPECT_TRUE(half->has_encoder());
  EXPECT_FALSE(half->has_memory() || half->has_decoder() || half->has_logits());
}

TEST(LoadedModel, CachesCompressedVectorsOfLatentAttention) {
  const auto model = load("deepseek2-experts");
  for (const LayerCacheSpec& spec : model->cache_specs()) {
    EXPECT_EQ(spec.n_kv_heads, 1u);
    EXPECT_EQ(spec.k_dim, 48u);
    EXPECT_EQ(spec.v_dim, 32u);
  }
}

TEST(LoadedModel, SaysHowKeysTurn) {
  const auto latent = load("deepseek2-experts")->key_rotation(1, {});
  ASSERT_TRUE(latent);
  EXPECT_EQ(latent->first, 32u);
  EXPECT_EQ(latent->frequencies.size(), 8u);
  EXPECT_EQ(latent->style, RopeStyle::interleaved);

  const auto windowed = load("gemma3")->key_rotation(0, {.base = 500.0f});
  ASSERT_TRUE(windowed);
  EXPECT_EQ(windowed->style, RopeStyle::halves);
  EXPECT_NEAR(windowed->frequencies[1], std::pow(10000.0, -2.0 / 16), 1e-12);

  EXPECT_FALSE(load("mpt")->key_rotation(0, {}));
}

TEST(LoadedModel, TakesTheSameMemoryWithoutData) {
  const EditedModel edited("t5");
  const auto empty = edited.load({.without_data = true});
  EXPECT_EQ(empty->device_bytes(), edited.load()->device_bytes());
  EXPECT_EQ(empty->n_params(), edited.load()->n_params());
  EXPECT_NO_THROW(test::Forward(*empty, 32));
}

/// Runs a model's graph over its tokens with the outputs asked for, in the order of their ordinals.
std::vector<std::vector<float>> outputs_with(const LoadedModel& model, std::span<const std::int32_t> tokens,
                                             bool logits, bool embeddings) {
  test::Cells cells(model.device(), model.cache_specs(), tokens.size(), 1, ElementType::f32, 0);
  const ModelGraph graph = model.build_graph({.caches = cells.caches(),
                                              .causal = model.hparams().causal,
                                              .logits = logits,
                                              .embeddings = embeddings});
  EXPECT_EQ(graph.logits_output.has_value(), logits);
  EXPECT_EQ(graph.embeddings_output.has_value(), embeddings);
  const auto plan = model.device().compile(*graph.graph, {tokens.size(), tokens.size()}, 2);
  std::vector<std::int32_t> positions, rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    positions.push_back(cells.append(0));
    rows.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::vector<float>> results;
  if (logits) results.emplace_back(tokens.size() * model.hparams().n_vocab);
  if (embeddings) results.emplace_back(tokens.size() * model.n_embd_out());
  std::vector<float*> outputs;
  for (auto& result : results) outputs.push_back(result.data());
  const void* inputs[] = {tokens.data(), nullptr, positions.data(), rows.data()};
  const AttentionLayout* layouts[] = {&cells.layout()};
  plan->run({.extents = {tokens.size(), tokens.size()},
             .inputs = inputs,
             .outputs = outputs,
             .layouts = layouts,
             .n_threads = 2});
  return results;
}

/// x [n, width] times the rows of a matrix.
std::vector<float> product(const std::vector<float>& x, const std::vector<float>& matrix, std::size_t width) {
  std::vector<float> out;
  for (std::size_t t = 0; t < x.size() / width; ++t) {
    for (std::size_t row = 0; row < matrix.size() / width; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += double{x[t * width + i]} * matrix[row * width + i];
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

TEST(ModelOutputs, LogitsAndEmbeddingsComeApartOrTogether) {
  const EditedModel edited("qwen3");
  const auto model = edited.load();
  const auto both = outputs_with(*model, edited.tokens(), true, true);
  EXPECT_EQ(both[0], outputs_with(*model, edited.tokens(), true, false)[0]);
  EXPECT_EQ(both[1], outputs_with(*model, edited.tokens(), false, true)[0]);
  const auto head = edited.values("output.weight");  // the embeddings are what the head sees
  EXPECT_LT(test::nmse(product(both[1], head, 64), both[0]), 1e-10);
}

TEST(ModelOutputs, DenseLayersFollowEmbeddings) {
  EditedModel dense("gemma-embedding");
  dense.set("dense_2_feat_out", 96u).set("dense_3_feat_in", 96u);
  dense.tensor("dense_2.weight", {64, 96}).tensor("dense_3.weight", {96, 64});
  const auto plain = outputs_of(EditedModel("gemma-embedding"));
  const auto wide = product(plain, dense.values("dense_2.weight"), 64);
  EXPECT_LT(test::nmse(outputs_of(dense), product(wide, dense.values("dense_3.weight"), 96)), 1e-10);

  dense.set("dense_3_feat_in", 0u).erase("dense_3.weight");
  EXPECT_EQ(dense.load()->n_embd_out(), 96u);
  EXPECT_LT(test::nmse(outputs_of(dense), wide), 1e-10);
}

/// Scores of pooled embeddings by a model's head.
std::vector<float> scores(const LoadedModel& model, const std::vector<float>& pooled) {
  const RankGraph head = model.build_rank_head();
  const std::size_t n = pooled.size() / model.hparams().n_embd;
  const auto plan = model.device().compile(*head.graph, {0, n}, 1);
  std::vector<float> result(n * model.hparams().n_classes);
  const void* inputs[] = {pooled.data()};
  float* outputs[] = {result.data()};
  plan->run({.extents = {0, n}, .inputs = inputs, .outputs = outputs, .layouts = {}, .n_threads = 1});
  return result;
}

TEST(RankHead, OfBertIsADenseLayerWithTanhAndAClassifier) {
  EditedModel edited("bert");
  edited.set("classifier.output_labels", gguf::Array(std::vector<std::string>{"no", "yes"}));
  edited.tensor("cls.weight", {64, 64}).tensor("cls.bias", {64});
  edited.tensor("cls.output.weight", {64, 2}).tensor("cls.output.bias", {2});
  const auto model = edited.load();
  ASSERT_TRUE(model->has_rank_head());
  EXPECT_EQ(model->build_rank_head().pooling, Pooling::first);

  const std::vector<float> pooled = edited.values("token_embd.weight");
  std::vector<float> hidden = product(pooled, edited.values("cls.weight"), 64);
  const std::vector<float> bias = edited.values("cls.bias");
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = std::tanh(hidden[i] + bias[i % 64]);
  std::vector<float> expected = product(hidden, edited.values("cls.output.weight"), 64);
  const std::vector<float> output_bias = edited.values("cls.output.bias");
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += output_bias[i % 2];
  EXPECT_LT(test::nmse(scores(*model, pooled), expected), 1e-10);
}

TEST(RankHead, OfQwenGivesProbabilities) {
  EditedModel edited("qwen3");
  edited.set("classifier.output_labels", gguf::Array(std::vector<std::string>{"yes", "no"}));
  edited.tensor("cls.output.weight", {64, 2});
  const auto model = edited.load();
  EXPECT_EQ(model->build_rank_head().pooling, Pooling::last);
  const std::vector<float> result = scores(*model, std::vector<float>(64, 0.1f));
  EXPECT_NEAR(result[0] + result[1], 1, 1e-6);
}

TEST(RankHead, IsAbsentWhereTheFileHasNone) {
  EXPECT_FALSE(load("bert")->has_rank_head());
  EXPECT_FALSE(load("qwen3")->has_rank_head());
  EXPECT_FALSE(EditedModel("bert").tensor("cls.weight", {64, 64}).load()->has_rank_head());
}

TEST(PositionBias, AlibiSlopesArePowersAlsoWhereHeadsAreNot) {
  EXPECT_EQ(alibi_slopes(4, 8), (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f}));
  EXPECT_EQ(alibi_slopes(6, 8), (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
}

TEST(PositionBias, NearDistancesHaveTheirOwnBucketAndFarOnesShare) {
  const auto both_ways = [](std::int32_t distance) { return relative_bucket(distance, 32, true); };
  EXPECT_EQ(both_ways(0), 0u);
  EXPECT_EQ(both_ways(-7), 7u);
  EXPECT_EQ(both_ways(7), 23u);
  EXPECT_EQ(both_ways(-8), 8u);
  EXPECT_EQ(both_ways(-11), 8u);
  EXPECT_EQ(both_ways(-12), 9u);
  EXPECT_EQ(both_ways(-90), 14u);
  EXPECT_EQ(both_ways(-91), 15u);
  EXPECT_EQ(both_ways(-128), 15u);
  EXPECT_EQ(both_ways(128), 31u);
}

TEST(PositionBias, LooksOnlyBackInADecoder) {
  const auto back = [](std::int32_t distance) { return relative_bucket(distance, 32, false); };
  EXPECT_EQ(back(5), 0u);
  EXPECT_EQ(back(-15), 15u);
  EXPECT_EQ(back(-16), 16u);
  EXPECT_EQ(back(-18), 16u);
  EXPECT_EQ(back(-19), 17u);
  EXPECT_EQ(back(-128), 31u);
}

}  // namespace
}  // namespace quipu
