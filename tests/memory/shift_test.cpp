// Positions that change: what a memory reports at once, and what it does to stored keys before the next run.
#include <gtest/gtest.h>

#include "memory/test_memory.h"
#include "quipu/log.h"

namespace quipu::test {
namespace {

using ::testing::Test;

KvMemoryParams unified(std::size_t n_cells, std::size_t n_sequences) {
  return {.n_sequences = n_sequences, .n_cells = n_cells, .unified = true, .n_ubatch = 64};
}

class ShiftedMemory : public Test {
 protected:
  ShiftedMemory() {
    set_log_sink([this](LogLevel, std::string_view) { ++n_lines; });
  }
  ~ShiftedMemory() override { set_log_sink({}); }

  int n_lines = 0;
};

TEST_F(ShiftedMemory, PositionsAreReportedAtOnce) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 10));
  memory->add(0, 4, -1, 100);
  EXPECT_EQ(memory.positions(0), count(0, 4) + count(104, 110));
  EXPECT_EQ(memory->max_position(0), 109);
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(10, 0));
}

TEST_F(ShiftedMemory, KeysAreTurnedBeforeTheNextRun) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 4));
  memory->add(0, 1, 3, 5);
  memory.decode(run_of(0, 20, 1));
  EXPECT_EQ(memory.turns(0), (std::vector<std::int32_t>{0, 5, 5, 0, 0}));
}

TEST_F(ShiftedMemory, SeveralChangesTurnKeysOnce) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 10, 4));
  memory->add(0, -1, -1, 3);
  memory->add(0, -1, -1, -5);
  memory.decode(run_of(0, 20, 1));
  EXPECT_EQ(memory.storage().n_rotations, 1);
  EXPECT_EQ(memory.turns(0), (std::vector<std::int32_t>{-2, -2, -2, -2, 0}));
}

TEST_F(ShiftedMemory, ChangesThatCancelTurnNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 10, 4));
  memory->add(0, -1, -1, 3);
  memory->add(0, -1, -1, -3);
  memory.decode(run_of(0, 20, 1));
  EXPECT_EQ(memory.storage().n_rotations, 0);
}

TEST_F(ShiftedMemory, CellsBelowZeroAreRemoved) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 40));
  memory->add(0, -1, -1, -30);
  EXPECT_EQ(memory.positions(0), count(0, 10));
  EXPECT_EQ(memory.places(0), count(30, 40));
}

TEST_F(ShiftedMemory, DividingRoundsDownAndKeepsPlaces) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 7));
  memory->divide(0, -1, -1, 3);
  EXPECT_EQ(memory.positions(0), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(memory.places(0), count(0, 7));
}

TEST_F(ShiftedMemory, AnotherSequenceKeepsWhatItShared) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  memory->add(1, 20, -1, 7);
  memory.decode(run_of(1, 60, 1));
  EXPECT_EQ(memory.positions(0), count(0, 40));
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(40, 0));
  EXPECT_EQ(memory.positions(1), count(0, 20) + count(27, 47) + count(60, 61));
  EXPECT_EQ(memory.tags(1), count(1, 42));
  EXPECT_EQ(memory->cells(0).n_used_cells(), 61U);
}

TEST_F(ShiftedMemory, WhatIsLeftBehindByTheOtherSequenceIsTakenOver) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 250));
  memory->copy(0, 1, -1, -1);
  memory->add(1, -1, -1, 7);
  memory->remove(0, -1, -1);
  EXPECT_TRUE(memory.decode(run_of(1, 300, 1)));
  EXPECT_EQ(memory.tags(1), count(1, 252));
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(250, 7) + std::vector<std::int32_t>{0});
}

