// Cells, places and pages of a memory that forgets nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/test_memory.h"
#include "quipu/error.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

KvMemoryParams unified(std::size_t n_cells, std::size_t n_sequences) {
  return {.n_sequences = n_sequences, .n_cells = n_cells, .unified = true, .n_ubatch = 64};
}
KvMemoryParams per_sequence(std::size_t n_cells, std::size_t n_sequences) {
  return {.n_sequences = n_sequences, .n_cells = n_cells, .unified = false, .n_ubatch = 64};
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(KvMemory, TokensGetPlacesOneAfterTheOther) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 20));
  memory.decode(run_of(1, 0, 3));
  EXPECT_EQ(memory.places(0), count(0, 20));
  EXPECT_EQ(memory.places(1), count(0, 3));
  EXPECT_EQ(memory.tags(0), count(1, 21));
  EXPECT_EQ(memory.tags(1), count(21, 24));
}

TEST(KvMemory, PlacesDoNotDependOnTheFirstPosition) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 100, 5));
  EXPECT_EQ(memory.places(0), count(0, 5));
  EXPECT_EQ(memory.positions(0), count(100, 105));
}

TEST(KvMemory, RemovingATailKeepsTheRest) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 40));
  EXPECT_TRUE(memory->remove(0, 21, -1));
  EXPECT_EQ(memory.positions(0), count(0, 21));
  EXPECT_EQ(memory.tags(0), count(1, 22));
  EXPECT_EQ(memory->max_position(0), 20);
}

TEST(KvMemory, ARemovedTailGivesItsPlacesBack) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 40));
  memory->remove(0, 21, -1);
  memory.decode(run_of(0, 21, 2));
  EXPECT_EQ(memory.places(0), count(0, 23));
}

TEST(KvMemory, ARemovedMiddleLeavesAHole) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 40));
  EXPECT_TRUE(memory->remove(0, 5, 33));
  memory.decode(run_of(0, 40, 1));
  EXPECT_EQ(memory.places(0), count(0, 5) + count(33, 41));
  EXPECT_EQ(memory.positions(0), count(0, 5) + count(33, 41));
}

TEST(KvMemory, AHoleAtTheEndIsNotAPlaceTaken) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 40));
  memory->remove(0, 5, 33);
  memory->remove(0, 33, -1);
  memory.decode(run_of(0, 5, 1));
  EXPECT_EQ(memory.places(0), count(0, 6));
}

TEST(KvMemory, ARemovedSequenceStartsAnew) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory.decode(run_of(1, 0, 4));
  EXPECT_TRUE(memory->remove(0, -1, -1));
  EXPECT_EQ(memory->max_position(0), -1);
  EXPECT_EQ(memory->min_position(0), -1);
  memory.decode(run_of(0, 7, 2));
  EXPECT_EQ(memory.places(0), count(0, 2));
  EXPECT_EQ(memory.positions(1), count(0, 4));
}

TEST(KvMemory, RemovingAnEmptyRangeChangesNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 4));
  EXPECT_TRUE(memory->remove(0, 3, 3));
  EXPECT_TRUE(memory->remove(0, 3, 2));
  EXPECT_TRUE(memory->remove(0, 100, -1));
  EXPECT_EQ(memory.positions(0), count(0, 4));
}

TEST(KvMemory, RemovedCellsMakeRoom) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 256));
  EXPECT_FALSE(memory.decode(run_of(0, 256, 1)));
  memory->remove(0, 5, 100);  // neither end on a page
  EXPECT_TRUE(memory.decode(run_of(0, 256, 95)));
  EXPECT_FALSE(memory.decode(run_of(0, 351, 1)));
}

TEST(KvMemory, EverySequenceCanEndInTheMiddleOfAPage) {
  TestMemory memory(unified(256, 16));
  for (std::int32_t s = 0; s < 15; ++s) ASSERT_TRUE(memory.decode(run_of(s, 0, 17)));
  EXPECT_TRUE(memory.decode(run_of(15, 0, 1)));
  EXPECT_FALSE(memory.decode(run_of(15, 1, 1)));
}

TEST(KvMemory, ABatchWithoutRoomChangesNothing) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 200));
  EXPECT_FALSE(memory.decode(run_of(1, 0, 57)));
  EXPECT_EQ(memory->max_position(1), -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 200U);
  EXPECT_TRUE(memory.decode(run_of(1, 0, 56)));
}

