// Unigram vocabularies: the best split, spaces, and the normalizer that files carry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "quipu/error.h"
#include "vocab/charsmap_builder.h"
#include "vocab/escaped_spaces.h"
#include "vocab/second_tokenizers.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSpace = "\u2581";

std::vector<std::string> pieces_with(const std::vector<TinyToken>& tokens, std::string_view text,
                                     const std::vector<std::pair<const char*, bool>>& flags = {},
                                     bool with_bytes = true) {
  gguf::Metadata metadata = tiny_unigram(tokens, with_bytes);
  for (const auto& [key, value] : flags) metadata.set(fmt::format("tokenizer.ggml.{}", key), value);
  return pieces_of(Vocab::load(metadata), text);
}

TEST(Unigram, TakesTheSplitWithTheHighestSum) {
  const std::vector<TinyToken> tokens = {{"a", TokenType::normal, -1},
                                         {"b", TokenType::normal, -1},
                                         {"ab", TokenType::normal, -3},
                                         {"c", TokenType::normal, -4},
                                         {"bc", TokenType::normal, -1.5f}};
  EXPECT_THAT(pieces_with(tokens, "ab"), ElementsAre("a", "b"));
  EXPECT_THAT(pieces_with(tokens, "abc"), ElementsAre("a", "bc"));
}

TEST(Unigram, OfEqualSumsTheOneWhoseLastTokenBeginsFirstWins) {
  const std::vector<TinyToken> tokens = {{kSpace, TokenType::normal, -2},
                                         {".", TokenType::normal, -3},
                                         {"?", TokenType::normal, -4},
                                         {"?????", TokenType::normal, -5}};
  EXPECT_THAT(pieces_with(tokens, ".??????", {{"add_space_prefix", true}}),
              ElementsAre(" ", ".", "?", "?????"));
}

TEST(Unigram, CharactersWithoutATokenBecomeTheirBytes) {
  EXPECT_THAT(pieces_with({{"a", TokenType::normal, -1}}, "\U0001F98Aa"),
              ElementsAre("\xF0", "\x9F", "\xA6", "\x8A", "a"));
}

TEST(Unigram, WithoutByteTokensARunOfThemIsOneUnknown) {
  EXPECT_THAT(pieces_with({{"a", TokenType::normal, -1}}, "\U0001F98A\u4F60a\u4F60", {}, false),
              ElementsAre("<unk>", "a", "<unk>"));
}

TEST(Unigram, UserDefinedTokensWinOverAnySplit) {
  const std::vector<TinyToken> tokens = {
      {"a", TokenType::normal, -0.1f}, {"ab", TokenType::user_defined, -99}, {"b", TokenType::normal, -0.1f}};
  EXPECT_THAT(pieces_with(tokens, "aab"), ElementsAre("a", "ab"));
}

TEST(Unigram, SpacesAreAddedAndMergedAsTheFileSays) {
  const std::vector<TinyToken> tokens = {{kSpace, TokenType::normal, -1}, {"a", TokenType::normal, -1}};
  EXPECT_THAT(pieces_with(tokens, " a  a "), ElementsAre(" ", "a", " ", " ", "a", " "));
  EXPECT_THAT(pieces_with(tokens, "a  a", {{"add_space_prefix", true}}),
              ElementsAre(" ", "a", " ", " ", "a"));
  EXPECT_THAT(pieces_with(tokens, " a  a ", {{"remove_extra_whitespaces", true}}),
              ElementsAre(" ", "a", " ", "a"));
  EXPECT_THAT(pieces_with(tokens, "a a", {{"escape_whitespaces", false}}), ElementsAre("a", "\x20", "a"));
  EXPECT_THAT(pieces_with(tokens, "a", {{"add_space_prefix", true}, {"treat_whitespace_as_suffix", true}}),
              ElementsAre("a", " "));
}

TEST(Unigram, EndsTextsAndRemovesThatEnd) {
  const Vocab vocab = Vocab::load(tiny_unigram({{"a", TokenType::normal, -1}}));
  EXPECT_THAT(vocab.tokenize("a", true, false), ElementsAre(259, 1));
  EXPECT_EQ(vocab.detokenize(vocab.tokenize("a", true, false), true, true), "a");
}

TEST(Unigram, ControlTokensAreNoPiecesOfText) {
  EXPECT_THAT(pieces_with({{"<", TokenType::normal, -9}, {"/s>", TokenType::normal, -9}}, "</s>"),
              ElementsAre("<", "/s>"));
}