TEST_F(ShiftedMemory, WithoutRoomForCopiesChangesStayPending) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 200));
  memory->copy(0, 1, -1, -1);
  memory->add(1, -1, -1, 7);
  EXPECT_EQ(memory.prepare(run_of(1, 300, 1)), PrepareResult::no_room);
  EXPECT_EQ(memory.positions(1), count(7, 207));
  EXPECT_EQ(memory.positions(0), count(0, 200));
  memory->remove(0, 100, -1);
  memory->remove(1, 107, -1);
  EXPECT_TRUE(memory.decode(run_of(1, 300, 1)));
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(100, 7) + std::vector<std::int32_t>{0});
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(100, 0));
}

TEST_F(ShiftedMemory, ACopyOfChangedCellsTurnsItsKeysToo) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 0, 24));
  memory->copy(0, 1, -1, -1);
  memory->add(1, -1, -1, 3);
  memory->copy(1, 2, 3, 10);
  memory.decode(run_of(2, 50, 1));
  EXPECT_EQ(memory.positions(2), count(3, 10) + std::vector<std::int32_t>{50});
  EXPECT_EQ(memory.tags(2), count(1, 8) + std::vector<std::int32_t>{25});
  EXPECT_EQ(memory.turns(2), std::vector<std::int32_t>(7, 3) + std::vector<std::int32_t>{0});
}

TEST_F(ShiftedMemory, ARunOfAnotherSequenceTurnsNothing) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 10, 4));
  memory->add(0, -1, -1, 3);
  memory.decode(run_of(1, 0, 1));
  memory->add(0, -1, -1, -5);
  EXPECT_EQ(memory.storage().n_rotations, 0);
  memory.decode(run_of(0, 20, 1));
  EXPECT_EQ(memory.storage().n_rotations, 1);
  EXPECT_EQ(memory.turns(0), (std::vector<std::int32_t>{-2, -2, -2, -2, 0}));
}

TEST_F(ShiftedMemory, ABatchWithoutRoomTurnsNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 10, 4));
  memory->add(0, -1, -1, 3);
  EXPECT_EQ(memory.prepare(run_of(0, 20, 256)), PrepareResult::no_room);
  EXPECT_EQ(memory.turns(0), (std::vector<std::int32_t>{0, 0, 0, 0}));
}

TEST_F(ShiftedMemory, ACopyThatRunsLeavesTheKeysOfItsSourceAsTheyWere) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 10, 20));
  memory->add(0, -1, -1, 3);
  memory->copy(0, 1, -1, -1);
  memory.decode(run_of(1, 40, 1));
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(20, 3) + std::vector<std::int32_t>{0});
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(20, 0));
  memory->add(0, -1, -1, -5);
  memory.decode(run_of(0, 40, 1));
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(20, -2) + std::vector<std::int32_t>{0});
}

TEST_F(ShiftedMemory, KeysAreNotTurnedUnderASequenceThatTookThemBeforeTheChange) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 10, 20));
  memory->copy(0, 1, -1, -1);
  memory->add(1, -1, -1, 3);  // 1 waits, with the data of 0
  memory->add(0, -1, -1, 7);
  memory.decode(run_of(0, 40, 1));
  EXPECT_EQ(memory.turns(0), std::vector<std::int32_t>(20, 7) + std::vector<std::int32_t>{0});
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(20, 0));
  memory.decode(run_of(1, 40, 1));
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(20, 3) + std::vector<std::int32_t>{0});
}

