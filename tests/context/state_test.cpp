// Saved states: what goes in comes out, elsewhere too, and what is damaged changes nothing.
#include "context/state/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

#include "base/zstd.h"
#include "context/state/state_format.h"
#include "context/state_memory.h"
#include "context/state_sections.h"
#include "quipu/error.h"
#include "support/files.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  StateSetup from, to;
};

class StateRoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(StateRoundTrip, BringsBackEveryBit) {
  StateMemory memory(GetParam().from), other(GetParam().to);
  fill(memory);
  other.decode({2}, 30);
  ASSERT_EQ(other.load(memory.save()), "");
  for (const std::int32_t s : {0, 1, 2}) EXPECT_EQ(other.content(s), memory.content(s));
  EXPECT_EQ(other->max_position(0), memory->max_position(0));
}

TEST_P(StateRoundTrip, BringsBackOneSequenceUnderAnotherNumber) {
  StateMemory memory(GetParam().from), other(GetParam().to);
  fill(memory);
  other.decode({2}, 30);
  const auto kept = other.content(2);
  ASSERT_EQ(other.load(memory.save({.sequence = 0}), 1), "");
  EXPECT_EQ(other.content(1), memory.content(0));
  EXPECT_EQ(other.content(2), kept);
}

TEST_P(StateRoundTrip, TheNextTokenGetsTheSamePlace) {
  StateMemory memory(GetParam().from), other(GetParam().to);
  fill(memory);
  ASSERT_EQ(other.load(memory.save()), "");
  ASSERT_TRUE(memory.decode({1}, 1));
  ASSERT_TRUE(other.decode({1}, 1));
  EXPECT_EQ(other->layouts()[0]->tokens[0].place, memory->layouts()[0]->tokens[0].place);
  EXPECT_EQ(other.content(0), memory.content(0));  // with its keys turned
}

