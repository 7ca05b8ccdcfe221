#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "quipu/error.h"

namespace quipu::gguf {
namespace {

using testing::ElementsAre;
using testing::Optional;

template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    return error.message();
  }
  return "no error";
}

Metadata with(Value value) {
  Metadata metadata("f.gguf");
  metadata.set("k", std::move(value));
  return metadata;
}

TEST(Metadata, AnAbsentKeyGivesNothing) {
  const Metadata metadata;
  EXPECT_EQ(metadata.get_u32("k"), std::nullopt);
  EXPECT_EQ(metadata.get_string("k"), nullptr);
  EXPECT_EQ(metadata.get_strings("k"), nullptr);
  EXPECT_EQ(metadata.get_f32s("k"), std::nullopt);
  EXPECT_EQ(metadata.get_u32_per_layer("k", 3), std::nullopt);
}

TEST(Metadata, SettingAKeyAgainReplacesItInPlace) {
  Metadata metadata;
  metadata.set("a", std::uint32_t{1});
  metadata.set("b", std::uint32_t{2});
  metadata.set("a", std::uint32_t{3});
  EXPECT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].first, "a");
  EXPECT_THAT(metadata.get_u32("a"), Optional(3u));
}

TEST(Metadata, KeepsTheOrderOfKeys) {
  Metadata metadata;
  for (int i = 0; i < 100; ++i) metadata.set(std::to_string(i), std::int32_t{i});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(metadata.entries()[static_cast<std::size_t>(i)].first, std::to_string(i));
}

TEST(Metadata, ACopyFindsItsOwnKeys) {
  Metadata original = with(std::uint32_t{1});
  const Metadata copy = original;
  original.set("k", std::uint32_t{2});
  EXPECT_THAT(copy.get_u32("k"), Optional(1u));
}

TEST(Metadata, IntegersOfAnyWidthServeEachOther) {
  EXPECT_THAT(with(std::uint8_t{200}).get_u32("k"), Optional(200u));
  EXPECT_THAT(with(std::int64_t{7}).get_u32("k"), Optional(7u));
  EXPECT_THAT(with(std::int8_t{-1}).get_i64("k"), Optional(-1));
  EXPECT_THAT(with(std::uint64_t{5}).get_i64("k"), Optional(5));
}

TEST(Metadata, AnIntegerOutOfRangeIsAnError) {
  EXPECT_EQ(error_of([] { with(std::int32_t{-5}).get_u32("k"); }),
            "f.gguf: key 'k': -5 is out of range for u32");
  EXPECT_EQ(error_of([] { with(std::numeric_limits<std::uint64_t>::max()).get_i64("k"); }),
            "f.gguf: key 'k': 18446744073709551615 is out of range for i64");
}

TEST(Metadata, FloatsServeEachOtherAndIntegersServeAsFloats) {
  EXPECT_THAT(with(0.5).get_f32("k"), Optional(0.5f));
  EXPECT_THAT(with(std::uint32_t{10000}).get_f32("k"), Optional(10000.0f));
}

TEST(Metadata, ADoubleBeyondFloatIsAnError) {
  EXPECT_EQ(error_of([] { with(1e300).get_f32("k"); }), "f.gguf: key 'k': 1e+300 is out of range for f32");
}

TEST(Metadata, AFloatDoesNotServeAsAnInteger) {
  EXPECT_EQ(error_of([] { with(1.0f).get_u32("k"); }), "f.gguf: key 'k': expected u32, found f32");
}

TEST(Metadata, BooleansAndStringsStandAlone) {
  EXPECT_THAT(with(true).get_bool("k"), Optional(true));
  EXPECT_EQ(error_of([] { with(std::uint8_t{1}).get_bool("k"); }),
            "f.gguf: key 'k': expected bool, found u8");
  EXPECT_EQ(error_of([] { with(true).get_u32("k"); }), "f.gguf: key 'k': expected u32, found bool");
  EXPECT_EQ(error_of([] { with(std::uint32_t{1}).get_string("k"); }),
            "f.gguf: key 'k': expected string, found u32");
  EXPECT_EQ(*with(std::string("text")).get_string("k"), "text");
}

TEST(Metadata, AnArrayIsNotAScalar) {
  EXPECT_EQ(error_of([] { with(Array(std::vector<float>{1})).get_f32("k"); }),
            "f.gguf: key 'k': expected f32, found array of f32");
  EXPECT_EQ(error_of([] { with(1.0f).get_f32s("k"); }), "f.gguf: key 'k': expected array of f32, found f32");
}

TEST(Metadata, ArraysConvertElementByElement) {
  EXPECT_THAT(with(Array(std::vector<std::int32_t>{1, 2})).get_u32s("k"), Optional(ElementsAre(1u, 2u)));
  EXPECT_THAT(with(Array(std::vector<std::uint64_t>{1, 2})).get_i32s("k"), Optional(ElementsAre(1, 2)));
  EXPECT_THAT(with(Array(std::vector<double>{0.5})).get_f32s("k"), Optional(ElementsAre(0.5f)));
}

TEST(Metadata, AnArrayOfTheWrongKindIsAnError) {
  EXPECT_EQ(error_of([] { with(Array(std::vector<std::string>{"a"})).get_f32s("k"); }),
            "f.gguf: key 'k': expected array of f32, found array of string");
  EXPECT_EQ(error_of([] { with(Array(std::vector<std::uint8_t>{1})).get_strings("k"); }),
            "f.gguf: key 'k': expected array of string, found array of u8");
  EXPECT_EQ(error_of([] { with(Array(std::vector<Bool>{{true}})).get_u32s("k"); }),
            "f.gguf: key 'k': expected array of u32, found array of bool");
}

TEST(Metadata, OneElementOutOfRangeIsAnError) {
  EXPECT_EQ(error_of([] {
              with(Array(std::vector<std::int32_t>{1, -2})).get_u32s("k");
            }),
            "f.gguf: key 'k': -2 is out of range for u32");
}

TEST(Metadata, AScalarCountsForEveryLayer) {
  EXPECT_THAT(with(std::uint32_t{8}).get_u32_per_layer("k", 3), Optional(ElementsAre(8u, 8u, 8u)));
}

TEST(Metadata, APerLayerArrayMayBeLonger) {
  EXPECT_THAT(with(Array(std::vector<std::int32_t>{1, 2, 3})).get_u32_per_layer("k", 2),
              Optional(ElementsAre(1u, 2u)));
}

TEST(Metadata, APerLayerArrayMayNotBeShorter) {
  EXPECT_EQ(error_of([] { with(Array(std::vector<std::int32_t>{1})).get_u32_per_layer("k", 2); }),
            "f.gguf: key 'k': 1 elements for 2 layers");
}

TEST(Metadata, ErrorsEscapeTheKey) {
  Metadata metadata("f.gguf");
  metadata.set("a\nb", true);
  EXPECT_EQ(error_of([&] { (void)metadata.get_u32("a\nb"); }),
            "f.gguf: key 'a\\nb': expected u32, found bool");
}

}  // namespace
}  // namespace quipu::gguf
