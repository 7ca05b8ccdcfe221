// RWKV, PLaMo-2, WordPiece and byte-pair vocabularies that spell texts as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "quipu/error.h"
#include "vocab/second_tokenizers.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string random_text(std::mt19937& random, const std::vector<std::string>& letters, std::size_t max) {
  std::string text;
  for (std::size_t n = 1 + random() % max; n > 0; --n) text += letters[random() % letters.size()];
  return text;
}

TEST(Rwkv, TakesTheLongestTokenFromTheLeft) {
  const Vocab vocab = Vocab::load(tiny_rwkv({"ab", "abc", "bcd"}));
  EXPECT_THAT(pieces_of(vocab, "ababcd"), ElementsAre("ab", "abc", "d"));
}

TEST(Rwkv, TextsInFilesAreEscaped) {
  const Vocab vocab = Vocab::load(tiny_rwkv({"a\\n", "\\\\x", "\\xe4\\xbd\\xa0", "\\t\\'"}));
  EXPECT_EQ(vocab.piece(257, false), "a\n");
  EXPECT_EQ(vocab.piece(258, false), "\\x");
  EXPECT_EQ(vocab.piece(259, false), "\u4F60");
  EXPECT_EQ(vocab.piece(260, false), "\t'");
  EXPECT_THAT(vocab.tokenize("a\n\\x\u4F60\t'", false, false), ElementsAre(257, 258, 259, 260));
}

TEST(Rwkv, ABrokenEscapeIsTheCharacterBehindTheBackslash) {
  const Vocab vocab = Vocab::load(tiny_rwkv({"ab\\", "ab\\xg1", "ab\\x"}));
  EXPECT_EQ(vocab.piece(257, false), "ab\\");
  EXPECT_EQ(vocab.piece(258, false), "abxg1");
  EXPECT_EQ(vocab.piece(259, false), "abx");
}

TEST(Rwkv, AnyBytesComeBack) {
  const Vocab vocab = Vocab::load(tiny_rwkv({"ab"}));
  const std::string text("\xFF\0ab\xE2\x80", 6);
  EXPECT_EQ(vocab.detokenize(vocab.tokenize(text, true, true), false, false), text);
}

TEST(Rwkv, AgreesWithTryingEveryLength) {
  std::mt19937 random(1);
  const std::vector<std::string> letters = {"a", "b", "\u00E9"};
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> texts;
    second::Tokens known;
    for (int byte = 0; byte < 256; ++byte) known.emplace(std::string(1, static_cast<char>(byte)), byte + 1);
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random, letters, 5);
      if (known.emplace(text, static_cast<Token>(257 + texts.size())).second) texts.push_back(text);
    }
    const Vocab vocab = Vocab::load(tiny_rwkv(texts));
    const std::string text = random_text(random, letters, 60);
    EXPECT_EQ(vocab.tokenize(text, false, false), second::longest_first(known, text)) << text;
  }
}

TEST(Plamo2, TakesTheSplitWithTheLowestCostAndTheLongestFirstTokenAmongEquals) {
  const std::vector<TinyToken> tokens = {{"a", TokenType::normal, -1},  {"b", TokenType::normal, -1},
                                         {"ab", TokenType::normal, -2}, {"bc", TokenType::normal, -1},
                                         {"c", TokenType::normal, -1},  {"abc", TokenType::normal, -5}};
  const Vocab vocab = Vocab::load(tiny_plamo2(tokens));
  EXPECT_THAT(pieces_of(vocab, "ab"), ElementsAre("ab"));
  EXPECT_THAT(pieces_of(vocab, "abc"), ElementsAre("a", "bc"));
}

TEST(Plamo2, CharactersWithoutATokenBecomeTheirBytes) {
  const Vocab vocab = Vocab::load(tiny_plamo2({{"a", TokenType::normal, -1}}));
  EXPECT_THAT(pieces_of(vocab, "\u4F60a"), ElementsAre("\xE4", "\xBD", "\xA0", "a"));
  EXPECT_EQ(vocab.detokenize(vocab.tokenize("\xFF", false, false), false, false), "\uFFFD");
}

