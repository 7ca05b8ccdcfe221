// What follows a restored state is bit for bit what would have followed without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <tuple>

#include "context/state/context_state.h"
#include "context/state_sections.h"
#include "context/test_context.h"

namespace quipu::test {
namespace {

Bits decode_bits(InferenceContext& context, std::span<const Token> tokens, SequenceId sequence) {
  const Position first = context.memory().max_position(sequence) + 1;
  TestBatch batch;
  batch.add(tokens, first, sequence);
  EXPECT_EQ(context.decode(batch.view()), DecodeStatus::ok);
  return bits_of(context.logits(-1));
}

struct Case {
  const char* name;
  const char* model;
  ElementType type_k, type_v;
  bool swa_full;
};

class StateOfContext : public ::testing::TestWithParam<Case> {
 protected:
  ContextParams params() const {
    ContextParams params = small_params();
    params.n_ctx = 512;
    params.n_seq_max = 2;
    params.kv_unified = true;
    params.type_k = GetParam().type_k;
    params.type_v = GetParam().type_v;
    params.swa_full = GetParam().swa_full;
    return params;
  }
  std::shared_ptr<const LoadedModel> model() const { return model_named(GetParam().model); }
  static std::vector<std::byte> save(InferenceContext& context, const StateScope& scope = {}) {
    const StateAccess access = state_access(context);
    std::vector<std::byte> bytes(state_bytes(access, scope));
    EXPECT_EQ(save_state(access, scope, {}, bytes), bytes.size());
    return bytes;
  }
};

TEST_P(StateOfContext, ContinuesWithTheSameBits) {
  InferenceContext context(model(), params());
  const auto tokens = some_tokens(*model(), 70);
  decode_bits(context, std::span(tokens).first(50), 0);
  const auto bytes = save(context);
  const Bits expected = decode_bits(context, std::span(tokens).subspan(50), 0);

  InferenceContext other(model(), params());
  decode_bits(other, std::span(tokens).first(9), 1);
  load_state(state_access(other), {}, bytes);
  EXPECT_EQ(decode_bits(other, std::span(tokens).subspan(50), 0), expected);
}

TEST_P(StateOfContext, ASequenceContinuesElsewhereWithTheSameBits) {
  InferenceContext context(model(), params());
  const auto tokens = some_tokens(*model(), 70);
  decode_bits(context, std::span(tokens).first(50), 0);
  const auto bytes = save(context, {.sequence = 0});
  const Bits expected = decode_bits(context, std::span(tokens).subspan(50), 0);

  ContextParams separate = params();
  separate.kv_unified = false;
  separate.n_ctx = 1024;
  InferenceContext other(model(), separate);
  decode_bits(other, std::span(tokens).first(9), 0);
  load_state(state_access(other), 1, bytes);
  EXPECT_EQ(decode_bits(other, std::span(tokens).subspan(50), 1), expected);
}

TEST_P(StateOfContext, SavingLeavesNoTraceOfChangesToCome) {
  const auto tokens = some_tokens(*model(), 70);
  const auto play = [&](bool saved) {
    InferenceContext context(model(), params());
    decode_bits(context, std::span(tokens).first(50), 0);
    context.memory().add(0, 45, -1, 3);
    if (saved) load_state(state_access(context), 0, save(context, {.sequence = 0}));
    context.memory().add(0, 45, -1, -5);
    return decode_bits(context, std::span(tokens).subspan(50), 0);
  };
  EXPECT_EQ(play(true), play(false));
}

INSTANTIATE_TEST_SUITE_P(
    Caches, StateOfContext,
    ::testing::Values(Case{"F16", "quipu-mini", ElementType::f16, ElementType::f16, true},
                      Case{"F32", "quipu-mini", ElementType::f32, ElementType::f32, true},
                      Case{"Q8_0", "quipu-mini", ElementType::q8_0, ElementType::q8_0, true},
                      Case{"Windows", "gemma3", ElementType::f16, ElementType::f16, false}),
    [](const auto& test) { return std::string(test.param.name); });

/// By tokens of the prompt, most of them computed at once.
class StateOfWindows : public ::testing::TestWithParam<std::tuple<std::size_t, std::uint32_t>> {
 protected:
  InferenceContext make_context() const {
    ContextParams params = small_params();
    params.n_ctx = 2048;
    params.n_seq_max = 2;
    params.n_batch = params.n_ubatch = 1024;
    if (std::get<1>(GetParam()) != 0) params.n_ubatch = std::get<1>(GetParam());
    params.swa_full = false;
    return InferenceContext(model_, params);
  }
  // Greedy tokens, and the logits of the last.
  std::pair<std::vector<Token>, Bits> go_on(InferenceContext& context, Token token, SequenceId sequence) {
    std::vector<Token> tokens;
    Bits bits;
    for (int i = 0; i < 32; ++i) {
      bits = decode_bits(context, {&token, 1}, sequence);
      const auto row = context.logits(-1);
      token = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
      tokens.push_back(token);
    }
    return {tokens, bits};
  }
  static std::vector<std::byte> save(InferenceContext& context, const StateScope& scope) {
    const StateAccess access = state_access(context);
    std::vector<std::byte> bytes(state_bytes(access, scope));
    save_state(access, scope, {}, bytes);
    return bytes;
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("gemma3");
};

TEST_P(StateOfWindows, ContinueWithTheSameBitsAndAreSavedAsTheSameBytes) {
  const auto prompt = some_tokens(*model_, std::get<0>(GetParam()));
  InferenceContext context = make_context();
  decode_bits(context, prompt, 0);
  const auto whole = save(context, {}), sequence = save(context, {.sequence = 0});
  const auto expected = go_on(context, 1, 0);

  context.memory().clear(true);  // whatever was there must not help
  load_state(state_access(context), {}, whole);
  EXPECT_EQ(save(context, {}), whole);
  EXPECT_EQ(go_on(context, 1, 0), expected);

  InferenceContext other = make_context();
  load_state(state_access(other), 1, sequence);
  EXPECT_EQ(go_on(other, 1, 1), expected);
}

INSTANTIATE_TEST_SUITE_P(, StateOfWindows,
                         ::testing::Combine(::testing::Values(8, 16, 17, 40, 200, 600),
                                            ::testing::Values(0, 8)));

// Decoding goes on with what was encoded before the state was saved.
class StateOfText : public ::testing::Test {
 protected:
  static ContextParams params() {
    ContextParams params = small_params();
    params.n_ctx = 512;
    params.n_seq_max = 2;
    params.n_ubatch = 64;
    return params;
  }
  static std::string load(InferenceContext& context, std::span<const std::byte> bytes,
                          std::optional<SequenceId> sequence = {}) {
    try {
      load_state(state_access(context), sequence, bytes);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  static std::vector<std::byte> save(InferenceContext& context, const StateScope& scope = {}) {
    const StateAccess access = state_access(context);
    std::vector<std::byte> bytes(state_bytes(access, scope));
    EXPECT_EQ(save_state(access, scope, {}, bytes), bytes.size());
    return bytes;
  }
  // Texts of two sequences, and what follows them begun.
  void begin(InferenceContext& context) const {
    const TestBatch texts = TestBatch().add(long_, 0, 0).add(short_, 0, 1);
    ASSERT_EQ(context.encode(texts.view()), DecodeStatus::ok);
    decode_bits(context, std::span(short_).first(3), 0);
    decode_bits(context, std::span(short_).first(2), 1);
  }
  Bits go_on(InferenceContext& context, SequenceId sequence) const {
    return decode_bits(context, std::span(long_).first(4), sequence);
  }

  std::shared_ptr<const LoadedModel> model_ = model_named("t5");
  std::vector<Token> long_ = some_tokens(*model_, 37), short_ = some_tokens(*model_, 7, 2);
};

TEST_F(StateOfText, ContinuesWithTheSameBits) {
  InferenceContext context(model_, params());
  begin(context);
  const auto bytes = save(context);
  const Bits expected[] = {go_on(context, 0), go_on(context, 1)};

  ContextParams larger = params();
  larger.n_ctx = 1536;
  larger.n_seq_max = 3;
  larger.n_ubatch = 128;
  InferenceContext other(model_, larger);
  ASSERT_EQ(other.encode(TestBatch().add(short_, 0, 0).add(short_, 0, 2).view()), DecodeStatus::ok);
  ASSERT_EQ(load(other, bytes), "");
  EXPECT_EQ(save(other), bytes);
  for (const SequenceId s : {0, 1}) EXPECT_EQ(go_on(other, s), expected[s]);
  EXPECT_THROW(other.decode(TestBatch().add(1, 0, {2}).view()), Error);
}

TEST_F(StateOfText, ASequenceBringsItsTextAndLeavesThoseOfOthers) {
  InferenceContext context(model_, params());
  begin(context);
  const auto bytes = save(context, {.sequence = 0});
  InferenceContext other(model_, params());
  ASSERT_EQ(other.encode(TestBatch().add(short_, 0, 0).add(long_, 0, 1).view()), DecodeStatus::ok);
  decode_bits(other, std::span(short_).first(2), 0);
  ASSERT_EQ(load(other, bytes, 1), "");
  EXPECT_EQ(go_on(other, 1), go_on(context, 0));
  EXPECT_EQ(go_on(other, 0), go_on(context, 1));
}

TEST_F(StateOfText, WithoutTextTakesAwayWhatWasThere) {
  InferenceContext context(model_, params());
  const auto nothing = save(context);
  begin(context);
  ASSERT_EQ(load(context, nothing), "");
  EXPECT_THROW(context.decode(TestBatch().add(1, 0, {0}).view()), Error);
  EXPECT_EQ(save(context), nothing);
}

TEST_F(StateOfText, APartialOneLeavesTheText) {
  InferenceContext context(model_, params());
  begin(context);
  const auto bytes = save(context, {.partial_only = true});
  EXPECT_LT(bytes.size(), save(context).size() / 2);
  const Bits expected = go_on(context, 0);
  ASSERT_EQ(load(context, bytes), "");
  EXPECT_EQ(go_on(context, 0), expected);
}

TEST_F(StateOfText, WithoutRoomForItNothingChanges) {
  InferenceContext context(model_, params());
  begin(context);
  ContextParams small = params();
  small.n_ubatch = 16;
  InferenceContext other(model_, small);
  ASSERT_EQ(other.encode(TestBatch().add(short_, 0, 1).view()), DecodeStatus::ok);
  const auto before = save(other);
  EXPECT_THAT(load(other, save(context)), ::testing::HasSubstr("tokens finds no room"));
  EXPECT_EQ(save(other), before);
}

TEST_F(StateOfText, CutOrFlippedAnywhereItChangesNothing) {
  InferenceContext context(model_, params()), other(model_, params());
  begin(context);
  ASSERT_EQ(other.encode(TestBatch().add(short_, 0, 1).view()), DecodeStatus::ok);
  const auto before = save(other);
  auto bytes = save(context);
  std::vector<std::size_t> places = boundaries(bytes);
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) places.push_back(random() % bytes.size());
  for (const std::size_t place : places) {
    if (place == bytes.size()) continue;
    EXPECT_NE(load(other, std::span(bytes).first(place)), "") << place;
    const auto flip = static_cast<std::byte>(1U << random() % 8);
    bytes[place] ^= flip;
    EXPECT_NE(load(other, bytes), "") << place;
    bytes[place] ^= flip;
  }
  EXPECT_EQ(save(other), before);
  EXPECT_EQ(load(other, bytes), "");
}

// What its cells say that no text says; checksums are right.
TEST_F(StateOfText, ThatContradictsItselfIsRefused) {
  InferenceContext context(model_, params());
  StateCells& text = *state_access(context).text;
  begin(context);
  const MemoryState::Part good = text.describe({});
  const auto refused = [&](const auto& change, const StateScope& scope = {}) {
    MemoryState::Part part = good;
    change(part);
    try {
      text.prepare_restore(part, 1, scope);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& part) { part.has_data = false; }));
  EXPECT_TRUE(refused([](auto& part) { part.cells[3].shift = 1; }));
  EXPECT_TRUE(refused([](auto& part) { part.cells[3].position = -1; }));
  EXPECT_TRUE(refused([](auto& part) { part.sequences[0].cells.back().place = 100; }));
  EXPECT_TRUE(refused([](auto& part) { part.sequences[0].cells.clear(); }));
  EXPECT_TRUE(refused([](auto& part) { part.sequences[1].cells.back().cell = 0; }));
  EXPECT_TRUE(refused([](auto& part) { part.sequences[1].id = 2; }));
  EXPECT_TRUE(refused([](auto&) {}, {.sequence = 0}));
}

TEST(StateFiles, AKilledSaveLeavesTheOldFileWhole) {
  const char* asked = std::getenv("QUIPU_KILLS");
  const int n_kills = asked == nullptr ? 5 : std::atoi(asked);
  const TempDir folder;
  const auto model = model_named("quipu-mini");
  InferenceContext context(model, small_params());
  decode_bits(context, some_tokens(*model, 200), 0);
  const StateAccess access = state_access(context);
  const std::size_t n_bytes = save_state_file(access, {}, {}, folder / "state");
  const auto whole = read_bytes(folder / "state");
  ASSERT_EQ(whole.size(), n_bytes);
  for (int i = 0; i < n_kills; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) save_state_file(access, {}, {}, folder / "state");
    }
    ::usleep(static_cast<useconds_t>(2000 + i * 731 % 20000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(read_bytes(folder / "state"), whole);
  }
}

}  // namespace
}  // namespace quipu::test
