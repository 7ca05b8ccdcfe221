// Special tokens in text: which are found, which of several, and the white space around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quipu/error.h"
#include "vocab/special_splitter.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;

// Fragments as text, tokens in brackets.
std::vector<std::string> split(std::vector<vocab::SpecialSplitter::Entry> entries, std::string_view text,
                               bool all = true) {
  std::vector<std::string> parts;
  for (const vocab::Fragment& fragment :
       vocab::SpecialSplitter(std::move(entries))
           .split(text, all ? vocab::Recognize::all : vocab::Recognize::user_defined)) {
    parts.push_back(fragment.token == kNoToken ? std::string(fragment.text)
                                               : fmt::format("[{}]", fragment.token));
  }
  return parts;
}

TEST(SpecialSplitter, CutsTokensOutOfText) {
  EXPECT_THAT(split({{"<a>", 1, TokenAttribute::control}}, "x<a><a>y<a"),
              ElementsAre("x", "[1]", "[1]", "y<a"));
}

TEST(SpecialSplitter, FindsControlTokensOnRequestOnly) {
  const std::vector<vocab::SpecialSplitter::Entry> entries = {{"<a>", 1, TokenAttribute::control},
                                                              {"<b>", 2, TokenAttribute::user_defined},
                                                              {"<c>", 3, TokenAttribute::unknown}};
  EXPECT_THAT(split(entries, "<a><b><c>", false), ElementsAre("<a>", "[2]", "<c>"));
  EXPECT_THAT(split(entries, "<a><b><c>", true), ElementsAre("[1]", "[2]", "[3]"));
}

TEST(SpecialSplitter, LongerTokensWinWhereverTheyStand) {
  EXPECT_THAT(split({{"abc", 1, TokenAttribute::control}, {"cdefg", 2, TokenAttribute::control}}, "abcdefg"),
              ElementsAre("ab", "[2]"));
}

TEST(SpecialSplitter, AmongEqualLengthsTheLowerIdWins) {
  EXPECT_THAT(split({{"bcd", 1, TokenAttribute::control}, {"abc", 2, TokenAttribute::control}}, "abcd"),
              ElementsAre("a", "[1]"));
}

TEST(SpecialSplitter, OccurrencesOfOneTokenDoNotOverlap) {
  EXPECT_THAT(split({{"aa", 1, TokenAttribute::control}}, "aaaaa"), ElementsAre("[1]", "[1]", "a"));
}

TEST(SpecialSplitter, StripsWhiteSpaceOnTheSideItOwns) {
  EXPECT_THAT(split({{"<r>", 1, TokenAttribute::control | TokenAttribute::rstrip}}, "x <r> \n\t y <r> "),
              ElementsAre("x ", "[1]", "y ", "[1]"));
  EXPECT_THAT(split({{"<l>", 1, TokenAttribute::control | TokenAttribute::lstrip}}, " <l> y \n<l>"),
              ElementsAre("[1]", " y", "[1]"));
}

TEST(SpecialSplitter, StrippedWhiteSpaceHoldsNoToken) {
  EXPECT_THAT(split({{"<r>", 1, TokenAttribute::control | TokenAttribute::rstrip},
                     {"\n", 2, TokenAttribute::user_defined}},
                    "<r>\nx\n"),
              ElementsAre("[1]", "x", "[2]"));
}

TEST(SpecialTokens, AreWrittenOutOnRequestOnly) {
  const Vocab vocab =
      Vocab::load(tiny_bpe("gpt-2", {}, {{"<s>", TokenType::control}, {"<u>", TokenType::user_defined}}));
  EXPECT_EQ(vocab.piece(256, false), "");
  EXPECT_EQ(vocab.piece(256, true), "<s>");
  EXPECT_EQ(vocab.piece(257, false), "<u>");
  const std::vector<Token> tokens = {256, 'a', 257};
  EXPECT_EQ(vocab.detokenize(tokens, false, false), "a<u>");
  EXPECT_EQ(vocab.detokenize(tokens, false, true), "<s>a<u>");
}

TEST(SpecialTokens, WrittenInTextAreTextUnlessAskedFor) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {}, {{"<s>", TokenType::control}}));
  EXPECT_THAT(vocab.tokenize("<s>", false, false), ElementsAre('<', 's', '>'));
  EXPECT_THAT(vocab.tokenize("<s>", false, true), ElementsAre(256));
}

TEST(SpecialTokens, AddedOnesAreRemoved) {
  gguf::Metadata metadata = tiny_bpe("gpt-2", {}, {{"<s>", TokenType::control}, {"<e>", TokenType::control}});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{256});
  metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{257});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  const Vocab vocab = Vocab::load(metadata);
  const std::vector<Token> tokens = vocab.tokenize("a", true, false);
  EXPECT_THAT(tokens, ElementsAre(256, 'a', 257));
  EXPECT_EQ(vocab.detokenize(tokens, true, true), "a");
  EXPECT_EQ(vocab.detokenize(tokens, false, true), "<s>a<e>");
}

TEST(SpecialTokens, PhiThreeTakesTheWhiteSpaceOnTheRight) {
  gguf::Metadata metadata = tiny_spm({{"<|end|>", TokenType::control}, {"\u2581"}, {"a"}});
  metadata.set("general.name", std::string("Phi3 mini"));
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_TRUE(vocab.attributes(259).any(TokenAttribute::rstrip));
  EXPECT_FALSE(vocab.attributes(1).any(TokenAttribute::rstrip));
  EXPECT_THAT(vocab.tokenize("<|end|> \n a", false, true), ElementsAre(259, 260, 261));
}

TEST(TokenIds, OutsideTheVocabularyAreAnError) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {}));
  for (const Token token : {-1, 256, INT32_MAX, INT32_MIN}) {
    const std::vector<Token> tokens = {'a', token};
    for (const bool flag : {false, true}) {
      try {
        vocab.piece(token, flag);
        ADD_FAILURE() << token;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(error.message(), fmt::format("token {} is outside the vocabulary of 256 tokens", token));
      }
      EXPECT_THROW(vocab.detokenize(tokens, flag, flag), Error);
    }
    EXPECT_THROW(vocab.text(token), Error);
    EXPECT_THROW(vocab.score(token), Error);
    EXPECT_THROW(vocab.attributes(token), Error);
    EXPECT_FALSE(vocab.is_end(token));
  }
}

}  // namespace
}  // namespace quipu
