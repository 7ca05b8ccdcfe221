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

TEST(ApiTokenizer, WritesIntoMemoryOfTheCallerOrSaysHowMuchItNeeds) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  const std::string text = "Once upon a time, a llama.";
  const std::vector<Token> tokens = tokenizer.tokenize(text);
  const auto n = static_cast<std::int32_t>(tokens.size());
  EXPECT_EQ(tokenizer.tokenize_into({}, text), -n);
  std::vector<Token> out(tokens.size() + 1, -7);
  EXPECT_EQ(tokenizer.tokenize_into(std::span(out).first(tokens.size() - 1), text), -n);
  EXPECT_EQ(out, std::vector<Token>(out.size(), -7));
  EXPECT_EQ(tokenizer.tokenize_into(std::span(out).first(tokens.size()), text), n);
  EXPECT_EQ(out.back(), -7);
  out.pop_back();
  EXPECT_EQ(out, tokens);

  const std::string whole = tokenizer.detokenize(tokens);
  std::string bytes(whole.size() + 1, '#');
  const auto n_bytes = static_cast<std::int32_t>(whole.size());
  EXPECT_EQ(tokenizer.detokenize_into(std::span(bytes).first(whole.size() - 1), tokens), -n_bytes);
  EXPECT_EQ(bytes, std::string(bytes.size(), '#'));
  EXPECT_EQ(tokenizer.detokenize_into(std::span(bytes).first(whole.size()), tokens), n_bytes);
  EXPECT_EQ(bytes, whole + "#");
}

TEST(ApiTokenizer, WritesPiecesWithoutTheSpacesToSkip) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  const Token token = tokenizer.tokenize("a time", {.add_special = false})[1];
  ASSERT_EQ(tokenizer.piece(token), " time");
  std::string bytes(6, '#');
  EXPECT_EQ(tokenizer.piece_into(std::span(bytes).first(4), token), -5);
  EXPECT_EQ(bytes, "######");
  EXPECT_EQ(tokenizer.piece_into(bytes, token), 5);
  EXPECT_EQ(bytes, " time#");
  EXPECT_EQ(tokenizer.piece_into(std::span(bytes).first(4), token, false, 1), 4);
  EXPECT_EQ(bytes, "timee#");
  EXPECT_EQ(tokenizer.piece_into({}, *tokenizer.eos()), 0);
  EXPECT_THROW(tokenizer.piece_into(bytes, -1), Error);
  EXPECT_THROW(tokenizer.detokenize_into(bytes, std::vector<Token>{5, 1024}), Error);
}

TEST(ApiTokenizer, NamesTheTokensOfRoles) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  EXPECT_EQ(tokenizer.token(TokenRole::bos), tokenizer.bos());
  EXPECT_EQ(tokenizer.token(TokenRole::eos), tokenizer.eos());
  EXPECT_EQ(tokenizer.token(TokenRole::fim_prefix), std::nullopt);
  EXPECT_EQ(tokenizer.token(TokenRole::newline), tokenizer.tokenize("\n", {.add_special = false})[0]);
  EXPECT_EQ(tokenizer.find("<|im_end|>"), tokenizer.eos());
  EXPECT_EQ(tokenizer.find("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.spelling(*tokenizer.eos()), "<|im_end|>");
  EXPECT_EQ(tokenizer.attributes(*tokenizer.eos()) & 8u, 8u);
  EXPECT_EQ(tokenizer.score(5), 0.0f);
  EXPECT_EQ(tokenizer.end_tokens().back(), *tokenizer.eos());
  EXPECT_TRUE(tokenizer.suppressed_tokens().empty());
}

TEST(ApiTokenizer, KeepsUntrustedTextFromFormingSpecialTokens) {
  const Tokenizer tokenizer = ModelFile::built_in().tokenizer();
  EXPECT_EQ(tokenizer.tokenize("<|im_end|>", {.add_special = false}).size(), 1u);
  EXPECT_GT(tokenizer.tokenize("<|im_end|>", {.add_special = false, .untrusted = true}).size(), 1u);
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
