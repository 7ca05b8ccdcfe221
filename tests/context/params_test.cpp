// What is refused and what adjusted when a context is made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

Hparams trained_for(std::uint32_t n_ctx_train) {
  Hparams hparams;
  hparams.n_ctx_train = n_ctx_train;
  return hparams;
}

ResolvedParams resolve(const ContextParams& params, std::uint32_t n_ctx_train = 4096) {
  const CapturedLog quiet;
  return resolve_params(params, trained_for(n_ctx_train));
}

std::string refusal(const ContextParams& params, std::uint32_t n_ctx_train = 4096) {
  try {
    resolve(params, n_ctx_train);
  } catch (const Error& error) {
    return error.message();
  }
  return "accepted";
}

TEST(ContextParams, DefaultsAreUsable) {
  const ResolvedParams params = resolve({});
  EXPECT_EQ(params.n_ctx, 512U);
  EXPECT_EQ(params.n_ctx_seq, 512U);
  EXPECT_EQ(params.n_batch, 512U);  // 2048, capped by n_ctx
  EXPECT_EQ(params.n_ubatch, 512U);
  EXPECT_EQ(params.n_outputs_max, 512U);
  EXPECT_EQ(params.n_seq_max, 1U);
  EXPECT_EQ(params.n_threads, 4);
}

TEST(ContextParams, ContextSizeIsRoundedUpTo256) {
  for (const auto& [given, rounded] :
       {std::pair{1U, 256U}, {2U, 256U}, {255U, 256U}, {256U, 256U}, {257U, 512U}}) {
    EXPECT_EQ(resolve({.n_ctx = given}).n_ctx, rounded);
  }
}

TEST(ContextParams, RoundingIsLogged) {
  const CapturedLog log;
  resolve_params({.n_ctx = 300}, trained_for(4096));
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_THAT(log.lines[0], HasSubstr("n_ctx is 512 instead of 300"));
}

TEST(ContextParams, RoundingTheTrainedSizeIsNoNews) {
  const CapturedLog log;
  resolve_params({.n_ctx = 0}, trained_for(300));
  EXPECT_TRUE(log.lines.empty());
}

TEST(ContextParams, UnsetContextSizeIsTheTrainedOne) {
  EXPECT_EQ(resolve({.n_ctx = 0}, 1000).n_ctx, 1024U);
  EXPECT_THAT(refusal({.n_ctx = 0}, 0), HasSubstr("n_ctx is 0"));
}

TEST(ContextParams, EachSequenceGetsItsShareOfTheContext) {
  const ResolvedParams params = resolve({.n_ctx = 1024, .n_seq_max = 3});
  EXPECT_EQ(params.n_ctx_seq, 512U);  // 341, rounded up
  EXPECT_EQ(params.n_ctx, 1536U);
}

TEST(ContextParams, AUnifiedContextIsSharedByAll) {
  const ResolvedParams params = resolve({.n_ctx = 1024, .n_seq_max = 3, .kv_unified = true});
  EXPECT_EQ(params.n_ctx_seq, 1024U);
  EXPECT_EQ(params.n_ctx, 1024U);
}

TEST(ContextParams, SequencesAreCounted) {
  EXPECT_EQ(resolve({.n_seq_max = 0}).n_seq_max, 1U);
  EXPECT_EQ(resolve({.n_seq_max = 256}).n_seq_max, 256U);
  EXPECT_THAT(refusal({.n_seq_max = 257}), HasSubstr("n_seq_max is 257"));
}

TEST(ContextParams, ABatchSizeOf0TakesTheOther) {
  EXPECT_EQ(resolve({.n_batch = 0, .n_ubatch = 100}).n_batch, 100U);
  EXPECT_EQ(resolve({.n_batch = 100, .n_ubatch = 0}).n_ubatch, 100U);
  EXPECT_THAT(refusal({.n_batch = 0, .n_ubatch = 0}), HasSubstr("n_batch and n_ubatch are both 0"));
}

TEST(ContextParams, BatchSizesAreCappedAfterRounding) {
  const ResolvedParams params = resolve({.n_ctx = 300, .n_batch = 1000, .n_ubatch = 2000});
  EXPECT_EQ(params.n_batch, 512U);
  EXPECT_EQ(params.n_ubatch, 512U);
}

TEST(ContextParams, OutputsAreAtLeastOneForEachSequence) {
  EXPECT_EQ(resolve({.n_batch = 100}).n_outputs_max, 100U);
  EXPECT_EQ(resolve({.n_outputs_max = 7}).n_outputs_max, 7U);
  EXPECT_EQ(resolve({.n_seq_max = 8, .n_outputs_max = 7}).n_outputs_max, 8U);
}

TEST(ContextParams, EncodersGiveEveryTokensRow) {
  for (const char* name : {"bert-full", "t5"}) {
    EXPECT_EQ(
        resolve_params({.n_batch = 100, .n_outputs_max = 7}, model_named(name)->hparams()).n_outputs_max,
        100U);
  }
  EXPECT_EQ(
      resolve_params({.n_batch = 100, .n_outputs_max = 7}, model_named("llama")->hparams()).n_outputs_max,
      7U);
}