TEST(KvMemory, PreparingChangesNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 10));
  const std::vector<std::int32_t> positions{10, 11}, sequences{0, 0};
  const std::vector<std::uint32_t> offsets{0, 1, 2};
  EXPECT_EQ(memory->prepare({positions, offsets, sequences}, 1), PrepareResult::ready);
  EXPECT_EQ(memory->n_micro_batches(), 2U);
  EXPECT_EQ(memory.positions(0), count(0, 10));
  EXPECT_EQ(memory->max_position(0), 9);
}

TEST(KvMemory, ABatchIsCutIntoMicroBatchesInOrder) {
  TestMemory memory({.n_sequences = 1, .n_cells = 256, .unified = true, .n_ubatch = 7});
  memory.decode(run_of(0, 0, 16));
  EXPECT_EQ(memory.micro_batch_sizes, (std::vector<std::size_t>{7, 7, 2}));
  EXPECT_EQ(memory.tags(0), count(1, 17));
}

TEST(KvMemory, ACopySharesItsPages) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  const std::size_t n_free = memory->cells(0).n_free_pages();
  memory->copy(0, 1, -1, -1);
  EXPECT_EQ(memory->cells(0).n_free_pages(), n_free);
  EXPECT_EQ(memory.cells(1), memory.cells(0));
}

TEST(KvMemory, WritingAfterACopyLeavesTheOtherSequenceAlone) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  memory.decode(run_of(1, 40, 2));
  memory.decode(run_of(0, 40, 1));
  EXPECT_EQ(memory.tags(0), count(1, 41) + std::vector{43});
  EXPECT_EQ(memory.tags(1), count(1, 43));
}

TEST(KvMemory, OnlyTheLastPageIsCopiedForAWrite) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  const std::size_t n_free = memory->cells(0).n_free_pages();
  memory.decode(run_of(1, 40, 1));
  EXPECT_EQ(memory->cells(0).n_free_pages(), n_free - 1);
}

TEST(KvMemory, ASharedCellCountsOnce) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 0, 200));
  memory->copy(0, 1, -1, -1);
  memory->copy(0, 2, 0, 101);  // its last page is a copy, its cells are not
  EXPECT_EQ(memory->cells(0).n_used_cells(), 200U);
  EXPECT_TRUE(memory.decode(run_of(1, 200, 56)));
  EXPECT_FALSE(memory.decode(run_of(2, 101, 1)));
}

TEST(KvMemory, ACellStaysUntilItsLastSequenceIsGone) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, 0, 10);
  memory->remove(0, -1, -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 10U);
  EXPECT_EQ(memory.tags(1), count(1, 11));
  memory->remove(1, -1, -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 0U);
  EXPECT_EQ(memory->cells(0).n_free_pages(), memory->cells(0).config().n_pages);
}

TEST(KvMemory, CopyOfARangeTakesOnlyItsCells) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, 5, 10);
  EXPECT_EQ(memory.cells(1), (std::vector<Cell>{{5, 5, 6}, {6, 6, 7}, {7, 7, 8}, {8, 8, 9}, {9, 9, 10}}));
  EXPECT_EQ(memory.positions(0), count(0, 40));
  memory.decode(run_of(1, 10, 1));
  EXPECT_EQ(memory.places(1), count(5, 11));
}

TEST(KvMemory, CopyReplacesWhatTheTargetHeldInTheRange) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 20));
  memory.decode(run_of(1, 0, 30));
  memory->copy(0, 1, 10, -1);
  EXPECT_EQ(memory.positions(1), count(0, 20));
  EXPECT_EQ(memory.tags(1), count(21, 31) + count(11, 21));
  EXPECT_EQ(memory.tags(0), count(1, 21));
}

TEST(KvMemory, CopyOfAnEmptySequenceEmptiesTheRange) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(1, 0, 30));
  memory->copy(0, 1, 4, 8);
  EXPECT_EQ(memory.positions(1), count(0, 4) + count(8, 30));
  memory->copy(0, 1, -1, -1);
  EXPECT_EQ(memory->max_position(1), -1);
}

TEST(KvMemory, CopyOntoItselfChangesNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 30));
  memory->copy(0, 0, 3, 7);
  EXPECT_EQ(memory.positions(0), count(0, 30));
}

TEST(KvMemory, CopiesChain) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 0, 30));
  memory->copy(0, 1, -1, -1);
  memory->copy(1, 2, -1, -1);
  memory->remove(0, -1, -1);
  memory->remove(1, 3, -1);
  EXPECT_EQ(memory.tags(2), count(1, 31));
}

