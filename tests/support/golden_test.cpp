// The constants here were computed by a separate program from the rule for the golden weights.
#include "support/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gguf/reader.h"

namespace quipu::test {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> first_bits(const std::string& name, std::vector<std::uint64_t> dims) {
  const std::vector<float> weights = golden_weights({name, ElementType::f32, std::move(dims)}, 1);
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i < 3; ++i) bits.push_back(std::bit_cast<std::uint32_t>(weights[i]));
  return bits;
}

TEST(GoldenWeights, FollowTheRuleOfTheTensorsName) {
  EXPECT_THAT(first_bits("blk.0.ssm_a", {8}), ElementsAre(0xc0340a23, 0xbfd22cf5, 0xbf96533c));
  EXPECT_THAT(first_bits("blk.0.attn_norm.weight", {64}), ElementsAre(0x3f91a2f0, 0x3f7e79f1, 0x3f867eaf));
  EXPECT_THAT(first_bits("rope_freqs.weight", {8}), ElementsAre(0x3f81e2fb, 0x3f84dea5, 0x3f86951d));
  EXPECT_THAT(first_bits("blk.0.time_mix_decay.weight", {64}),
              ElementsAre(0xbeaa0a40, 0xbe21d3e2, 0xbe438157));
  EXPECT_THAT(first_bits("blk.0.attn_sinks.weight", {8}), ElementsAre(0xbf290ec1, 0xbdb868c7, 0xbe77777d));
  EXPECT_THAT(first_bits("blk.0.attn_q.bias", {64}), ElementsAre(0xbe296503, 0x3c289264, 0xbb2f4896));
  EXPECT_THAT(first_bits("token_embd.weight", {64, 160}), ElementsAre(0xbf6dbdd7, 0x3f1d36cc, 0x3f8427cd));
  EXPECT_THAT(first_bits("blk.0.ffn_gate_inp.weight", {64, 8}),
              ElementsAre(0xbc5f5388, 0xbe6d4fae, 0xbe351812));
  EXPECT_THAT(first_bits("blk.1.ffn_down.weight", {96, 64}), ElementsAre(0xbdadaedf, 0xbd6b2295, 0x3db24e91));
}

/// Every bit of every weight enters, each by its place.
std::uint64_t fingerprint(const std::string& name) {
  const Golden golden = load_golden(name);
  std::uint64_t result = 0;
  for (const GoldenTensor& tensor : golden.tensors) {
    std::uint64_t sum = 0;
    std::uint64_t place = 0;
    for (const float weight : golden_weights(tensor, golden.seed))
      sum += ++place * std::bit_cast<std::uint32_t>(weight);
    result = result * 31 + sum;
  }
  return result;
}

TEST(GoldenWeights, AreThoseOfTheReferenceToTheLastBit) {
  EXPECT_EQ(fingerprint("llama-full"), 0xe5efc93450a4d011u);
  EXPECT_EQ(fingerprint("qwen3moe-experts-full"), 0xd99015cbacc8dd66u);
  EXPECT_EQ(fingerprint("gemma3"), 0x1dd140485fe343d5u);
}

TEST(Golden, IsLoadedWithItsRunAndItsExpectedOutput) {
  const Golden golden = load_golden("llama");
  EXPECT_EQ(golden.architecture, "llama");
  EXPECT_EQ(golden.tokens.size(), 32u);
  EXPECT_EQ(golden.rows, 32u);
  EXPECT_EQ(golden.cols, 160u);
  EXPECT_FALSE(golden.outputs_embeddings);
  EXPECT_FALSE(golden.f16_cache);
  EXPECT_EQ(golden.metadata.get_u32("llama.embedding_length"), 64u);
  EXPECT_EQ(golden.metadata.get_u32s("llama.rope.dimension_sections"),
            (std::vector<std::uint32_t>{4, 4, 4, 4}));
}

TEST(Golden, NamesOfAFamilyLeaveOutLongerFamilyNames) {
  EXPECT_THAT(golden_names("qwen3"), ElementsAre("qwen3", "qwen3-full"));
  EXPECT_THAT(golden_names("qwen3moe"),
              ElementsAre("qwen3moe-experts", "qwen3moe-experts-full", "qwen3moe-experts-v-softmax"));
}

