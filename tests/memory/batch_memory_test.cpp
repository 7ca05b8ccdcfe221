// The memory of models that remember nothing.
#include "memory/batch_memory.h"

#include "memory/test_memory.h"
#include "quipu/log.h"

namespace quipu::test {
namespace {

struct Batch {
  std::vector<std::int32_t> positions, sequences;
  std::vector<std::uint32_t> offsets{0};

  Batch& add(std::int32_t sequence, std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) {
      positions.push_back(i);
      sequences.push_back(sequence);
      offsets.push_back(static_cast<std::uint32_t>(sequences.size()));
    }
    return *this;
  }
  MemoryBatch view() const { return {positions, offsets, sequences}; }
};

TEST(BatchMemory, EachSequenceHasPagesOfItsOwn) {
  BatchMemory memory({.n_sequences = 3, .n_ubatch = 64}, {});
  const Batch batch = Batch().add(2, 20).add(0, 3);
  ASSERT_EQ(memory.prepare(batch.view(), 64), PrepareResult::ready);
  ASSERT_EQ(memory.n_micro_batches(), 1U);
  EXPECT_EQ(memory.micro_batch(0).size(), 23U);
  memory.commit(batch.view());
  const AttentionLayout& layout = *memory.layouts()[0];
  EXPECT_EQ(layout.page_tables[0].size(), 1U);
  EXPECT_EQ(layout.page_tables[1].size(), 0U);
  EXPECT_EQ(layout.page_tables[2].size(), 2U);
  for (const AttentionLayout::Token& token : layout.tokens) {
    const std::int32_t page = layout.page_tables[static_cast<std::size_t>(token.sequence)]
                                                [static_cast<std::size_t>(token.place / kPagePlaces)];
    const auto cell = static_cast<std::size_t>(page * kPagePlaces + token.place % kPagePlaces);
    EXPECT_EQ(layout.cell_positions[cell], token.position);
  }
}

TEST(BatchMemory, ABatchLeavesNothingForTheNext) {
  BatchMemory memory({.n_sequences = 2, .n_ubatch = 64}, {});
  const Batch first = Batch().add(0, 64), second = Batch().add(1, 2);
  ASSERT_EQ(memory.prepare(first.view(), 64), PrepareResult::ready);
  memory.commit(first.view());
  ASSERT_EQ(memory.prepare(second.view(), 64), PrepareResult::ready);
  memory.commit(second.view());
  const AttentionLayout& layout = *memory.layouts()[0];
  EXPECT_EQ(layout.page_tables[0].size(), 0U);
  EXPECT_EQ(std::count_if(layout.cell_positions.begin(), layout.cell_positions.end(),
                          [](std::int32_t position) { return position >= 0; }),
            2);
}

TEST(BatchMemory, PagesSufficeForAnyDivision) {
  constexpr std::int32_t kTokens = 37;
  BatchMemory memory({.n_sequences = 5, .n_ubatch = kTokens}, {});
  Batch batch;
  for (std::int32_t s = 0; s < 4; ++s) batch.add(s, 1);
  batch.add(4, kTokens - 4);
  ASSERT_EQ(memory.prepare(batch.view(), kTokens), PrepareResult::ready);
  memory.commit(batch.view());
  const AttentionLayout& layout = *memory.layouts()[0];
  EXPECT_LE(static_cast<std::size_t>(layout.page_tables[4].back()), layout.cell_positions.size() / 16);
}

TEST(BatchMemory, ATokenHasACellInEachOfItsSequences) {
  BatchMemory memory({.n_sequences = 3, .n_ubatch = 4}, {});
  const std::vector<std::int32_t> positions{0, 1}, sequences{0, 2, 1, 2};
  const std::vector<std::uint32_t> offsets{0, 2, 4};
  const MemoryBatch batch{positions, offsets, sequences};
  ASSERT_EQ(memory.prepare(batch, 4), PrepareResult::ready);
  const std::vector<std::uint32_t> order(memory.micro_batch(0).begin(), memory.micro_batch(0).end());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  memory.commit(batch);
  const AttentionLayout& layout = *memory.layouts()[0];
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layout.tokens[i].sequence, sequences[i]);
    EXPECT_EQ(layout.tokens[i].position, positions[order[i]]);
  }
  EXPECT_EQ(layout.tokens[3].place, 1);
  EXPECT_EQ(memory.prepare(batch, 3), PrepareResult::no_room);
}

TEST(BatchMemory, ABatchIsNeverSplit) {
  BatchMemory memory({.n_sequences = 1, .n_ubatch = 64}, {});
  EXPECT_EQ(memory.prepare(Batch().add(0, 65).view(), 64), PrepareResult::no_room);
  EXPECT_EQ(memory.prepare(Batch().add(0, 33).view(), 32), PrepareResult::no_room);
}

TEST(BatchMemory, SequencesAreAlwaysEmpty) {
  BatchMemory memory({.n_sequences = 1, .n_ubatch = 64}, {});
  const Batch batch = Batch().add(0, 5);
  ASSERT_EQ(memory.prepare(batch.view(), 64), PrepareResult::ready);
  memory.commit(batch.view());
  EXPECT_EQ(memory.min_position(0), -1);
  EXPECT_EQ(memory.max_position(0), -1);
  EXPECT_TRUE(memory.remove(0, 2, 3));
  EXPECT_FALSE(memory.can_shift());
}

}  // namespace
}  // namespace quipu::test
