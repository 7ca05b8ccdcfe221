// What decode_row and encode_row refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quant/row_error.h"
#include "quipu/error.h"

namespace quipu {
namespace {

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

class EveryBlockType : public testing::TestWithParam<ElementType> {
 protected:
  static ElementType type() { return GetParam(); }
  static std::size_t block() { return info(type()).block_elements; }
};

INSTANTIATE_TEST_SUITE_P(RowChecks, EveryBlockType, testing::ValuesIn(test::block_types()),
                         [](const auto& type) { return test::type_name(type.param); });

TEST_P(EveryBlockType, RefusesATailWhenDecoding) {
  const std::vector<std::byte> bytes(2 * info(type()).block_bytes);
  std::vector<float> out(2 * block() - 1);
  const Error error = error_of([&] { decode_row(type(), bytes, out); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
}

TEST_P(EveryBlockType, RefusesATailWhenEncoding) {
  std::vector<std::byte> bytes(2 * info(type()).block_bytes);
  const std::vector<float> values(block() + 1);
  const Error error = error_of([&] { encode_row(type(), values, bytes); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
}

TEST_P(EveryBlockType, RefusesBytesOfAnotherSize) {
  std::vector<std::byte> bytes(2 * info(type()).block_bytes - 1);
  std::vector<float> values(2 * block());
  EXPECT_EQ(error_of([&] { decode_row(type(), bytes, values); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { encode_row(type(), values, bytes); }).code(), ErrorCode::invalid_argument);
}

TEST_P(EveryBlockType, AcceptsAnEmptyRow) {
  EXPECT_TRUE(test::round_trip(type(), {}).empty());
}

TEST_P(EveryBlockType, NamesTheIndexOfAValueThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(2 * block(), 1.0F);
    values[block() + 5] = bad;
    const Error error = error_of([&] { test::encode(type(), values); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.message().find("value " + std::to_string(block() + 5) + " is"), std::string::npos)
        << error.message();
  }
}

TEST_P(EveryBlockType, RefusesImportanceOfAnotherLength) {
  const std::vector<float> values(block(), 1.0F);
  const std::vector<float> importance(block() - 1, 1.0F);
  const Error error = error_of([&] { test::encode(type(), values, importance); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
}

TEST_P(EveryBlockType, NamesTheIndexOfABadImportance) {
  const std::vector<float> values(block(), 1.0F);
  for (const float bad : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> importance(block(), 1.0F);
    importance[3] = bad;
    const Error error = error_of([&] { test::encode(type(), values, importance); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.message().find("weight 3 is"), std::string::npos) << error.message();
  }
}

TEST(IntegerTypes, HaveNoFloatForm) {
  std::vector<float> values(4);
  for (const ElementTypeInfo& each : all_element_types()) {
    if (each.decodable) continue;
    std::vector<std::byte> bytes(row_bytes(each.type, values.size()));
    EXPECT_EQ(error_of([&] { decode_row(each.type, bytes, values); }).code(), ErrorCode::unsupported)
        << each.name;
    EXPECT_EQ(error_of([&] { encode_row(each.type, values, bytes); }).code(), ErrorCode::unsupported)
        << each.name;
  }
}

TEST(FloatTypes, StoreValuesThatAreNotFinite) {
  const std::vector<float> values{std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const std::vector<float> decoded = test::round_trip(type, values);
    EXPECT_EQ(decoded[0], values[0]);
    EXPECT_EQ(decoded[1], values[1]);
    EXPECT_TRUE(std::isnan(decoded[2]));
  }
}

}  // namespace
}  // namespace quipu
