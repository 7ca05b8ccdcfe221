// Memories with a sliding window, alone and beside a part that sees everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/test_memory.h"
#include "quipu/error.h"

namespace quipu::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kWindow = 16;

KvMemoryParams params(std::size_t n_sequences = 1, bool is_unified = true, std::size_t n_cells = 1024) {
  return {.n_sequences = n_sequences, .n_cells = n_cells, .unified = is_unified, .n_ubatch = 8};
}

TEST(WindowMemory, HasRoomForTheWindowsAndAMicroBatch) {
  EXPECT_EQ(kv_part_config(params(1), kWindow).n_cells, 256U);
  EXPECT_EQ(kv_part_config(params(16), kWindow).n_cells, 512U);  // 16 * 16 + 8
  EXPECT_EQ(kv_part_config(params(16, false), kWindow).n_cells, 256U);
  EXPECT_EQ(kv_part_config(params(1), 4096).n_cells, 1024U);  // never more than a full part
}

TEST(WindowMemory, ForgetsOnlyWhenAPlaceIsNeeded) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 256));
  EXPECT_EQ(memory.positions(0, 1), count(0, 256));
  memory.decode(run_of(0, 256, 3));
  EXPECT_EQ(memory.positions(0, 1), count(3, 259));
  EXPECT_EQ(memory.positions(0, 0), count(0, 259));
}

TEST(WindowMemory, CellsHaveTheSamePlacesInEveryPart) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  EXPECT_EQ(memory.places(0, 1), count(344, 600));
  EXPECT_EQ(memory.tags(0, 1), count(345, 601));
}

TEST(WindowMemory, AFullPartLimitsTheSequence) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 1024));
  EXPECT_FALSE(memory.decode(run_of(0, 1024, 1)));
}

TEST(WindowMemory, AWindowAloneGoesOnForever) {
  TestMemory memory(params(), {kWindow});
  for (std::int32_t first = 0; first < 5000; first += 100) ASSERT_TRUE(memory.decode(run_of(0, first, 100)));
  EXPECT_EQ(memory->max_position(0), 4999);
  EXPECT_EQ(memory.places(0), count(5000 - 256, 5000));
}

TEST(WindowMemory, TheLowestPositionIsTheHighestOfTheParts) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 256));
  EXPECT_EQ(memory->min_position(0), 0);
  memory.decode(run_of(0, 256, 344));
  EXPECT_EQ(memory->min_position(0), 344);
  EXPECT_EQ(memory->max_position(0), 599);
}

TEST(WindowMemory, ATailCanGoIfTheWindowBeforeItIsHeld) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 600));         // 344 and above are held
  EXPECT_TRUE(memory->remove(0, 359, -1));  // 359 sees 344 to 358
  EXPECT_EQ(memory->max_position(0), 358);
  EXPECT_EQ(memory.positions(0, 1), count(344, 359));
}

TEST(WindowMemory, ATailStaysIfTheWindowBeforeItIsForgotten) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  const auto full = memory.cells(0, 0);
  const auto windowed = memory.cells(0, 1);
  EXPECT_FALSE(memory->remove(0, 358, -1));
  EXPECT_FALSE(memory->remove(0, 100, -1));
  EXPECT_EQ(memory.cells(0, 0), full);
  EXPECT_EQ(memory.cells(0, 1), windowed);
  EXPECT_EQ(memory->max_position(0), 599);
}

TEST(WindowMemory, AWindowAloneKeepsATailInTheSameWay) {
  TestMemory memory(params(), {kWindow});
  memory.decode(run_of(0, 0, 600));
  EXPECT_FALSE(memory->remove(0, 358, -1));
  EXPECT_FALSE(memory->remove(0, 100, -1));
  EXPECT_EQ(memory->max_position(0), 599);
  EXPECT_TRUE(memory->remove(0, 359, -1));
  EXPECT_EQ(memory->max_position(0), 358);
}

TEST(WindowMemory, AWholeSequenceCanAlwaysGo) {
  for (const std::vector<std::uint32_t>& windows : {std::vector<std::uint32_t>{0, kWindow}, {kWindow}}) {
    TestMemory memory(params(), windows);
    memory.decode(run_of(0, 40, 600));
    EXPECT_TRUE(memory->remove(0, 40, -1));
    EXPECT_EQ(memory->max_position(0), -1);
    memory.decode(run_of(0, 0, 5));
    EXPECT_EQ(memory.places(0, windows.size() - 1), count(0, 5));
  }
}

TEST(WindowMemory, ASequenceIsNotEmptyBecauseItsWindowIs) {
  TestMemory memory(params(1, true, 1024), {1});  // every token sees only itself
  memory.decode(run_of(0, 0, 300));
  memory->remove(0, 200, -1);
  EXPECT_EQ(memory->max_position(0), 199);
  EXPECT_TRUE(memory->remove(0, 20, -1));
  EXPECT_EQ(memory->max_position(0), 19);
  EXPECT_EQ(memory->min_position(0), 19);
  memory.decode(run_of(0, 20, 1));
  EXPECT_EQ(memory.positions(0), (std::vector{20}));
}