TEST(Plamo2, AByteOrderMarkInFrontIsDropped) {
  const Vocab vocab = Vocab::load(tiny_plamo2({{"a", TokenType::normal, -1}}));
  EXPECT_THAT(pieces_of(vocab, "\uFEFFa"), ElementsAre("a"));
}

TEST(Plamo2, NeedsEveryByteToken) {
  EXPECT_THROW(Vocab::load(tiny_metadata("plamo2", {{"a"}, {"<0x00>", TokenType::byte}})), Error);
}

TEST(Plamo2, AgreesWithTryingEverySplit) {
  std::mt19937 random(2);
  const std::vector<std::string> letters = {"a", "b", "\u00E9"};
  for (int round = 0; round < 40; ++round) {
    std::vector<TinyToken> tokens;
    second::Tokens known;
    for (int i = 0; i < 12; ++i) {
      const std::string text = random_text(random, letters, 3);
      if (!known.emplace(text, static_cast<Token>(260 + tokens.size())).second) continue;
      tokens.push_back({text, TokenType::normal, -static_cast<float>(random() % 8) / 4});
    }
    const Vocab vocab = Vocab::load(tiny_plamo2(tokens));
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(random, letters, 7);
      double best = 1e18;
      std::vector<std::size_t> best_ends;
      std::vector<Token> expected;
      for (const second::Split& split : second::all_splits(known, text)) {
        double cost = 0;
        std::vector<Token> ids;
        std::vector<std::size_t> ends;  // later ones first in order
        for (std::size_t part = 0; part < split.parts.size(); ++part) {
          const auto& [token, bytes] = split.parts[part];
          cost += token == kNoToken ? 1000 : -tokens[static_cast<std::size_t>(token - 260)].score;
          ends.push_back(split.begins[part] + bytes.size());
          if (token != kNoToken) ids.push_back(token);
          if (token == kNoToken) {
            for (const char c : bytes) ids.push_back(4 + static_cast<unsigned char>(c));
          }
        }
        if (cost < best || (cost == best && ends > best_ends)) {
          best = cost;
          best_ends = ends;
          expected = ids;
        }
      }
      EXPECT_EQ(vocab.tokenize(text, false, false), expected) << text;
    }
  }
}

TEST(WordPiece, CutsWordsIntoTheLongestPieces) {
  const Vocab vocab =
      Vocab::load(tiny_word_piece({"\u2581un", "\u2581unaffa", "ff", "able", "a", "\u2581b"}));
  EXPECT_THAT(pieces_of(vocab, "unaffable b"), ElementsAre("[UNK]", " b"));
  const Vocab whole = Vocab::load(tiny_word_piece({"\u2581un", "aff", "able", "a", "\u2581b"}));
  EXPECT_THAT(pieces_of(whole, "unaffable\t\n b"), ElementsAre(" un", "aff", "able", " b"));
}

TEST(WordPiece, PutsTheTextBetweenItsMarks) {
  const Vocab vocab = Vocab::load(tiny_word_piece({"\u2581a"}));
  EXPECT_THAT(vocab.tokenize("a", true, false), ElementsAre(1, 4, 2));
  EXPECT_TRUE(vocab.add_separator());
  EXPECT_EQ(vocab.detokenize(vocab.tokenize("a", true, false), true, true), " a");
}

TEST(WordPiece, DropsAccentsCaseAndControlCharacters) {
  const Vocab vocab = Vocab::load(tiny_word_piece({"\u2581eclair"}));
  EXPECT_THAT(pieces_of(vocab, "\u00C9CLA\u0007I\u0301R"), ElementsAre(" eclair"));
}