TEST_F(ShiftedMemory, SequencesThatRunTogetherKeepSharing) {
  TestMemory memory(unified(256, 3));
  memory.decode(run_of(0, 10, 20));
  memory->add(0, -1, -1, 3);
  memory->copy(0, 1, -1, -1);
  memory->copy(0, 2, -1, -1);
  memory.decode({{40, {0, 1}}});
  EXPECT_TRUE(memory->same_cells(std::vector<std::int32_t>{0, 1}));
  EXPECT_FALSE(memory->same_cells(std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(memory->cells(0).n_used_cells(), 41U);
  EXPECT_EQ(memory.turns(1), std::vector<std::int32_t>(20, 3) + std::vector<std::int32_t>{0});
  EXPECT_EQ(memory.turns(2), std::vector<std::int32_t>(20, 0));
}

TEST_F(ShiftedMemory, AFailedTurnIsDoneLaterAndOnce) {
  TestMemory memory(unified(256, 1), {0, 100});
  memory.decode(run_of(0, 0, 4));
  memory->add(0, -1, -1, 3);
  memory.storage(1).n_failures = 1;
  EXPECT_THROW(memory.decode(run_of(0, 20, 1)), Error);
  memory->add(0, -1, -1, 1);
  memory.decode(run_of(0, 20, 1));
  for (const std::size_t part : {0U, 1U}) {
    EXPECT_EQ(memory.turns(0, part), (std::vector<std::int32_t>{4, 4, 4, 4, 0}));
  }
}

TEST_F(ShiftedMemory, AnAbortedTurnGoesOnLater) {
  TestMemory memory(unified(256, 1), {0, 100});
  memory.decode(run_of(0, 0, 4));
  memory->add(0, -1, -1, 3);
  int n_asked = 0;
  EXPECT_EQ(memory.prepare(run_of(0, 20, 1), [&] { return ++n_asked == 3; }), PrepareResult::aborted);
  EXPECT_EQ(memory.turns(0, 1), std::vector<std::int32_t>(4, 0));
  EXPECT_EQ(memory.prepare(run_of(0, 20, 1)), PrepareResult::ready);
  for (const std::size_t part : {0U, 1U}) EXPECT_EQ(memory.turns(0, part), std::vector<std::int32_t>(4, 3));
}

TEST_F(ShiftedMemory, DividingByLessThanOneChangesNothing) {
  TestMemory memory(unified(256, 1));
  memory.decode(run_of(0, 0, 4));
  memory->divide(0, -1, -1, 0);
  memory->divide(0, -1, -1, -2);
  EXPECT_EQ(memory.positions(0), count(0, 4));
  EXPECT_EQ(n_lines, 2);
}

TEST_F(ShiftedMemory, WhereItIsImpossibleNothingChanges) {
  KvMemoryParams params = unified(256, 1);
  params.can_shift = false;
  TestMemory memory(params);
  memory.decode(run_of(0, 0, 4));
  EXPECT_FALSE(memory->can_shift());
  memory->add(0, -1, -1, 2);
  memory->divide(0, -1, -1, 2);
  EXPECT_EQ(memory.positions(0), count(0, 4));
  EXPECT_EQ(n_lines, 2);
}

TEST_F(ShiftedMemory, APositionWithoutSuccessorChangesNothing) {
  TestMemory memory(unified(256, 2));
  memory.decode(run_of(0, 0, 40));
  memory->copy(0, 1, -1, -1);
  memory->add(1, -1, -1, INT32_MAX - 39);
  EXPECT_EQ(memory.positions(1), count(0, 40));
  EXPECT_EQ(n_lines, 1);
  memory->add(1, -1, -1, INT32_MAX - 40);
  EXPECT_EQ(memory->max_position(1), INT32_MAX - 1);
}

TEST_F(ShiftedMemory, AWindowThatWouldSeeForgottenCellsChangesNothing) {
  TestMemory memory({.n_sequences = 1, .n_cells = 1024, .unified = true, .n_ubatch = 16}, {0, 10});
  memory.decode(run_of(0, 0, 600));
  memory->divide(0, -1, -1, 100);
  EXPECT_EQ(memory->max_position(0), 599);
  EXPECT_EQ(n_lines, 1);
}

TEST_F(ShiftedMemory, AWindowShiftsWithTheRest) {
  TestMemory memory({.n_sequences = 1, .n_cells = 1024, .unified = true, .n_ubatch = 16}, {10});
  memory.decode(run_of(0, 0, 600));
  memory->add(0, -1, -1, -300);
  EXPECT_EQ(memory->max_position(0), 299);
  EXPECT_EQ(memory->min_position(0), 44);
  EXPECT_FALSE(memory->remove(0, 45, -1));
  EXPECT_TRUE(memory->remove(0, 60, -1));
}

}  // namespace
}  // namespace quipu::test