TEST(WindowMemory, RemovingAndDecodingAgainUsesNoMoreAndMoreCells) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(memory->remove(0, 560, -1));
    ASSERT_TRUE(memory.decode(run_of(0, 560, 40)));
  }
  EXPECT_EQ(memory->cells(0).n_used_cells(), 600U);
  EXPECT_LE(memory->cells(1).n_used_cells(), 256U);
}

TEST(WindowMemory, AMiddleCanGoFromAllParts) {
  TestMemory memory(params(), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  EXPECT_TRUE(memory->remove(0, 10, 590));
  EXPECT_EQ(memory.positions(0, 0), count(0, 10) + count(590, 600));
  EXPECT_EQ(memory.positions(0, 1), count(590, 600));
}

TEST(WindowMemory, SteppingBackLeavesTheWindowWhole) {
  TestMemory memory({.n_sequences = 1, .n_cells = 1024, .unified = true, .n_ubatch = 200}, {0, kWindow});
  memory.decode(run_of(0, 0, 200));
  memory.decode(run_of(0, 200, 200), 0);
  EXPECT_EQ(memory->max_position(0), 199);
  const auto held = memory.positions(0, 1);
  EXPECT_EQ(std::vector(held.end() - (kWindow - 1), held.end()), count(185, 200));
  EXPECT_TRUE(memory.decode(run_of(0, 200, 200)));
}

TEST(WindowMemory, AMicroBatchDoesNotForgetWhatItsFirstTokenSees) {
  TestMemory memory({.n_sequences = 1, .n_cells = 1024, .unified = true, .n_ubatch = 240}, {0, kWindow});
  memory.decode(run_of(0, 0, 240));
  const std::vector<std::int32_t> positions = count(240, 480);
  const std::vector<std::int32_t> sequences(240, 0);
  std::vector<std::uint32_t> offsets(241);
  for (std::uint32_t i = 0; i <= 240; ++i) offsets[i] = i;
  ASSERT_EQ(memory->prepare({positions, offsets, sequences}, 240), PrepareResult::ready);
  memory->commit({positions, offsets, sequences});
  EXPECT_EQ(memory.positions(0, 1).front(), 224);  // 256 cells: 16 before, 240 new; 240 sees 225 and above
}

TEST(WindowMemory, ASequenceForgetsItsOwnCellsFirst) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(1, 0, 100));
  memory.decode(run_of(0, 0, 300));
  EXPECT_EQ(memory.positions(1, 1), count(0, 100));
  EXPECT_EQ(memory.positions(0, 1), count(144, 300));
}

TEST(WindowMemory, ANewSequenceTakesThePlacesThatAnotherDoesNotNeed) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(0, 0, 256));
  EXPECT_TRUE(memory.decode(run_of(1, 0, 16)));
  EXPECT_EQ(memory.positions(1, 1), count(0, 16));
  EXPECT_EQ(memory.positions(0, 1), count(16, 256));
}

TEST(WindowMemory, ACellThatAnotherSequenceSeesIsNotForgotten) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(0, 0, 100));
  memory->copy(0, 1, -1, -1);
  memory.decode(run_of(0, 100, 500));
  EXPECT_EQ(memory.positions(1, 1), count(85, 100));
  EXPECT_TRUE(memory.decode(run_of(1, 100, 1)));
}

TEST(WindowMemory, SequencesOfTheirOwnForgetWithoutTouchingOthers) {
  TestMemory memory(params(2, false), {0, kWindow});
  memory.decode(run_of(0, 0, 200));
  memory->copy(0, 1, -1, -1);
  memory.decode(run_of(0, 200, 100));
  EXPECT_EQ(memory.positions(0, 1), count(44, 300));
  EXPECT_EQ(memory.positions(1, 1), count(0, 200));
}

TEST(WindowMemory, CopiesTakeWhatTheWindowHolds) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  memory->copy(0, 1, -1, -1);
  EXPECT_EQ(memory.cells(1, 0), memory.cells(0, 0));
  EXPECT_EQ(memory.cells(1, 1), memory.cells(0, 1));
  EXPECT_EQ(memory->min_position(1), 344);
}

TEST(WindowMemory, ACopyWithoutItsWindowIsRefusedAndChangesNothing) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(0, 0, 600));
  try {
    memory->copy(0, 1, 0, 100);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("has forgotten"));
  }
  EXPECT_EQ(memory->max_position(1), -1);
  EXPECT_EQ(memory->cells(1).n_cells_of(1), 0U);
}

TEST(WindowMemory, CollidingCopiesGetTheSamePlacesInEveryPart) {
  TestMemory memory(params(2), {0, kWindow});
  memory.decode(run_of(0, 0, 300));
  memory.decode(run_of(1, 400, 16));
  memory->copy(0, 1, 0, 10);  // forgotten by the window
  memory->copy(0, 1, 280, 300);
  const auto all = memory.cells(1, 0);
  for (const Cell& cell : memory.cells(1, 1)) EXPECT_THAT(all, ::testing::Contains(cell));
  EXPECT_EQ(all.size(), 46U);
  EXPECT_EQ(memory.cells(1, 1).size(), 36U);
}

}  // namespace
}  // namespace quipu::test