TEST(WordPiece, KeepsCaseAndAccentsWhereTheFileSaysSo) {
  gguf::Metadata metadata = tiny_word_piece({"\u2581\u00C9A", "\u2581\u00E9a", "\u2581ea"});
  metadata.set("tokenizer.ggml.normalizer.lowercase", false);
  EXPECT_THAT(pieces_of(Vocab::load(metadata), "\u00C9A"), ElementsAre(" \u00C9A"));
  metadata.set("tokenizer.ggml.normalizer.lowercase", true);
  EXPECT_THAT(pieces_of(Vocab::load(metadata), "\u00C9A"), ElementsAre(" ea"));
  metadata.set("tokenizer.ggml.normalizer.strip_accents", false);
  EXPECT_THAT(pieces_of(Vocab::load(metadata), "\u00C9A"), ElementsAre(" \u00E9a"));
}

TEST(WordPiece, PunctuationAndIdeographsAreWordsOfTheirOwn) {
  const Vocab vocab = Vocab::load(
      tiny_word_piece({"\u2581a", "\u2581,", "\u2581\u4F60", "\u2581$", "\u2581\u20AC", "\u20AC"}));
  EXPECT_THAT(pieces_of(vocab, "a,a\u4F60\u4F60$a"),
              ElementsAre(" a", " ,", " a", " \u4F60", " \u4F60", " $", " a"));
  EXPECT_THAT(pieces_of(vocab, "a\u20AC"), ElementsAre(" a", "\u20AC"));
}

TEST(PlainBpe, MergesCharactersAndEscapesSpaces) {
  const Vocab vocab = Vocab::load(tiny_plain_bpe(
      "gemma4", {"\u2581 \u00E9", "a b"}, {{"\u2581"}, {"\u00E9"}, {"\u2581\u00E9"}, {"a"}, {"b"}, {"ab"}}));
  EXPECT_THAT(pieces_of(vocab, "ab \u00E9"), ElementsAre("ab", " \u00E9"));
}

TEST(PlainBpe, WhatHasNoTokenBecomesByteTokens) {
  const Vocab vocab = Vocab::load(tiny_plain_bpe("gemma4", {}, {{"a"}}));
  EXPECT_THAT(pieces_of(vocab, "\u00E9a"), ElementsAre("\xC3", "\xA9", "a"));
}

TEST(PlainBpe, ARunOfNewlinesIsOneTokenWhereThereIsOne) {
  const Vocab vocab = Vocab::load(tiny_plain_bpe("gemma4", {}, {{"\n"}, {"\n\n\n"}, {"a"}}));
  EXPECT_THAT(pieces_of(vocab, "a\n\n\na\n\n"), ElementsAre("a", "\n\n\n", "a", "\n", "\n"));
}

TEST(PlainBpe, Gemma4AlwaysBegins) {
  gguf::Metadata metadata = tiny_plain_bpe("gemma4", {}, {{"a"}});
  metadata.set("tokenizer.ggml.add_bos_token", false);
  EXPECT_THAT(Vocab::load(metadata).tokenize("a", true, false), ElementsAre(0, 257));
  metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.set("tokenizer.ggml.pre", std::string("whatever"));
  EXPECT_THAT(Vocab::load(metadata).tokenize("a", true, false), ElementsAre(0, 257));
}

// A vocabulary of each kind.
std::vector<std::pair<std::string, Vocab>> every_kind() {
  const std::vector<TinyToken> pieces = {{"\u2581"}, {"a", TokenType::normal, -1}};
  return {{"spm", Vocab::load(tiny_spm(pieces))},
          {"bpe", Vocab::load(tiny_bpe("gpt-2", {}))},
          {"plain bpe", Vocab::load(tiny_plain_bpe("gemma4", {}, pieces))},
          {"word piece", Vocab::load(tiny_word_piece({"\u2581a"}))},
          {"unigram", Vocab::load(tiny_unigram(pieces))},
          {"rwkv", Vocab::load(tiny_rwkv({"aa"}))},
          {"plamo2", Vocab::load(tiny_plamo2(pieces))}};
}