const StateSetup kSeparate{.unified = false};
const StateSetup kLarge{.n_sequences = 5, .n_cells = 1024};
const StateSetup kWindows{.n_cells = 512, .window = 20};
const StateSetup kSeparateWindows{.n_cells = 256, .unified = false, .window = 20};
const StateSetup kF32{.type_k = ElementType::f32, .type_v = ElementType::f32};
const StateSetup kMixed{.type_k = ElementType::q8_0, .type_v = ElementType::q4_0};
INSTANTIATE_TEST_SUITE_P(Setups, StateRoundTrip,
                         ::testing::Values(Case{"Same", {}, {}}, Case{"Separate", {}, kSeparate},
                                           Case{"Unified", kSeparate, {}}, Case{"Large", {}, kLarge},
                                           Case{"Windows", kWindows, kWindows},
                                           Case{"SeparateWindows", kWindows, kSeparateWindows},
                                           Case{"F32", kF32, kF32}, Case{"BlockTypes", kMixed, kMixed}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(State, CarriesItsTokens) {
  StateMemory memory;
  fill(memory);
  const std::vector<Token> tokens{5, 3, 8};
  const auto bytes = memory.save({}, tokens);
  EXPECT_EQ(load_state(memory.access, {}, bytes).tokens, tokens);
  EXPECT_EQ(read_state_tokens(bytes), tokens);
}

TEST(State, MoreTokensThanThereIsSpaceForChangeNothing) {
  StateMemory memory;
  const auto bytes = memory.save({}, {1, 2, 3});
  fill(memory);
  const auto before = memory.contents();
  EXPECT_THROW(load_state(memory.access, {}, bytes, 2), Error);
  EXPECT_EQ(memory.contents(), before);
}

TEST(State, SharedCellsAreSavedOnce) {
  StateMemory memory;
  memory.decode({0}, 100);
  const std::size_t alone = memory.save().size();
  memory->copy(0, 1, -1, -1);
  EXPECT_LT(memory.save().size(), alone + 100 * 8 + 100);
  StateMemory other({.n_cells = 256});
  ASSERT_EQ(other.load(memory.save()), "");
  EXPECT_EQ(other->cells(0).n_used_cells(), 100U);
}

TEST(State, ABufferThatIsTooSmallIsRefused) {
  StateMemory memory;
  fill(memory);
  std::vector<std::byte> bytes(state_bytes(memory.access, {}) - 1);
  EXPECT_THROW(save_state(memory.access, {}, {}, bytes), Error);
}

TEST(State, WithoutRoomNothingChanges) {
  StateMemory memory({.n_cells = 512}), other({.n_cells = 256});
  memory.decode({0}, 300);
  other.decode({1}, 50);
  const auto before = other.contents();
  EXPECT_THAT(other.load(memory.save()), HasSubstr("no room"));
  EXPECT_THAT(other.load(memory.save({.sequence = 0}), 0), HasSubstr("no room"));
  EXPECT_EQ(other.contents(), before);
}

TEST(State, ASequenceThatIsNotThereIsRefused) {
  StateMemory memory({.n_sequences = 3}), other({.n_sequences = 2});
  memory.decode({2}, 4);
  EXPECT_THAT(other.load(memory.save()), HasSubstr("sequence 2"));
  EXPECT_THAT(other.load(memory.save({.sequence = 2}), 2), HasSubstr("sequence 2"));
  EXPECT_EQ(other.load(memory.save({.sequence = 2}), 1), "");
}

TEST(State, TheKindMustBeTheSame) {
  StateMemory memory;
  EXPECT_THAT(memory.load(memory.save(), 0), HasSubstr("whole context"));
  EXPECT_THAT(memory.load(memory.save({.sequence = 0})), HasSubstr("of a sequence"));
}

TEST(State, WhatDiffersIsNamed) {
  StateMemory memory;
  fill(memory);
  const auto bytes = memory.save();
  StateMemory model, type({.type_v = ElementType::f32}), windows({.window = 8});
  model.access.facts[0].second = "another model";
  EXPECT_THAT(model.load(bytes), HasSubstr("another model"));
  EXPECT_THAT(type.load(bytes), HasSubstr("values 32 x F16"));
  EXPECT_THAT(windows.load(bytes), HasSubstr("part 1"));
}

TEST(State, PartialOnesTakeASequenceBack) {
  StateMemory memory({.n_cells = 1024, .window = 20});
  memory.decode({0}, 100);
  const auto then = memory.content(0);
  const auto bytes = memory.save({.sequence = 0, .partial_only = true});
  EXPECT_LT(bytes.size(), memory.save({.sequence = 0}).size());
  memory.decode({0}, 500);
  ASSERT_EQ(memory.load(bytes, 0), "");
  EXPECT_EQ(memory.content(0), then);
}

TEST(State, PartialOnesNeedWhatTheyBuildOn) {
  StateMemory memory({.n_cells = 1024, .window = 20});
  memory.decode({0}, 100);
  const auto bytes = memory.save({.sequence = 0, .partial_only = true});
  memory->remove(0, 50, -1);
  const auto before = memory.contents();
  EXPECT_THAT(memory.load(bytes, 0), HasSubstr("position 50"));
  EXPECT_THAT(memory.load(bytes, 1), HasSubstr("position 0"));
  EXPECT_EQ(memory.contents(), before);
}

TEST(State, CutAnywhereItChangesNothing) {
  StateMemory memory({.window = 20}), other({.window = 20});
  fill(memory);
  other.decode({2}, 30);
  const auto before = other.contents();
  const auto bytes = memory.save({}, {1, 2, 3});
  std::vector<std::size_t> lengths = boundaries(bytes);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) lengths.push_back(random() % bytes.size());
  for (const std::size_t length : lengths) {
    EXPECT_NE(other.load(std::span(bytes).first(length)), "") << length;
  }
  EXPECT_EQ(other.contents(), before);
}

TEST(State, FlippedAnywhereItChangesNothing) {
  StateMemory memory({.window = 20}), other({.window = 20});
  fill(memory);
  other.decode({2}, 30);
  const auto before = other.contents();
  auto bytes = memory.save({}, {1, 2, 3});
  std::vector<std::size_t> places = boundaries(bytes);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) places.push_back(random() % bytes.size());
  for (const std::size_t place : places) {
    if (place == bytes.size()) continue;
    const auto flip = static_cast<std::byte>(1U << random() % 8);
    bytes[place] ^= flip;
    EXPECT_THAT(other.load(bytes), HasSubstr("state: ")) << place;
    bytes[place] ^= flip;
  }
  EXPECT_EQ(other.contents(), before);
  EXPECT_EQ(other.load(bytes), "");
}

