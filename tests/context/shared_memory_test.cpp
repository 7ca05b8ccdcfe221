// Two contexts with one memory: either goes on with what the other left, and every bit is that of one alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "context/test_context.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

Bits decode_bits(InferenceContext& context, std::span<const Token> tokens, SequenceId sequence = 0) {
  const Position first = context.memory().max_position(sequence) + 1;
  EXPECT_EQ(context.decode(TestBatch().add(tokens, first, sequence).view()), DecodeStatus::ok);
  return bits_of(context.logits(-1));
}

class SharedMemory : public ::testing::TestWithParam<const char*> {
 protected:
  static ContextParams params() {
    ContextParams params = small_params();
    params.n_ctx = 512;
    params.n_seq_max = 2;
    params.swa_full = false;
    return params;
  }
  // All that may differ does.
  static ContextParams other_params() {
    ContextParams other = params();
    other.n_batch = 64;
    other.n_ubatch = 16;
    other.n_outputs_max = 60;
    other.n_threads = other.n_threads_batch = 2;
    return other;
  }
  Bits alone() const {
    InferenceContext context(model_, params());
    decode_bits(context, begin_);
    return decode_bits(context, end_);
  }

  std::shared_ptr<const LoadedModel> model_ = model_named(GetParam());
  std::vector<Token> tokens_ = some_tokens(*model_, 70), drafted_ = some_tokens(*model_, 9, 5);
  std::span<const Token> begin_ = std::span(tokens_).first(50), end_ = std::span(tokens_).subspan(50);
};

TEST_P(SharedMemory, EitherGoesOnWithWhatTheOtherComputed) {
  InferenceContext first(model_, params()), second(model_, other_params(), &first);
  decode_bits(first, begin_);
  EXPECT_EQ(second.memory().max_position(0), 49);
  EXPECT_EQ(decode_bits(second, end_), alone());
  ASSERT_TRUE(second.memory().remove(0, 50, -1));
  EXPECT_EQ(decode_bits(first, end_), alone());
}

TEST_P(SharedMemory, ADraftThatIsTakenBackLeavesNoTrace) {
  InferenceContext first(model_, params()), second(model_, other_params(), &first);
  const Bits expected = alone();
  const Bits before = decode_bits(first, begin_);
  for (const Token token : drafted_) decode_bits(second, {&token, 1});
  EXPECT_EQ(bits_of(first.logits(-1)), before);
  ASSERT_TRUE(first.memory().remove(0, 50, -1));
  EXPECT_EQ(decode_bits(first, end_), expected);
}

TEST_P(SharedMemory, ChangedPositionsWaitForWhicheverRunsNext) {
  const auto play = [&](bool shared) {
    InferenceContext first(model_, params());
    std::optional<InferenceContext> second;
    if (shared) second.emplace(model_, other_params(), &first);
    decode_bits(first, begin_);
    first.memory().add(0, 45, -1, 3);
    return decode_bits(shared ? *second : first, end_);
  };
  EXPECT_EQ(play(true), play(false));
}

TEST_P(SharedMemory, StaysWhenItsMakerGoes) {
  auto first = std::make_unique<InferenceContext>(model_, params());
  InferenceContext second(model_, other_params(), first.get());
  decode_bits(*first, begin_);
  first.reset();
  EXPECT_EQ(decode_bits(second, end_), alone());
}

TEST_P(SharedMemory, StaysWhenTheOtherGoes) {
  InferenceContext first(model_, params());
  {
    InferenceContext second(model_, other_params(), &first);
    decode_bits(second, begin_);
  }
  EXPECT_EQ(decode_bits(first, end_), alone());
}

TEST_P(SharedMemory, IsCountedOnce) {
  const InferenceContext alone(model_, params());
  InferenceContext first(model_, params());
  const InferenceContext second(model_, other_params(), &first);
  EXPECT_EQ(first.memory_bytes(), alone.memory_bytes());
  EXPECT_EQ(second.memory_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(, SharedMemory, ::testing::Values("quipu-mini", "gemma3"), [](const auto& test) {
  return std::string(test.param) == "gemma3" ? "Windows" : "KeysAndValues";
});

TEST(SharedText, WhatOneEncodedTheOtherLooksAt) {
  const auto model = model_named("t5");
  const auto text = some_tokens(*model, 11);
  InferenceContext first(model, small_params()), second(model, small_params(), &first);
  ASSERT_EQ(first.encode({.tokens = text}), DecodeStatus::ok);
  const Bits expected = decode_bits(first, std::span(text).first(2));
  ASSERT_TRUE(first.memory().remove(0, -1, -1));
  EXPECT_EQ(decode_bits(second, std::span(text).first(2)), expected);
}

struct Unlike {
  const char* name;
  std::function<void(ContextParams&)> change;
  const char* message;
};

class UnlikeMemory : public ::testing::TestWithParam<Unlike> {};

TEST_P(UnlikeMemory, IsRefusedByName) {
  const auto model = model_named("quipu-mini");
  ContextParams params = small_params();
  params.n_ubatch = 64;
  InferenceContext first(model, params);
  GetParam().change(params);
  try {
    const InferenceContext second(model, params, &first);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , UnlikeMemory,
    ::testing::Values(
        Unlike{"Capacity", [](auto& p) { p.n_ctx = 1024; }, "n_ctx is 1024, but 256"},
        Unlike{"Sequences", [](auto& p) { p.n_seq_max = 2, p.kv_unified = true; }, "n_seq_max is 2, but 1"},
        Unlike{"Layout", [](auto& p) { p.kv_unified = true; }, "kv_unified is true, but false"},
        Unlike{"Windows", [](auto& p) { p.swa_full = false; }, "swa_full is false, but true"},
        Unlike{"Keys", [](auto& p) { p.type_k = ElementType::f32; }, "type_k is F32, but F16"},
        Unlike{"Values", [](auto& p) { p.type_v = ElementType::q8_0; }, "type_v is Q8_0, but F16"},
        Unlike{"Rotation", [](auto& p) { p.rope.base = 5000.0F; }, "rotation parameters"},
        Unlike{"MicroBatches", [](auto& p) { p.n_ubatch = 128; }, "n_ubatch is 128, but"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MemoryToShare, OfAnotherModelIsRefused) {
  InferenceContext first(model_named("llama"), small_params());
  EXPECT_THROW(InferenceContext(model_named("quipu-mini"), small_params(), &first), Error);
}

TEST(MemoryToShare, OfAModelThatRemembersNothingIsRefused) {
  const auto model = model_named("bert-full");
  InferenceContext first(model, small_params());
  EXPECT_THROW(InferenceContext(model, small_params(), &first), Error);
}

}  // namespace
}  // namespace quipu::test
