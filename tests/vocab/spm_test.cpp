// SentencePiece-style tokenizing on vocabularies small enough to see why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;

constexpr const char* kSpace = "\u2581";

TEST(Spm, HigherScoresMergeFirst) {
  const Vocab ab = Vocab::load(
      tiny_spm({{"a"}, {"b"}, {"c"}, {"ab", TokenType::normal, -1}, {"bc", TokenType::normal, -2}}));
  EXPECT_THAT(ab.tokenize("abc", false, false), testing::Contains(262));
  const Vocab bc = Vocab::load(
      tiny_spm({{"a"}, {"b"}, {"c"}, {"ab", TokenType::normal, -2}, {"bc", TokenType::normal, -1}}));
  EXPECT_THAT(bc.tokenize("abc", false, false), testing::Contains(263));
}

TEST(Spm, AmongEqualScoresTheLeftmostMergesFirst) {
  gguf::Metadata metadata = tiny_spm({{"a"}, {"aa", TokenType::normal, -1}});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(pieces_of(Vocab::load(metadata), "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(Spm, MinusZeroAndZeroAreEqualScores) {
  gguf::Metadata metadata =
      tiny_spm({{"a"}, {"b"}, {"c"}, {"ab", TokenType::normal, -0.0f}, {"bc", TokenType::normal, 0.0f}});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(pieces_of(Vocab::load(metadata), "abc"), ElementsAre("ab", "c"));
}

TEST(Spm, TextGetsASpaceInFrontAndLosesItAgain) {
  const Vocab vocab =
      Vocab::load(tiny_spm({{kSpace}, {"a"}, {std::string(kSpace) + "a", TokenType::normal, -1}}));
  EXPECT_THAT(vocab.tokenize("a", true, false), ElementsAre(1, 261));
  EXPECT_EQ(vocab.piece(261, false), " a");
  EXPECT_EQ(vocab.detokenize(vocab.tokenize("a", true, false), true, false), " a");
  EXPECT_EQ(vocab.detokenize(vocab.tokenize("a", false, false), false, false), "a");
}

TEST(Spm, TextAfterASpecialTokenGetsASpaceInFront) {
  const Vocab vocab = Vocab::load(tiny_spm({{kSpace}, {"a"}}));
  EXPECT_THAT(vocab.tokenize("a</s>a", false, true), ElementsAre(259, 260, 2, 259, 260));
}

TEST(Spm, TheSpaceInFrontCanBeSwitchedOff) {
  gguf::Metadata metadata = tiny_spm({{kSpace}, {"a"}});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Vocab::load(metadata).tokenize("a a", false, false), ElementsAre(260, 259, 260));
}

TEST(Spm, CharactersWithoutATokenBecomeTheirBytes) {
  gguf::Metadata metadata = tiny_spm({});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Vocab::load(metadata).tokenize("\u4F60", false, false),
              ElementsAre(3 + 0xE4, 3 + 0xBD, 3 + 0xA0));
}

TEST(Spm, AnyBytesRoundTripThroughByteTokens) {
  gguf::Metadata metadata = tiny_spm({{kSpace}});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  const Vocab vocab = Vocab::load(metadata);
  std::string bytes;
  unsigned state = 1;
  for (int i = 0; i < 10'000; ++i) {
    state = state * 1664525u + 1013904223u;
    if (const char byte = static_cast<char>(state >> 24); byte != ' ') bytes.push_back(byte);
  }
  for (const std::string& text :
       {std::string("\xE6\xAD"), std::string("\xE2\x80"), std::string("\xFF"), std::string("\xC0\x80"),
        std::string("\xED\xA0\x80"), std::string("\xF4\x90\x80\x80"), std::string("abc\xF0\x9F"),
        std::string("abc\0def", 7), bytes}) {
    const std::vector<Token> tokens = vocab.tokenize(text, false, false);
    EXPECT_EQ(vocab.detokenize(tokens, false, false), text);
    EXPECT_EQ(vocab.tokenize(text, false, false), tokens);
  }
}

TEST(Spm, ATruncatedCharacterTakesTheEscapedSpaceApart) {
  // As in the reference vocabularies: the space is U+2581 by then, and its first byte counts to the
  // character.
  gguf::Metadata metadata = tiny_spm({{kSpace}, {"x"}});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Vocab::load(metadata).tokenize("\xE4\xBD x", false, false),
              ElementsAre(3 + 0xE4, 3 + 0xBD, 3 + 0xE2, 3 + 0x96, 3 + 0x81, 260));
}

TEST(Spm, WithoutANewlineByteANewlineIsUnknown) {
  gguf::Metadata metadata = tiny_spm({{"a"}}, [](int byte) { return byte != '\n'; });
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_EQ(vocab.special().newline, kNoToken);
  EXPECT_THAT(vocab.tokenize("a\n\u4F60", false, false), ElementsAre(258, 0, 2 + 0xE4, 2 + 0xBD, 2 + 0xA0));
}

TEST(Spm, WithoutByteTokensACharacterIsOneUnknown) {
  gguf::Metadata metadata = tiny_spm({{"a"}}, [](int) { return false; });
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Vocab::load(metadata).tokenize("a\u4F60a", false, false), ElementsAre(3, 0, 3));
}

TEST(Spm, WithoutAnUnknownTokenWhatIsMissingIsLeftOut) {
  gguf::Metadata metadata = tiny_metadata("llama", {{"a"}});
  metadata.set("tokenizer.ggml.unknown_token_id", std::int32_t{-1});
  EXPECT_THAT(Vocab::load(metadata).tokenize("xax", false, false), ElementsAre(0));
}

}  // namespace
}  // namespace quipu