// Makes all checksums right again, as far as lengths allow.
void mend(std::vector<std::byte>& bytes) {
  const auto put = [&](std::size_t offset, std::size_t begin, std::size_t n) {
    const std::uint64_t sum = XXH3_64bits(bytes.data() + begin, n);
    std::memcpy(bytes.data() + offset, &sum, sizeof(sum));
  };
  put(32, 0, 32);
  std::size_t offset = kStateHeaderBytes;
  while (offset + kStateSectionBytes <= bytes.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + offset + 8, sizeof(length));
    if (length > bytes.size() - offset - kStateSectionBytes) return;
    put(offset + 16 + length, offset, 16 + length);
    offset += kStateSectionBytes + length;
  }
}

TEST(State, HostileNumbersAreRefusedOrHarmless) {
  StateMemory memory({.window = 20});
  fill(memory);
  const auto good = memory.save({}, {1, 2, 3});
  std::mt19937 random(7);
  const std::uint32_t numbers[] = {0,          1,          2,          3,         0x7fffffff,
                                   0x80000000, 0xffffffff, 0x10000000, 0xfffffff, 255};
  StateMemory other({.window = 20});
  for (int i = 0; i < 1500; ++i) {
    auto bytes = good;
    const std::size_t end = i % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 4000);
    for (std::uint32_t n = random() % 3; n-- < 3;) {
      const std::size_t place = random() % (end / 4) * 4;
      std::memcpy(bytes.data() + place, &numbers[random() % std::size(numbers)], 4);
    }
    mend(bytes);
    const auto before = other.contents();
    if (other.load(bytes) != "") {
      ASSERT_EQ(other.contents(), before);
    }
    other.decode({0}, 3);
    if (i % 16 == 0) other->clear(true);
  }
}

TEST(State, NumbersThatAreNotFiniteAreRefused) {
  StateMemory memory;
  memory.decode({0}, 10);
  auto bytes = memory.save();
  const std::uint16_t infinity = 0x7c00;
  std::memcpy(bytes.data() + bytes.size() - 8 - 2, &infinity, 2);
  mend(bytes);
  EXPECT_THAT(memory.load(bytes), HasSubstr("section DATA 1: cell 9 has numbers that are not finite"));
}

class CompressedState : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_zstd()) GTEST_SKIP() << "built without zstd";
    fill(memory_);
    other_.decode({2}, 30);
    before_ = other_.contents();
  }
  std::vector<std::byte> save() const { return save_state(memory_.access, {}, {}, Compression::zstd); }

  StateMemory memory_{{.window = 20}}, other_{{.window = 20}};
  std::vector<StateMemory::Content> before_;
};

TEST_F(CompressedState, BringsBackEveryBit) {
  ASSERT_EQ(other_.load(save()), "");
  EXPECT_EQ(other_.contents(), memory_.contents());
}

TEST_F(CompressedState, IsAsLongAsIsSaid) {
  const auto bytes = save();
  EXPECT_EQ(state_bytes(memory_.access, {}, 0, Compression::zstd), bytes.size());
  const TempDir folder;
  save_state_file(memory_.access, {}, {}, folder / "state", Compression::zstd);
  EXPECT_EQ(read_bytes(folder / "state"), bytes);
}

TEST_F(CompressedState, IsSmallerWhereThingsRepeat) {
  memory_->clear(true);
  for (std::int32_t i = 0; i < 8; ++i) memory_.decode({0}, 16);
  for (const std::size_t part : {0U, 1U}) {
    for (const auto& storage : memory_->storages(part)) storage->clear();
  }
  EXPECT_LT(save().size(), memory_.save().size() / 2);
}

TEST_F(CompressedState, CutOrFlippedAnywhereItChangesNothing) {
  auto bytes = save();
  std::vector<std::size_t> places = boundaries(bytes);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) places.push_back(random() % bytes.size());
  for (const std::size_t place : places) {
    if (place == bytes.size()) continue;
    EXPECT_NE(other_.load(std::span(bytes).first(place)), "") << place;
    const auto flip = static_cast<std::byte>(1U << random() % 8);
    bytes[place] ^= flip;
    EXPECT_THAT(other_.load(bytes), HasSubstr("state: ")) << place;
    bytes[place] ^= flip;
  }
  EXPECT_EQ(other_.contents(), before_);
}

