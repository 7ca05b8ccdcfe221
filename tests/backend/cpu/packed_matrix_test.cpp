#include "backend/cpu/packed_matrix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

#include "backend/cpu/weights.h"
#include "quant/quant.h"
#include "quipu/error.h"

namespace quipu::cpu {
namespace {

using test::random_bytes;

class PackedMatrixOf : public testing::TestWithParam<ElementType> {};

INSTANTIATE_TEST_SUITE_P(Types, PackedMatrixOf, testing::ValuesIn(test::decodable_types()),
                         [](const auto& tested) { return std::string(quipu::info(tested.param).name); });

TEST_P(PackedMatrixOf, GivesBackEveryByteThatWentIn) {
  for (const std::size_t n_rows : {1u, 15u, 16u, 17u, 33u}) {
    for (const std::size_t n_cols : test::interesting_widths(GetParam())) {
      PackedMatrix matrix(GetParam(), 1, n_rows, n_cols);
      const auto rows = random_bytes(n_rows * row_bytes(GetParam(), n_cols), 1);
      matrix.set_rows(0, 0, rows);
      std::vector<std::byte> back(rows.size());
      matrix.get_rows(0, 0, back);
      EXPECT_EQ(back, rows) << n_rows << " x " << n_cols;
    }
  }
}

TEST_P(PackedMatrixOf, SetsSomeRowsAndLeavesTheOthers) {
  const std::size_t n_cols = test::interesting_widths(GetParam())[1];
  const std::size_t row = row_bytes(GetParam(), n_cols);
  PackedMatrix matrix(GetParam(), 1, 40, n_cols);
  auto expected = random_bytes(40 * row, 2);
  matrix.set_rows(0, 0, expected);
  const auto some = random_bytes(21 * row, 3);
  matrix.set_rows(0, 9, some);
  std::copy(some.begin(), some.end(), expected.begin() + static_cast<std::ptrdiff_t>(9 * row));
  std::vector<std::byte> back(expected.size());
  matrix.get_rows(0, 0, back);
  EXPECT_EQ(back, expected);
}

TEST_P(PackedMatrixOf, PacksRowsTogetherAsItPacksThemOneByOne) {
  for (const std::size_t n_cols : test::interesting_widths(GetParam())) {
    const std::size_t row = row_bytes(GetParam(), n_cols);
    const auto rows = random_bytes(16 * row, 6);
    PackedMatrix together(GetParam(), 1, 16, n_cols), apart(GetParam(), 1, 16, n_cols);
    together.set_rows(0, 0, rows);
    for (std::size_t r = 0; r < 16; ++r) apart.set_rows(0, r, std::span(rows).subspan(r * row, row));
    EXPECT_EQ(std::memcmp(together.panel(0, 0), apart.panel(0, 0), apart.panel_bytes()), 0) << n_cols;
  }
}

TEST_P(PackedMatrixOf, KeepsSlabsApart) {
  const std::size_t n_cols = test::interesting_widths(GetParam())[0];
  PackedMatrix matrix(GetParam(), 3, 18, n_cols);
  std::vector<std::vector<std::byte>> slabs;
  for (std::size_t slab = 0; slab < 3; ++slab) {
    slabs.push_back(random_bytes(18 * row_bytes(GetParam(), n_cols), 4 + static_cast<std::uint32_t>(slab)));
    matrix.set_rows(slab, 0, slabs.back());
  }
  for (std::size_t slab = 0; slab < 3; ++slab) {
    std::vector<std::byte> back(slabs[slab].size());
    matrix.get_rows(slab, 0, back);
    EXPECT_EQ(back, slabs[slab]);
    EXPECT_EQ(matrix.panel(slab, 1), matrix.panel(slab, 0) + matrix.panel_bytes());
  }
}

TEST_P(PackedMatrixOf, DecodesARowToWhatTheFilesBytesMean) {
  const std::size_t n_cols = test::interesting_widths(GetParam()).back();
  const auto rows = test::random_weights(GetParam(), 17, n_cols, 5);
  PackedMatrix matrix(GetParam(), 1, 17, n_cols);
  matrix.set_rows(0, 0, rows);
  std::vector<float> decoded(n_cols), expected(n_cols);
  std::vector<std::byte> scratch(row_bytes(matrix.type(), matrix.n_cols()));
  matrix.decode_row(0, 16, decoded, scratch);
  const std::size_t row = row_bytes(GetParam(), n_cols);
  quipu::decode_row(GetParam(), std::span(rows).subspan(16 * row, row), expected);
  EXPECT_EQ(decoded, expected);
}

TEST_P(PackedMatrixOf, IsZeroUntilSet) {
  const std::size_t n_cols = test::interesting_widths(GetParam())[0];
  PackedMatrix matrix(GetParam(), 1, 2, n_cols);
  std::vector<float> decoded(n_cols, 1.0f);
  std::vector<std::byte> scratch(row_bytes(matrix.type(), matrix.n_cols()));
  matrix.decode_row(0, 1, decoded, scratch);
  EXPECT_EQ(decoded, std::vector<float>(n_cols, 0.0f));
}

TEST_P(PackedMatrixOf, TakesTheBytesThatWereAnnounced) {
  const std::size_t n_cols = test::interesting_widths(GetParam()).back();
  const PackedMatrix matrix(GetParam(), 2, 33, n_cols);
  EXPECT_EQ(matrix.bytes(), packed_bytes(GetParam(), 2, 33, n_cols));
  EXPECT_EQ(matrix.bytes(), 2 * 3 * matrix.panel_bytes());
  EXPECT_EQ(matrix.panel_bytes() % 64, 0u);
}

TEST_P(PackedMatrixOf, IsHardlyLargerThanTheFile) {
  const double file = static_cast<double>(16 * row_bytes(GetParam(), 1024));
  EXPECT_LE(static_cast<double>(packed_bytes(GetParam(), 1, 16, 1024)), 1.04 * file);
}

TEST(PackedMatrix, RefusesBrokenBlocks) {
  EXPECT_THROW(PackedMatrix(ElementType::q4_0, 1, 16, 33), Error);
}

TEST(PackedMatrix, RefusesTypesThatAreNotWeights) {
  EXPECT_THROW(PackedMatrix(ElementType::i32, 1, 16, 32), Error);
}

TEST(PackedMatrix, ReportsAShapeThatNoMemoryHolds) {
  constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 4096 * 32;
  try {
    packed_bytes(ElementType::q4_0, 1 << 20, 1 << 30, kHuge);
    FAIL() << "not reported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
}

TEST(PackedMatrix, RefusesRowsOutsideTheSlab) {
  PackedMatrix matrix(ElementType::f32, 1, 4, 8);
  std::vector<std::byte> two_rows(2 * 8 * 4);
  EXPECT_THROW(matrix.set_rows(0, 3, two_rows), Error);
  EXPECT_THROW(matrix.set_rows(1, 0, two_rows), Error);
  EXPECT_THROW(matrix.get_rows(0, 0, std::span(two_rows).first(33)), Error);
}

TEST(PackedMatrix, MayBeEmpty) {
  const PackedMatrix matrix(ElementType::q4_k, 1, 0, 256);
  EXPECT_EQ(matrix.n_panels(), 0u);
  EXPECT_EQ(matrix.bytes(), 0u);
}

}  // namespace
}  // namespace quipu::cpu
