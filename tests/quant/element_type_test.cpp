#include "quant/element_type.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "quant/blocks.h"
#include "quipu/error.h"

namespace quipu {
namespace {

TEST(ElementTypes, HaveDistinctNumbersAndNames) {
  std::set<std::uint32_t> numbers;
  std::set<std::string_view> names;
  for (const ElementTypeInfo& each : all_element_types()) {
    EXPECT_TRUE(numbers.insert(static_cast<std::uint32_t>(each.type)).second) << each.name;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
  EXPECT_EQ(numbers.size(), 22u);
}

TEST(ElementTypes, AreFoundByTheirFileNumber) {
  for (const ElementTypeInfo& each : all_element_types()) {
    EXPECT_EQ(element_type_from_number(static_cast<std::uint32_t>(each.type)), each.type);
    EXPECT_EQ(info(each.type).name, each.name);
  }
}

TEST(ElementTypes, NumbersOutsideTheTableAreNoTypes) {
  EXPECT_EQ(element_type_from_number(4), std::nullopt);
  EXPECT_EQ(element_type_from_number(16), std::nullopt);
  EXPECT_EQ(element_type_from_number(31), std::nullopt);
  EXPECT_EQ(element_type_from_number(std::numeric_limits<std::uint32_t>::max()), std::nullopt);
}

TEST(ElementTypes, ACastFromANumberOutsideTheTableIsAnInternalError) {
  try {
    info(static_cast<ElementType>(4));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
  }
}

TEST(ElementTypes, ForeignNamesAreThoseThatAreNotRead) {
  EXPECT_EQ(foreign_type_name(16), "IQ2_XXS");
  EXPECT_EQ(foreign_type_name(41), "Q1_0");
  EXPECT_EQ(foreign_type_name(12345), "");
  for (std::uint32_t number = 0; number < 64; ++number) {
    EXPECT_FALSE(element_type_from_number(number).has_value() && !foreign_type_name(number).empty())
        << number;
  }
}

TEST(ElementTypes, BlockSizesAreThoseOfTheStructs) {
  EXPECT_EQ(info(ElementType::q4_0).block_bytes, sizeof(BlockQ4_0));
  EXPECT_EQ(info(ElementType::q4_1).block_bytes, sizeof(BlockQ4_1));
  EXPECT_EQ(info(ElementType::q5_0).block_bytes, sizeof(BlockQ5_0));
  EXPECT_EQ(info(ElementType::q5_1).block_bytes, sizeof(BlockQ5_1));
  EXPECT_EQ(info(ElementType::q8_0).block_bytes, sizeof(BlockQ8_0));
  EXPECT_EQ(info(ElementType::iq4_nl).block_bytes, sizeof(BlockIQ4_NL));
  EXPECT_EQ(info(ElementType::q2_k).block_bytes, sizeof(BlockQ2_K));
  EXPECT_EQ(info(ElementType::q3_k).block_bytes, sizeof(BlockQ3_K));
  EXPECT_EQ(info(ElementType::q4_k).block_bytes, sizeof(BlockQ4_K));
  EXPECT_EQ(info(ElementType::q5_k).block_bytes, sizeof(BlockQ5_K));
  EXPECT_EQ(info(ElementType::q6_k).block_bytes, sizeof(BlockQ6_K));
  EXPECT_EQ(info(ElementType::iq4_xs).block_bytes, sizeof(BlockIQ4_XS));
  EXPECT_EQ(info(ElementType::mxfp4).block_bytes, sizeof(BlockMXFP4));
  EXPECT_EQ(info(ElementType::nvfp4).block_bytes, sizeof(BlockNVFP4));
}

TEST(RowBytes, CountsWholeBlocks) {
  EXPECT_EQ(row_bytes(ElementType::f32, 3), 12u);
  EXPECT_EQ(row_bytes(ElementType::q4_0, 64), 36u);
  EXPECT_EQ(row_bytes(ElementType::q6_k, 512), 420u);
  EXPECT_EQ(row_bytes(ElementType::i64, 0), 0u);
}

TEST(RowBytes, RefusesPartOfABlock) {
  try {
    row_bytes(ElementType::q4_k, 257);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.message(), "257 elements of type Q4_K: not a multiple of its block of 256");
  }
}

TEST(RowBytes, RefusesASizeThatOverflows) {
  EXPECT_THROW(row_bytes(ElementType::f32, std::numeric_limits<std::size_t>::max()), Error);
}

}  // namespace
}  // namespace quipu
