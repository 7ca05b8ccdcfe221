#include <gtest/gtest.h>

#include <string>

#include "quipu/error.h"
#include "quipu/model.h"

namespace quipu::test {
namespace {

TEST(ApiTokenizer, TextComesBack) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  const std::string text = "Once upon a time, a llama.";
  EXPECT_EQ(tokenizer.detokenize(tokenizer.tokenize(text, {.add_special = false})), text);
}

TEST(ApiTokenizer, AddsTheBeginningThatTheModelWants) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  EXPECT_EQ(tokenizer.tokenize("a").front(), tokenizer.bos());
  EXPECT_NE(tokenizer.tokenize("a", {.add_special = false}).front(), tokenizer.bos());
}

TEST(ApiTokenizer, KnowsWhatEndsATextAndWhatIsControl) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  ASSERT_TRUE(tokenizer.eos().has_value());
  EXPECT_TRUE(tokenizer.ends_generation(*tokenizer.eos()));
  EXPECT_TRUE(tokenizer.is_control(*tokenizer.eos()));
  EXPECT_EQ(tokenizer.piece(*tokenizer.eos()), "");
  EXPECT_EQ(tokenizer.piece(*tokenizer.eos(), true), "<|im_end|>");
}

TEST(ApiTokenizer, TokensOutsideTheVocabularyAreAnError) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  for (const Token bad : {-1, 1024, 2147483647}) {
    EXPECT_THROW(tokenizer.piece(bad), Error);
    EXPECT_THROW(tokenizer.detokenize(std::vector<Token>{5, bad}), Error);
  }
}

TEST(ApiTokenizer, OutlivesTheModelItCameFrom) {
  const Tokenizer tokenizer = [] { return Model::built_in().tokenizer(); }();
  EXPECT_EQ(tokenizer.size(), 1024u);
}

TEST(ApiTextStream, GivesWholeCharactersOnly) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  const std::string text = "naïve 🦙 llama";
  TextStream stream(tokenizer);
  std::string whole;
  for (const Token token : tokenizer.tokenize(text)) {
    const std::string part = stream.add(token);
    if (!part.empty()) {
      EXPECT_NE(static_cast<unsigned char>(part.front()) & 0xC0, 0x80);
    }
    whole += part;
  }
  EXPECT_EQ(whole + stream.finish(), text);
}

TEST(ApiTextStream, AnUnfinishedCharacterBecomesOneReplacement) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  const std::vector<Token> tokens = tokenizer.tokenize("🦙", {.add_special = false});
  ASSERT_GT(tokens.size(), 1u);
  TextStream stream(tokenizer);
  EXPECT_EQ(stream.add(tokens.front()), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace quipu::test