TEST(KvMemory, CopiedCellsThatWouldCollideAreAppended) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 4));
  memory.decode(run_of(1, 50, 3));
  memory->copy(0, 1, -1, 10);
  EXPECT_EQ(
      memory.cells(1),
      (std::vector<Cell>{{0, 50, 5}, {1, 51, 6}, {2, 52, 7}, {3, 3, 4}, {4, 0, 1}, {5, 1, 2}, {6, 2, 3}}));
  EXPECT_EQ(memory->cells(0).n_used_cells(), 7U);
  EXPECT_EQ(memory.tags(0), count(1, 5));
}

TEST(KvMemory, CopyingBackWhatWasSharedRestoresTheSharing) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  memory->remove(1, 35, -1);
  memory->copy(0, 1, 35, -1);
  EXPECT_EQ(memory.cells(1), memory.cells(0));
  EXPECT_EQ(memory->cells(0).n_free_pages(), memory->cells(0).config().n_pages - 3);
}

TEST(KvMemory, RemovingFromASharedPageLeavesTheOtherSequenceAlone) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  memory->remove(0, 3, 35);
  EXPECT_EQ(memory.tags(0), count(1, 4) + count(36, 41));
  EXPECT_EQ(memory.tags(1), count(1, 41));
}

TEST(KvMemory, SequencesThatLoseTheSameCellsShareAgain) {
  TestMemory memory(unified(256, 4));
  memory.decode(run_of(0, 0, 256));
  for (std::int32_t s = 1; s < 4; ++s) memory->copy(0, s, -1, -1);
  for (std::int32_t s = 0; s < 4; ++s) EXPECT_TRUE(memory->remove(s, 100, 200));
  EXPECT_EQ(memory->cells(0).n_free_pages(), memory->cells(0).config().n_pages - 11);
}

TEST(KvMemory, RemovingFromEverySequenceNeedsNoPages) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 0, 100));
  memory->copy(0, 1, -1, -1);
  memory.decode(run_of(1, 100, 3));
  memory.decode(run_of(2, 0, 12));
  const std::size_t n_free = memory->cells(0).n_free_pages();
  EXPECT_TRUE(memory->remove(kAnySequence, 5, 10));
  EXPECT_EQ(memory->cells(0).n_free_pages(), n_free);
  EXPECT_EQ(memory.positions(0), count(0, 5) + count(10, 100));
  EXPECT_EQ(memory.positions(1), count(0, 5) + count(10, 103));
  EXPECT_EQ(memory.positions(2), count(0, 5) + count(10, 12));
}

TEST(KvMemory, AJoinedTokenIsOneCellForAllItsSequences) {
  TestMemory memory(unified(256, 3));
  std::vector<TestToken> tokens;
  for (std::int32_t i = 0; i < 20; ++i) tokens.push_back({i, {0, 2}});
  memory.decode(tokens);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 20U);
  EXPECT_EQ(memory.cells(0), memory.cells(2));
  EXPECT_EQ(memory->max_position(1), -1);
}

TEST(KvMemory, SequencesMayPartInTheMiddleOfABatch) {
  TestMemory memory(unified(256, 3));
  std::vector<TestToken> tokens;
  for (std::int32_t i = 0; i < 5; ++i) tokens.push_back({i, {0, 1, 2}});
  for (std::int32_t s = 0; s < 3; ++s) tokens.push_back({5, {s}});
  memory.decode(tokens);
  EXPECT_EQ(memory.tags(0), count(1, 6) + std::vector{6});
  EXPECT_EQ(memory.tags(1), count(1, 6) + std::vector{7});
  EXPECT_EQ(memory.tags(2), count(1, 6) + std::vector{8});
  EXPECT_EQ(memory.micro_batch_sizes, (std::vector<std::size_t>{5, 3}));  // the page is computed, then copied
}

TEST(KvMemory, CopiesCanGoOnTogether) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 5));
  memory->copy(0, 1, -1, -1);
  memory.decode({{5, {0, 1}}, {6, {1, 0}}});
  EXPECT_EQ(memory.cells(0), memory.cells(1));
  EXPECT_EQ(memory->cells(0).n_free_pages(), memory->cells(0).config().n_pages - 1);
}

