// Every row of the table of pre-tokenizers against words that the reference makes.
#include "vocab/pre_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "vocab/escaped_spaces.h"

namespace quipu {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// The words that a pre-tokenizer makes.
std::vector<std::string> words_of(std::string_view name, std::string_view text) {
  const vocab::PreTokenizer pre_tokenizer(*vocab::find_pre_tokenizer(name));
  std::vector<std::size_t> ends;
  pre_tokenizer.split(text, ends);
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

TEST(PreTokenizer, NamesAreInOneRowOnly) {
  std::set<std::string_view> names;
  for (const vocab::PreTokenizerRow& row : vocab::pre_tokenizers()) {
    for (const std::string_view name : row.names) EXPECT_TRUE(names.insert(name).second) << name;
  }
}

// Lengths of words in bytes, for the first name of each row. "whitespace" is left out: the reference fails on
// texts with spaces.
TEST(PreTokenizer, EveryRowSplitsAsTheReferenceDoes) {
  std::ifstream file(QUIPU_SOURCE_DIR "/tests/data/tokenizers/words.json");
  const nlohmann::json data = nlohmann::json::parse(file);
  for (const vocab::PreTokenizerRow& row : vocab::pre_tokenizers()) {
    const std::string name(row.names[0]);
    if (name == "whitespace") continue;
    ASSERT_TRUE(data["words"].contains(name)) << name;
    for (std::size_t i = 0; i < data["texts"].size(); ++i) {
      std::string text = data["texts"][i];
      if (row.spelling == vocab::Spelling::plain_with_escaped_spaces) text = vocab::escape_spaces(text);
      std::string lengths;
      for (const std::string& word : words_of(name, text)) {
        lengths += fmt::format("{}{}", lengths.empty() ? "" : " ", word.size());
      }
      EXPECT_EQ(lengths, data["words"][name][i]) << name << ": " << text;
    }
  }
}

TEST(PreTokenizer, Gpt2KeepsASpaceWithTheWordAndRunsOfDigitsTogether) {
  EXPECT_THAT(words_of("gpt-2", "I'm  here,\n\n 12345 don'T"),
              ElementsAre("I", "'m", " ", " here", ",", "\n\n", " 12345", " don", "'", "T"));
}

TEST(PreTokenizer, Llama3SplitsDigitsInThreesAndKeepsNewlinesWithPunctuation) {
  EXPECT_THAT(words_of("llama-bpe", "I'LL go!\n\n12345 \n x(y)"),
              ElementsAre("I", "'LL", " go", "!\n\n", "123", "45", " \n", " x", "(y", ")"));
}

TEST(PreTokenizer, Qwen2SplitsEveryDigit) {
  EXPECT_THAT(words_of("qwen2", "a12 b"), ElementsAre("a", "1", "2", " b"));
}

TEST(PreTokenizer, TheDefaultSeparatesPunctuationAndDigitsInThrees) {
  EXPECT_THAT(words_of("default", "a,b 1234"), ElementsAre("a", ",", "b", " ", "123", "4"));
}

TEST(PreTokenizer, OnlyAsciiLettersMakeContractions) {
  EXPECT_THAT(words_of("llama-bpe", "'\u017F"), ElementsAre("'\u017F"));
}

TEST(PreTokenizer, LettersOfUnicode15AreLetters) {
  EXPECT_THAT(words_of("gpt-2", "\U00031350\U0001E4D0a\U0001E4F1"),
              ElementsAre("\U00031350\U0001E4D0a", "\U0001E4F1"));
}

TEST(PreTokenizer, TheMongolianVowelSeparatorIsNoSpace) {
  EXPECT_THAT(words_of("gpt-2", "!\u180E!"), ElementsAre("!\u180E!"));
}

TEST(PreTokenizer, SurrogatesAreNeitherLettersNorDigitsNorSpace) {
  EXPECT_THAT(words_of("gpt-2", "a\xED\xA0\x80!1"), ElementsAre("a", "\xED\xA0\x80!", "1"));
}

TEST(PreTokenizer, Gpt4oSplitsWhereUpperCaseFollowsLower) {
  EXPECT_THAT(words_of("gpt-4o", "helloWorld HTTPServer ABC x\u00C9a's"),
              ElementsAre("hello", "World", " HTTPServer", " ABC", " x\u00C9a's"));
}

TEST(PreTokenizer, SuperbpeAndAfmoeGroupDigitsFromTheRight) {
  EXPECT_THAT(words_of("superbpe", "a1234567"), ElementsAre("a", "1", "234", "567"));
  EXPECT_THAT(words_of("afmoe", "a 12345"), ElementsAre("a", " ", "12", "345"));
}

TEST(PreTokenizer, KimiKeepsHanApart) {
  EXPECT_THAT(words_of("kimi-k2", "I'm \u4E16\u754Cok"), ElementsAre("I'm", " ", "\u4E16\u754C", "ok"));
}

TEST(PreTokenizer, ExaoneMoeKeepsWordsWithSingleSpacesTogether) {
  EXPECT_THAT(words_of("exaone-moe", "one two  three"), ElementsAre("one two", " ", " three"));
}

TEST(PreTokenizer, WhitespaceSplitsAtSpacesOnly) {
  EXPECT_THAT(words_of("whitespace", "a,b  c"), ElementsAre("a,b", "  ", "c"));
}

// The kinds of characters that PCRE2 does not know yet, one of each kind.
TEST(PreTokenizer, CharactersOfUnicode15HaveTheirKinds) {
  EXPECT_THAT(words_of("deepseek-v3", "a\u0CF3b"), SizeIs(1));              // a mark
  EXPECT_THAT(words_of("deepseek-v3", "!\U00011B00!"), SizeIs(1));          // punctuation
  EXPECT_THAT(words_of("deepseek-v3", "\U0001FAE8\u2FFC"), SizeIs(1));      // symbols
  EXPECT_THAT(words_of("deepseek-v3", "\U0001D2C0\U0001D2C1"), SizeIs(1));  // numbers
  EXPECT_THAT(words_of("kimi-k2", "\U0002B739x"), SizeIs(2));               // Han
  EXPECT_THAT(words_of("kimi-k2", "\U00011F04x"), SizeIs(1));               // another letter
}

}  // namespace
}  // namespace quipu
