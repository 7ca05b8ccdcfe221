// Batches as containers: what goes in is found again, by index and in the flat arrays.
#include "quipu/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quipu/error.h"

namespace quipu::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Batch, GivesBackWhatWasAdded) {
  Batch batch;
  batch.add(5, 10, {0, 2}, false);
  batch.add(6, 11, {1}, true);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch.token(0), 5);
  EXPECT_EQ(batch.position(1), 11);
  EXPECT_THAT(batch.sequences(0), ElementsAre(0, 2));
  EXPECT_THAT(batch.sequences(1), ElementsAre(1));
  EXPECT_FALSE(batch.output(0));
  EXPECT_TRUE(batch.output(1));
  EXPECT_THAT(batch.sequences(), ElementsAre(0, 2, 1));
  EXPECT_THAT(batch.sequence_ends(), ElementsAre(2u, 3u));
  EXPECT_THAT(batch.embeddings(), IsEmpty());
}

TEST(Batch, OfATextAsksForItsLastToken) {
  const Batch batch = Batch::text(std::vector<Token>{5, 6, 7}, 3, 1);
  EXPECT_THAT(batch.positions(), ElementsAre(3, 4, 5));
  EXPECT_THAT(batch.outputs(), ElementsAre(0, 0, 1));
  EXPECT_THAT(batch.sequences(), ElementsAre(1, 1, 1));
}

TEST(Batch, TokensCanBeChangedInPlace) {
  Batch batch = Batch::text(std::vector<Token>{5, 6, 7}, 0);
  batch.set_token(1, 9);
  batch.set_position(1, 4);
  batch.set_output(1, true);
  batch.set_sequences(1, std::vector<SequenceId>{2, 3});
  EXPECT_THAT(batch.tokens(), ElementsAre(5, 9, 7));
  EXPECT_THAT(batch.positions(), ElementsAre(0, 4, 2));
  EXPECT_THAT(batch.outputs(), ElementsAre(0, 1, 1));
  EXPECT_THAT(batch.sequences(1), ElementsAre(2, 3));
  EXPECT_THAT(batch.sequences(2), ElementsAre(0));
  batch.set_sequences(1, {});
  EXPECT_THAT(batch.sequences(1), IsEmpty());
  EXPECT_THAT(batch.sequences(2), ElementsAre(0));
}

TEST(Batch, EmbeddingsStandBesideTokens) {
  const std::vector<SequenceId> zero{0};
  Batch batch;
  batch.add(5, 0, {0}, false);
  batch.add(std::vector<float>{1, 2, 3}, 1, zero, false);
  batch.add(6, 2, {0}, true);
  EXPECT_EQ(batch.embedding_width(), 3u);
  EXPECT_EQ(batch.embeddings().size(), 9u);
  EXPECT_EQ(batch.token(1), kNoToken);
  EXPECT_THAT(batch.embedding(1), ElementsAre(1, 2, 3));
  EXPECT_THAT(batch.embedding(0), IsEmpty());
  EXPECT_THROW(batch.add(std::vector<float>{1, 2}, 3, zero, true), Error);
  EXPECT_THROW(batch.add(std::vector<float>{}, 3, zero, true), Error);
  EXPECT_EQ(batch.size(), 3u);
  batch.clear();
  EXPECT_TRUE(batch.empty());
  batch.add(std::vector<float>{1, 2}, 0, zero, true);
  EXPECT_EQ(batch.embedding_width(), 2u);
}

TEST(Batch, AnIndexOutOfRangeIsAnError) {
  Batch batch = Batch::text(std::vector<Token>{5}, 0);
  EXPECT_THROW(batch.token(1), Error);
  EXPECT_THROW(batch.embedding(1), Error);
  EXPECT_THROW(batch.position(1), Error);
  EXPECT_THROW(batch.sequences(1), Error);
  EXPECT_THROW(batch.output(1), Error);
  EXPECT_THROW(batch.set_token(1, 1), Error);
  EXPECT_THROW(batch.set_position(1, 1), Error);
  EXPECT_THROW(batch.set_sequences(1, {}), Error);
  EXPECT_THROW(batch.set_output(1, true), Error);
}

TEST(Batch, PositionsDoNotWrap) {
  const Batch batch = Batch::text(std::vector<Token>{5, 6, 7}, INT32_MAX - 1);
  EXPECT_THAT(batch.positions(), ElementsAre(INT32_MAX - 1, INT32_MAX, INT32_MAX));
}

}  // namespace
}  // namespace quipu::test