TEST(ContextParams, QuantizedValuesNeedFlashAttention) {
  ContextParams params;
  params.type_v = ElementType::q8_0;
  EXPECT_EQ(refusal(params), "accepted");
  params.flash_attention = true;
  EXPECT_EQ(refusal(params), "accepted");
  params.flash_attention = false;
  EXPECT_THAT(refusal(params), HasSubstr("values of type Q8_0 need flash attention"));
  params.type_v = ElementType::bf16;
  params.type_k = ElementType::q8_0;
  EXPECT_EQ(refusal(params), "accepted");
}

TEST(ContextParams, OneCompressedVectorHasOneType) {
  Hparams hparams = trained_for(512);
  hparams.latent.absorbed = true;
  ContextParams params;
  params.type_v = ElementType::f32;
  EXPECT_THAT(refusal_of([&] { resolve_params(params, hparams); }), HasSubstr("keys are F16 and values F32"));
  params.type_k = ElementType::f32;
  EXPECT_EQ(resolve_params(params, hparams).type_k, ElementType::f32);
}

TEST(ContextParams, NoThreadsMeansAllProcessors) {
  EXPECT_GE(resolve({.n_threads = 0}).n_threads, 1);
  EXPECT_GE(resolve({.n_threads_batch = -1}).n_threads_batch, 1);
  EXPECT_THAT(refusal({.n_threads = 100000}), HasSubstr("n_threads is 100000"));
}

TEST(ContextParams, SizesBeyondReasonAreRefused) {
  EXPECT_THAT(refusal({.n_ctx = 0xFFFFFFFF}), HasSubstr("4294967296"));
}

TEST(ContextParams, RotationMustBeNumbers) {
  ContextParams params;
  params.rope.base = 0.0F;
  EXPECT_THAT(refusal(params), HasSubstr("rope base is 0"));
  params.rope = {};
  params.rope.frequency_scale = -1.0F;
  EXPECT_THAT(refusal(params), HasSubstr("rope frequency scale is -1"));
  params.rope = {};
  params.rope.yarn_extrapolation = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(params), HasSubstr("YaRN extrapolation factor is nan"));
}

TEST(ContextParams, ABatchOfAModelWithoutCausalAttentionMayBeLongerThanTheContext) {
  Hparams hparams = trained_for(512);
  hparams.causal = false;
  ContextParams params;
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = 1024;
  EXPECT_EQ(resolve_params(params, hparams).n_ubatch, 1024U);
  hparams.causal = true;
  EXPECT_EQ(resolve_params(params, hparams).n_ubatch, 256U);
}

TEST(ContextParams, CausalityIsTheModelsUnlessSet) {
  Hparams hparams = trained_for(512);
  EXPECT_TRUE(resolve_params({}, hparams).is_causal);
  ContextParams params;
  params.causal = false;
  EXPECT_FALSE(resolve_params(params, hparams).is_causal);
}

TEST(ContextParams, PoolingIsTheModelsUnlessSet) {
  const CapturedLog log;
  Hparams hparams = trained_for(512);
  EXPECT_EQ(resolve_params({}, hparams).resolved_pooling, Pooling::none);
  hparams.pooling = Pooling::mean;
  EXPECT_EQ(resolve_params({}, hparams).resolved_pooling, Pooling::mean);
  EXPECT_TRUE(log.lines.empty());
  ContextParams params;
  params.pooling = Pooling::last;
  EXPECT_EQ(resolve_params(params, hparams).resolved_pooling, Pooling::last);
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_THAT(log.lines[0], HasSubstr("last instead of mean"));
}

// Whatever is accepted can decode.
TEST(ContextParams, OddSizesMakeContextsThatRun) {
  const CapturedLog quiet;
  const auto model = model_named("llama");
  for (const std::uint32_t n_ctx : {0U, 1U, 2U, 8U, 255U}) {
    for (const std::uint32_t n_seq_max : {0U, 1U, 256U}) {
      ContextParams params = small_params();
      params.n_ctx = n_ctx;
      params.n_seq_max = n_seq_max;
      params.n_batch = 1000000;
      params.n_ubatch = 2000000;
      InferenceContext context(model, params);
      const std::vector<Token> tokens{1, 2, 3};
      EXPECT_EQ(context.decode({.tokens = tokens}), DecodeStatus::ok) << n_ctx << " " << n_seq_max;
      EXPECT_FALSE(context.logits(-1).empty());
    }
  }
}

TEST(ContextParams, ACacheTypeThatTheModelsHeadsCannotHaveIsNamed) {
  ContextParams params = small_params();
  params.type_k = ElementType::q8_0;
  try {
    const InferenceContext context(model_named("llama"), params);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("Q8_0"));
  }
}

TEST(ContextParams, AContextNeedsAModel) {
  EXPECT_THROW(InferenceContext(nullptr, {}), Error);
}

}  // namespace
}  // namespace quipu::test