// Checksums are right, so that it comes to decompressing.
TEST_F(CompressedState, WithWrongFramesChangesNothing) {
  const auto good = save();
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    auto bytes = good;
    const std::size_t place = kStateHeaderBytes + random() % (bytes.size() - kStateHeaderBytes);
    bytes[place] ^= static_cast<std::byte>(1U << random() % 8);
    mend(bytes);
    const auto before = other_.contents();
    if (other_.load(bytes) != "") {
      ASSERT_EQ(other_.contents(), before);
    }
  }
}

// The last section, replaced by one frame of as many zeros.
std::vector<std::byte> with_frame_of(std::vector<std::byte> bytes, std::size_t n_zeros) {
  const auto places = boundaries(bytes);
  const std::size_t section = places[places.size() - 5];
  const auto frame = zstd_compress(std::vector<std::byte>(n_zeros));
  bytes.resize(section + 16);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  bytes.resize(bytes.size() + 8);
  const std::uint64_t content = frame.size(), whole = bytes.size();
  std::memcpy(bytes.data() + section + 8, &content, sizeof(content));
  std::memcpy(bytes.data() + 24, &whole, sizeof(whole));
  mend(bytes);
  return bytes;
}

TEST_F(CompressedState, IsNoLongerThanItsCellsSay) {
  const MemoryState state = memory_->describe({});
  const std::size_t right = state.parts[1].cells.size() * memory_->storages(1)[1]->cell_bytes();
  const auto bytes = save();
  for (const std::size_t n : {std::size_t{0}, right - 1, right + 1, std::size_t{50'000'000}}) {
    EXPECT_THAT(other_.load(with_frame_of(bytes, n)), HasSubstr("section DATA 65537: decompressing")) << n;
  }
  EXPECT_EQ(other_.contents(), before_);
  EXPECT_EQ(other_.load(with_frame_of(bytes, right)), "");
}

TEST_F(CompressedState, TakesNoMoreThanTheMemoryHas) {
  StateMemory larger({.n_sequences = 3, .n_cells = 4096, .window = 20});
  larger.decode({0}, 3000);
  EXPECT_THAT(other_.load(save_state(larger.access, {}, {}, Compression::zstd)),
              HasSubstr("DATA 0: 3000 cells find no room"));
  EXPECT_EQ(other_.contents(), before_);
}

TEST(State, WithoutZstdCompressedOnesAreRefused) {
  if (has_zstd()) GTEST_SKIP() << "built with zstd";
  StateMemory memory;
  EXPECT_THROW(save_state(memory.access, {}, {}, Compression::zstd), Error);
  auto bytes = memory.save();
  bytes[16] = std::byte{2};
  mend(bytes);
  EXPECT_THAT(memory.load(bytes), HasSubstr("zstd"));
}

TEST(State, FilesHoldWhatBuffersHold) {
  const TempDir folder;
  StateMemory memory, other;
  fill(memory);
  const auto bytes = memory.save({}, {4, 5});
  EXPECT_EQ(save_state_file(memory.access, {}, std::vector<Token>{4, 5}, folder / "state"), bytes.size());
  EXPECT_EQ(read_bytes(folder / "state"), bytes);
  EXPECT_EQ(read_state_file_tokens(folder / "state"), (std::vector<Token>{4, 5}));
  const LoadedState loaded = load_state_file(other.access, {}, folder / "state");
  EXPECT_EQ(loaded.n_bytes, bytes.size());
  EXPECT_EQ(other.contents(), memory.contents());
}

TEST(State, AFileThatIsNoneIsRefused) {
  const TempDir folder;
  StateMemory memory;
  EXPECT_THROW(load_state_file(memory.access, {}, folder / "missing"), Error);
  write_bytes(folder / "short", std::vector<std::byte>(7));
  EXPECT_THROW(load_state_file(memory.access, {}, folder / "short"), Error);
  auto bytes = memory.save();
  bytes.push_back(std::byte{0});
  write_bytes(folder / "long", bytes);
  EXPECT_THROW(load_state_file(memory.access, {}, folder / "long"), Error);
}

}  // namespace
}  // namespace quipu::test