TEST(KvMemory, SequencesThatPartedAndCameBackCanGoOnTogether) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 0, 5));
  memory->copy(0, 1, -1, -1);
  memory->copy(0, 2, -1, -1);
  memory.decode(run_of(1, 5, 1));
  memory->remove(1, 5, -1);
  const std::vector<std::int32_t> both{0, 1};
  ASSERT_TRUE(memory->same_cells(both));
  memory.decode({{5, {0, 1}}});
  EXPECT_EQ(memory.cells(0), memory.cells(1));
  EXPECT_EQ(memory.tags(2), count(1, 6));
}

TEST(KvMemory, SameCellsAreTheVerySame) {
  TestMemory memory(unified(256, 4));
  const std::vector<std::int32_t> pair{0, 1}, empties{2, 3}, mixed{0, 2};
  EXPECT_TRUE(memory->same_cells(pair));
  memory.decode(run_of(0, 0, 20));
  memory.decode(run_of(1, 0, 20));
  EXPECT_FALSE(memory->same_cells(pair));
  EXPECT_TRUE(memory->same_cells(empties));
  EXPECT_FALSE(memory->same_cells(mixed));
  memory->copy(0, 1, -1, -1);
  EXPECT_TRUE(memory->same_cells(pair));
  memory->remove(1, 4, 5);
  EXPECT_FALSE(memory->same_cells(pair));
}

TEST(KvMemory, SteppingBackTakesAMicroBatchFromEverySequence) {
  TestMemory memory({.n_sequences = 3, .n_cells = 256, .unified = true, .n_ubatch = 4});
  memory.decode(run_of(0, 0, 5));
  memory->copy(0, 1, -1, -1);
  const std::size_t n_free = memory->cells(0).n_free_pages();
  // The second micro-batch, which holds tokens of all three, fails.
  memory.decode({{5, {0}}, {6, {0}}, {7, {0}}, {8, {0}}, {9, {0}}, {5, {1}}, {0, {2}}, {1, {2}}, {2, {2}}},
                1);
  EXPECT_EQ(memory.positions(0), count(0, 9));
  EXPECT_EQ(memory.tags(1), count(1, 6));
  EXPECT_EQ(memory->max_position(2), -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 9U);
  EXPECT_EQ(memory->cells(0).n_free_pages(), n_free - 1);
}

TEST(KvMemory, SteppingBackAJoinedTokenTakesItFromBoth) {
  TestMemory memory(unified(256, 2));
  memory.decode({{0, {0, 1}}, {1, {0, 1}}}, 0);
  EXPECT_EQ(memory->max_position(0), -1);
  EXPECT_EQ(memory->max_position(1), -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 0U);
}

TEST(KvMemory, SequencesOfTheirOwnHaveRoomOfTheirOwn) {
  TestMemory memory(per_sequence(256, 2));
  EXPECT_TRUE(memory.decode(run_of(0, 0, 256)));
  EXPECT_FALSE(memory.decode(run_of(0, 256, 1)));
  EXPECT_TRUE(memory.decode(run_of(1, 0, 256)));
  EXPECT_FALSE(memory.decode(run_of(1, 256, 1)));
}

TEST(KvMemory, ACopyTakesRoomOfTheTargetsOwn) {
  TestMemory memory(per_sequence(256, 2));
  memory.decode(run_of(0, 0, 250));
  memory->copy(0, 1, -1, -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 250U);
  EXPECT_FALSE(memory.decode(run_of(1, 250, 7)));
  EXPECT_TRUE(memory.decode(run_of(1, 250, 6)));
  EXPECT_TRUE(memory.decode(run_of(0, 250, 6)));
}

TEST(KvMemory, KeepRemovesAllOthers) {
  TestMemory memory(unified(256, 3));
  for (std::int32_t s = 0; s < 3; ++s) memory.decode(run_of(s, 0, 10));
  memory->keep(1);
  EXPECT_EQ(memory->max_position(0), -1);
  EXPECT_EQ(memory.tags(1), count(11, 21));
  EXPECT_EQ(memory->max_position(2), -1);
  EXPECT_EQ(memory->cells(0).n_used_cells(), 10U);
}

TEST(KvMemory, ClearEmptiesAllSequences) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 10));
  memory->copy(0, 1, -1, -1);
  memory->clear(false);
  EXPECT_EQ(memory->max_position(0), -1);
  EXPECT_EQ(memory->max_position(1), -1);
  EXPECT_EQ(memory->cells(0).n_free_pages(), memory->cells(0).config().n_pages);
  EXPECT_TRUE(memory.decode(run_of(1, 0, 256)));
}