TEST(GoldenModel, HoldsTheDescribedMetadataAndWeights) {
  const Golden golden = load_golden("qwen3moe-experts");
  const std::vector<std::byte> bytes = golden_model(golden);
  const gguf::Reader reader = gguf::Reader::from_memory(bytes, "golden");
  EXPECT_EQ(reader.metadata().entries().size(), golden.metadata.entries().size());
  ASSERT_EQ(reader.tensors().size(), golden.tensors.size());
  for (const GoldenTensor& tensor : golden.tensors) {
    const gguf::TensorInfo* stored = reader.find_tensor(tensor.name);
    ASSERT_NE(stored, nullptr) << tensor.name;
    EXPECT_EQ(stored->type, ElementType::f32);
    EXPECT_EQ(stored->dims, tensor.dims);
    const std::vector<float> weights = golden_weights(tensor, golden.seed);
    const auto data = reader.data(*stored);
    ASSERT_EQ(data.size(), weights.size() * sizeof(float)) << tensor.name;
    EXPECT_EQ(std::memcmp(data.data(), weights.data(), data.size()), 0) << tensor.name;
  }
}

template <typename T>
std::vector<T> values_of(const gguf::Reader& reader, std::string_view name) {
  const auto data = reader.data(*reader.find_tensor(name));
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

TEST(GoldenModel, RoundsHalfTensorsAndDrawsIndicesBelowFour) {
  Golden golden;
  golden.seed = 1;
  golden.tensors = {{"token_embd.weight", ElementType::f16, {4}}, {"blk.0.ids", ElementType::i32, {8}}};
  const std::vector<std::byte> bytes = golden_model(golden);
  const gguf::Reader reader = gguf::Reader::from_memory(bytes, "golden");
  EXPECT_THAT(values_of<std::uint16_t>(reader, "token_embd.weight"),
              ElementsAre(0xbb6e, 0x38ea, 0x3c21, 0x3bbc));
  EXPECT_THAT(values_of<std::int32_t>(reader, "blk.0.ids"), ElementsAre(0, 1, 3, 1, 3, 3, 2, 1));
}

TEST(GoldenModel, EncodesMatricesButNotNormsOrTheRouter) {
  const std::vector<std::byte> bytes = golden_model(load_golden("qwen3moe-experts"), ElementType::q8_0);
  const gguf::Reader reader = gguf::Reader::from_memory(bytes, "golden");
  const auto type = [&](std::string_view name) { return reader.find_tensor(name)->type; };
  EXPECT_EQ(type("token_embd.weight"), ElementType::q8_0);
  EXPECT_EQ(type("blk.0.attn_q.weight"), ElementType::q8_0);
  EXPECT_EQ(type("blk.0.ffn_gate_exps.weight"), ElementType::q8_0);
  EXPECT_EQ(type("blk.0.ffn_gate_inp.weight"), ElementType::f32);
  EXPECT_EQ(type("blk.0.attn_norm.weight"), ElementType::f32);
}

TEST(GoldenModel, WidenedIsEncodedInTheLongBlockFormats) {
  const Golden wide = widened(load_golden("qwen3moe-experts-full"), 8);
  EXPECT_EQ(wide.metadata.get_u32("qwen3moe.embedding_length"), 512u);
  EXPECT_EQ(wide.metadata.get_u32("qwen3moe.attention.head_count"), 32u);
  const std::vector<std::byte> bytes = golden_model(wide, ElementType::q4_k);
  const gguf::Reader reader = gguf::Reader::from_memory(bytes, "wide");
  const auto expect = [&](std::string_view name, ElementType type, const std::vector<std::uint64_t>& dims) {
    const gguf::TensorInfo* tensor = reader.find_tensor(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->type, type) << name;
    EXPECT_EQ(tensor->dims, dims) << name;
  };
  expect("token_embd.weight", ElementType::q4_k, {512, 160});
  expect("blk.0.attn_k.weight", ElementType::q4_k, {512, 256});
  expect("blk.0.attn_k.bias", ElementType::f32, {256});
  expect("blk.0.attn_k_norm.weight", ElementType::f32, {16});
  expect("blk.1.ffn_down_exps.weight", ElementType::q4_k, {768, 512, 4});
  expect("blk.1.ffn_gate_inp.weight", ElementType::f32, {512, 4});
}

TEST(Nmse, IsTheErrorsEnergyOverTheExpectedEnergy) {
  EXPECT_DOUBLE_EQ(nmse(std::vector<float>{3, 4.5f}, std::vector<float>{3, 4}), 0.25 / 25);
}

TEST(Nmse, IsInfiniteForWhatCannotBeCompared) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(nmse(std::vector<float>{1}, std::vector<float>{1, 2}), infinity);
  EXPECT_EQ(nmse(std::vector<float>{nan, 2}, std::vector<float>{1, 2}), infinity);
  EXPECT_EQ(nmse(std::vector<float>{1}, std::vector<float>{0}), infinity);
}

}  // namespace
}  // namespace quipu::test