TEST(EveryKind, TakesAnyBytesAndSaysTheSameTwice) {
  std::mt19937 random(4);
  std::string noise;
  for (int i = 0; i < 10'000; ++i) noise.push_back(static_cast<char>(random()));
  const std::vector<std::string> texts = {"\xE6\xAD",     "\xE2\x80",         "\xFF",        "\xC0\x80",
                                          "\xED\xA0\x80", "\xF4\x90\x80\x80", "abc\xF0\x9F", noise};
  for (const auto& [name, vocab] : every_kind()) {
    for (const std::string& text : texts) {
      const std::vector<Token> tokens = vocab.tokenize(text, true, true);
      EXPECT_EQ(vocab.tokenize(text, true, true), tokens) << name;
      vocab.detokenize(tokens, true, true);
    }
  }
}

TEST(EveryKind, GoesOnBehindANulByte) {
  for (const auto& [name, vocab] : every_kind()) {
    EXPECT_GT(vocab.tokenize(std::string("a\0 a", 4), false, false).size(), 1u) << name;
  }
}

TEST(EveryKind, TextOfUsersFormsNoControlToken) {
  for (const auto& [name, vocab] : every_kind()) {
    for (const bool add_special : {false, true}) {
      std::size_t n_control = 0;
      std::string text = "a";
      for (Token token = 0; token < static_cast<Token>(vocab.size()); ++token) {
        if (vocab.attributes(token).any(TokenAttribute::control)) text.append(vocab.text(token)).append(" a");
      }
      for (const Token token : vocab.tokenize_untrusted(text, add_special)) {
        if (vocab.attributes(token).any(TokenAttribute::control)) ++n_control;
      }
      EXPECT_LE(n_control, add_special ? 2u : 0u) << name;
    }
  }
}

TEST(Untrusted, DoesNotFindFrameTokensThatAreShownLikeText) {
  const Vocab vocab = Vocab::load(
      tiny_bpe("gpt-4o", {}, {{"<|message|>", TokenType::control}, {"<tab>", TokenType::user_defined}}));
  EXPECT_EQ(vocab.attributes(256), TokenAttribute::user_defined);
  EXPECT_THAT(vocab.tokenize("<|message|>", false, false), ElementsAre(256));
  EXPECT_EQ(vocab.tokenize_untrusted("<|message|>", false).size(), 11u);
  EXPECT_THAT(vocab.tokenize_untrusted("<tab>", false), ElementsAre(257));
}

TEST(Suppressed, ListsTokensOfTheVocabularyOnly) {
  gguf::Metadata metadata = tiny_bpe("gpt-2", {});
  EXPECT_TRUE(Vocab::load(metadata).suppressed_tokens().empty());
  metadata.set("tokenizer.ggml.suppress_tokens", gguf::Array(std::vector<std::int32_t>{7, -1, 256, 3}));
  EXPECT_THAT(Vocab::load(metadata).suppressed_tokens(), ElementsAre(7, 3));
}

TEST(Separator, IsNotedForByteLevelVocabularies) {
  gguf::Metadata metadata = tiny_bpe("roberta-bpe", {}, {{"</s>", TokenType::control}});
  metadata.set("tokenizer.ggml.seperator_token_id", std::uint32_t{256});
  const Vocab vocab = Vocab::load(metadata);
  EXPECT_TRUE(vocab.add_separator());
  EXPECT_THAT(vocab.tokenize("a", true, false), ElementsAre('a'));
  metadata.set("tokenizer.ggml.add_sep_token", false);
  EXPECT_FALSE(Vocab::load(metadata).add_separator());
}

TEST(Strips, MasksOwnTheSpaceBeforeThem) {
  gguf::Metadata metadata = tiny_bpe("jina-v2-de", {}, {{"<mask>", TokenType::control}});
  EXPECT_THAT(Vocab::load(metadata).tokenize("a <mask>", false, true), ElementsAre('a', 256));
}

TEST(Roles, GptOssEndsNoTurnWithTheEndOfAMessage) {
  const Vocab vocab =
      Vocab::load(tiny_bpe("gpt-4o", {}, {{"<|endoftext|>"}, {"<|return|>"}, {"<|call|>"}, {"<|end|>"}}));
  EXPECT_EQ(vocab.special().eot, 256);
  EXPECT_FALSE(vocab.is_end(259));
}

}  // namespace
}  // namespace quipu