gguf::Metadata with_map(const std::map<std::string, std::string>& map, const std::vector<TinyToken>& tokens) {
  gguf::Metadata metadata = tiny_unigram(tokens);
  const std::string blob = charsmap_of(map);
  metadata.set("tokenizer.ggml.precompiled_charsmap",
               gguf::Array(std::vector<std::uint8_t>(blob.begin(), blob.end())));
  return metadata;
}

TEST(Unigram, TheNormalizerReplacesTheLongestSequence) {
  const Vocab vocab = Vocab::load(with_map({{"A", "a"}, {"AB", "bb"}, {"\u00BD", "1/2"}, {"-", ""}}, {}));
  const auto normal = [&](std::string_view text) {
    return vocab.detokenize(vocab.tokenize(text, false, false), false, false);
  };
  EXPECT_EQ(normal("ABA-A\u00BDB"), "bbaa1/2B");
  EXPECT_EQ(normal("\xC2"), "\uFFFD");
}

TEST(Unigram, ANormalizerThatDoesNotFitIsRefused) {
  const auto error_of = [](std::string blob) {
    gguf::Metadata metadata = tiny_unigram({});
    metadata.set("tokenizer.ggml.precompiled_charsmap",
                 gguf::Array(std::vector<std::uint8_t>(blob.begin(), blob.end())));
    try {
      Vocab::load(metadata);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  const std::string blob = charsmap_of({{"A", "a"}});
  EXPECT_EQ(error_of(blob), "");
  EXPECT_THAT(error_of(""), HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(error_of(blob.substr(0, 100)), HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(error_of(blob.substr(0, blob.size() - 1)), HasSubstr("precompiled_charsmap"));
  gguf::Metadata text = tiny_unigram({});
  text.set("tokenizer.ggml.precompiled_charsmap", std::string("abc"));
  EXPECT_THROW(Vocab::load(text), Error);
}

TEST(Unigram, ANormalizerOfNoiseDoesNoHarm) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string blob = charsmap_of({{"ab", "x"}, {"\u00E9", "e"}});
    for (int i = 0; i < 40; ++i) blob[4 + random() % (blob.size() - 5)] = static_cast<char>(random());
    gguf::Metadata metadata = tiny_unigram({});
    metadata.set("tokenizer.ggml.precompiled_charsmap",
                 gguf::Array(std::vector<std::uint8_t>(blob.begin(), blob.end())));
    Vocab::load(metadata).tokenize("abab\u00E9 aaaa bbb", true, true);
  }
}

// Against trying every split.
TEST(Unigram, AgreesWithTryingEverySplit) {
  std::mt19937 random(3);
  const std::vector<std::string> letters = {"a", "b", "\u00E9", kSpace};
  for (int round = 0; round < 60; ++round) {
    std::vector<TinyToken> tokens;
    second::Tokens known;
    for (int i = 0; i < 14; ++i) {
      std::string text;
      for (std::size_t n = 1 + random() % 3; n > 0; --n) text += letters[random() % letters.size()];
      if (!known.emplace(text, static_cast<Token>(3 + tokens.size())).second) continue;
      tokens.push_back({text, TokenType::normal, -static_cast<float>(1 + random() % 8) / 4});
    }
    const Vocab vocab = Vocab::load(tiny_unigram(tokens, false));
    float lowest = 0;
    for (const TinyToken& token : tokens) lowest = std::min(lowest, token.score);
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (std::size_t n = 1 + random() % 7; n > 0; --n) text += letters[random() % letters.size()];
      double best = -1e9;
      std::vector<std::size_t> best_begins;
      std::vector<Token> expected;
      for (const second::Split& split : second::all_splits(known, text)) {
        double sum = 0;
        std::vector<Token> ids;
        for (const auto& [token, part] : split.parts) {
          sum += token == kNoToken ? lowest - 10 : tokens[static_cast<std::size_t>(token - 3)].score;
          if (token != kNoToken || ids.empty() || ids.back() != 2)
            ids.push_back(token == kNoToken ? 2 : token);
        }
        // Quarters add up exactly. Among equals: the earliest beginning of the last part, then of the one
        // before it, and so on.
        const std::vector<std::size_t> begins(split.begins.rbegin(), split.begins.rend());
        if (sum > best || (sum == best && begins < best_begins)) {
          best = sum;
          best_begins = begins;
          expected = ids;
        }
      }
      EXPECT_EQ(vocab.tokenize(vocab::unescape_spaces(text), false, false), expected) << text;
    }
  }
}

}  // namespace
}  // namespace quipu
