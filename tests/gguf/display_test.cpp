#include "gguf/display.h"

#include <gtest/gtest.h>

#include "gguf/metadata.h"

namespace quipu::gguf {
namespace {

TEST(Printable, KeepsVisibleTextOfAnyScript) {
  EXPECT_EQ(printable("naïve 日本 🦙"), "naïve 日本 🦙");
}

TEST(Printable, EscapesControls) {
  EXPECT_EQ(printable(std::string_view("a\n\t\r\0\x7f", 6)), "a\\n\\t\\r\\x00\\x7f");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xc0\x80\xe6\x97"), "\\xff\\xc0\\x80\\xe6\\x97");
}

TEST(Printable, EscapesSurrogatesAndWhatIsBeyondUnicode) {
  EXPECT_EQ(printable("\xed\xa0\x80\xf4\x90\x80\x80"), "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
}

TEST(Printable, EscapesWhatBreaksOrReordersALine) {
  EXPECT_EQ(printable("\u2028\u202e\u0085"), "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xc2\\x85");
}

TEST(Printable, EscapesItsQuoteAndBackslash) {
  EXPECT_EQ(printable("it's \\"), "it\\'s \\\\");
}

TEST(Printable, ShortensByCharacters) {
  EXPECT_EQ(printable("日本語です", 2), "日本...");
}

TEST(Display, QuotesAndShortensStrings) {
  EXPECT_EQ(to_display(std::string("a \"long\" text"), 8), R"("a \"long\"...")");
}

TEST(Display, ShowsSmallIntegersAsNumbers) {
  EXPECT_EQ(to_display(std::uint8_t{65}), "65");
  EXPECT_EQ(to_display(std::int8_t{-65}), "-65");
}

TEST(Display, ShowsBooleansByName) {
  EXPECT_EQ(to_display(true), "true");
}

TEST(Display, ShowsFloatsShortestWithoutLoss) {
  EXPECT_EQ(to_display(0.1f), "0.1");
}

TEST(Display, ShowsAnArrayByTypeLengthAndFirstElements) {
  EXPECT_EQ(to_display(Array(std::vector<std::int32_t>{1, 2, 3})), "i32[3] [1, 2, 3]");
  EXPECT_EQ(to_display(Array(std::vector<std::int32_t>(1000, 12345)), 30),
            "i32[1000] [12345, 12345, 12345, ...]");
  EXPECT_EQ(to_display(Array(std::vector<Bool>{{true}})), "bool[1] [true]");
  EXPECT_EQ(to_display(Array(std::vector<std::string>{"a\n"})), R"(string[1] ["a\n"])");
  EXPECT_EQ(to_display(Array(std::vector<double>{})), "f64[0] []");
}

}  // namespace
}  // namespace quipu::gguf