TEST(KvMemory, ClearingDataZeroesIt) {
  KvMemoryParams params = unified(256, 1);
  KvPart part{.config = kv_part_config(params, 0), .storages = {}};
  auto storage = std::make_unique<TagStorage>(part.config.n_pages);
  TagStorage& tags = *storage;
  part.storages.push_back(std::move(storage));
  std::vector<KvPart> parts;
  parts.push_back(std::move(part));
  KvMemory memory(params, std::move(parts));
  tags.at(3, 4).tag = 5;
  memory.clear(false);
  EXPECT_EQ(tags.at(3, 4).tag, 5);
  memory.clear(true);
  EXPECT_EQ(tags.at(3, 4).tag, 0);
}

TEST(KvMemory, TellsTheLowestAndHighestPosition) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 3, 30));
  EXPECT_EQ(memory->min_position(0), 3);
  EXPECT_EQ(memory->max_position(0), 32);
  memory->remove(0, -1, 20);
  memory->remove(0, 30, -1);
  EXPECT_EQ(memory->min_position(0), 20);
  EXPECT_EQ(memory->max_position(0), 29);
  EXPECT_EQ(memory->min_position(1), -1);
}

TEST(KvMemory, OperationsOnSequencesThatAreNotThereAreErrors) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 4));
  for (const std::int32_t s : {-2, 2, 1000000}) {
    const std::string expected = "sequence " + std::to_string(s) + " is not in [0, 2)";
    EXPECT_THAT(message_of([&] { memory->remove(s, 0, 1); }), HasSubstr(expected));
    EXPECT_THAT(message_of([&] { memory->copy(0, s, 0, 1); }), HasSubstr(expected));
    EXPECT_THAT(message_of([&] { memory->copy(s, 0, 0, 1); }), HasSubstr(expected));
    EXPECT_THAT(message_of([&] { memory->keep(s); }), HasSubstr(expected));
    EXPECT_THAT(message_of([&] { static_cast<void>(memory->min_position(s)); }), HasSubstr(expected));
    EXPECT_THAT(message_of([&] { static_cast<void>(memory->max_position(s)); }), HasSubstr(expected));
  }
  EXPECT_THAT(message_of([&] { memory->keep(kAnySequence); }), HasSubstr("sequence -1"));
  EXPECT_EQ(memory.positions(0), count(0, 4));
}

TEST(KvMemory, ARemovalThatFindsNoPageChangesNothing) {
  // Two sequences of 256 cells share all pages; four pages are spare. Holes of one cell each need a page
  // apart.
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 256));
  memory->copy(0, 1, -1, -1);
  std::int32_t page = 0;
  while (memory->remove(1, 16 * page, 16 * page + 1)) ++page;
  EXPECT_EQ(page, 4);
  EXPECT_EQ(memory.positions(1).size(), 252U);
  EXPECT_THAT(message_of([&] { memory->copy(0, 1, 129, 130), memory->copy(0, 1, 0, 1); }), "no error");
  EXPECT_EQ(memory.positions(1).size(), 253U);
}

TEST(KvMemory, ACopyThatFindsNoPageIsAnErrorThatChangesNothing) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 256));
  for (std::int32_t page = 0; page < 4; ++page) memory->copy(0, 1, 16 * page, 16 * page + 1);
  const auto before = memory.cells(1);
  EXPECT_THAT(message_of([&] { memory->copy(0, 1, 64, 65); }), HasSubstr("no page is left"));
  EXPECT_EQ(memory.cells(1), before);
}

TEST(KvMemory, TooManyCellsAreRefused) {
  EXPECT_THAT(message_of([] { kv_part_config(unified(0xFFFFFFFF, 1), 0); }), HasSubstr("4294967295 cells"));
  EXPECT_THAT(message_of([] { kv_part_config(per_sequence(1U << 30, 4), 0); }), HasSubstr("cells"));
}

TEST(KvMemory, ThePoolHasTwoPagesMoreForEachSequence) {
  EXPECT_EQ(kv_part_config(unified(512, 3), 0).n_pages, 512U / 16 + 6);
  EXPECT_EQ(kv_part_config(per_sequence(256, 3), 0).n_pages, 3 * 256U / 16 + 6);
}

}  // namespace
}  // namespace quipu::test
