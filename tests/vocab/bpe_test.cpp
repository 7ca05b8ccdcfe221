// Byte-level BPE: splitting into words, merging, bad bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/reader.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

using testing::ElementsAre;

TEST(Bpe, LowerRanksMergeFirst) {
  EXPECT_THAT(pieces_of(Vocab::load(tiny_bpe("gpt-2", {"a b", "b c"}, {{"ab"}, {"bc"}})), "abc"),
              ElementsAre("ab", "c"));
  EXPECT_THAT(pieces_of(Vocab::load(tiny_bpe("gpt-2", {"b c", "a b"}, {{"ab"}, {"bc"}})), "abc"),
              ElementsAre("a", "bc"));
}

TEST(Bpe, TheFirstRankOfAPairCounts) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {"a b", "b c", "a b"}, {{"ab"}, {"bc"}}));
  EXPECT_THAT(pieces_of(vocab, "abc"), ElementsAre("ab", "c"));
}

TEST(Bpe, LongAndShortWordsMergeAlike) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {"a a", "b a", "aa aa", "aa b", "ba aa"},
                                           {{"aa"}, {"ba"}, {"aaaa"}, {"aab"}, {"baaa"}}));
  // The same word alone and as the beginning of one that is longer than what is merged without a heap.
  for (const std::string word : {"aaabaaab", "abaabaaa", "bbaaaaab", "aaaaaaaa"}) {
    std::vector<std::string> apart = pieces_of(vocab, word);
    const std::vector<std::string> joined = pieces_of(vocab, word + std::string(40, 'z'));
    for (int i = 0; i < 40; ++i) apart.emplace_back("z");
    EXPECT_EQ(joined, apart) << word;
  }
}

TEST(Bpe, AWholeWordThatIsATokenNeedsNoMergesInLlama3) {
  EXPECT_THAT(pieces_of(Vocab::load(tiny_bpe("llama-bpe", {}, {{"abc"}})), "abc"), ElementsAre("abc"));
  EXPECT_THAT(pieces_of(Vocab::load(tiny_bpe("gpt-2", {}, {{"abc"}})), "abc"), ElementsAre("a", "b", "c"));
}

TEST(Bpe, SpacesAreWrittenInTheByteAlphabet) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {"\u0120 a"}, {{"\u0120a"}}));
  EXPECT_THAT(pieces_of(vocab, "b a"), ElementsAre("b", " a"));
}

TEST(Bpe, BadBytesBecomeReplacementCharacters) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {}));
  const auto repaired = [&](std::string_view text) {
    const std::vector<Token> tokens = vocab.tokenize(text, false, false);
    EXPECT_EQ(vocab.tokenize(text, false, false), tokens);
    return vocab.detokenize(tokens, false, false);
  };
  EXPECT_EQ(repaired("\xE6\xAD"), "\uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xE2\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xFF"), "\uFFFD");
  EXPECT_EQ(repaired("\xC0\x80"), std::string("\0", 1));
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\xED\xA0\x80");
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\uFFFD");
  EXPECT_EQ(repaired("abc\xF0\x9F"), "abc\uFFFD\uFFFD");
}

TEST(Bpe, TextGoesOnAfterANulByte) {
  const Vocab vocab = Vocab::load(tiny_bpe("gpt-2", {}));
  const std::string text("abc\0def", 7);
  EXPECT_EQ(vocab.detokenize(vocab.tokenize(text, false, false), false, false), text);
}

TEST(Bpe, BytesWithoutATokenAreLeftOut) {
  gguf::Metadata metadata = tiny_metadata("gpt2", {{"a"}, {"<unk>", TokenType::unknown}});
  metadata.set("tokenizer.ggml.merges", gguf::Array(std::vector<std::string>()));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  EXPECT_THAT(Vocab::load(metadata).tokenize("ba", false, false), ElementsAre(0));
  metadata.set("tokenizer.ggml.unknown_token_id", std::uint32_t{1});
  EXPECT_THAT(Vocab::load(metadata).tokenize("ba", false, false), ElementsAre(0));
}

TEST(Bpe, SpacesBeforePunctuationAreCleanedUp) {
  const std::string text = "Hi , it 's a ' b . We 're 't '";
  const auto round_trip = [&](const char* pre) {
    const Vocab vocab = Vocab::load(tiny_bpe(pre, {}));
    return vocab.detokenize(vocab.tokenize(text, false, false), false, false);
  };
  EXPECT_EQ(round_trip("gpt-2"), "Hi, it's a'b. We're 't '");
  EXPECT_EQ(round_trip("qwen2"), text);
}

class BuiltInModel : public testing::Test {
 protected:
  const Vocab vocab_ = Vocab::load(gguf::Reader::open(QUIPU_SOURCE_DIR "/models/quipu-mini.gguf").metadata());
};

TEST_F(BuiltInModel, HasItsRoles) {
  EXPECT_EQ(vocab_.size(), 1024u);
  EXPECT_EQ(vocab_.special().bos, 0);
  EXPECT_EQ(vocab_.special().eos, 2);
  EXPECT_EQ(vocab_.special().eot, 2);
  EXPECT_TRUE(vocab_.add_bos());
  EXPECT_THAT(vocab_.end_tokens(), ElementsAre(0, 2));
}

TEST_F(BuiltInModel, TokenizesAsTheReferenceDoes) {
  EXPECT_THAT(vocab_.tokenize("Once upon a time, there was a little owl.\n", true, false),
              ElementsAre(0, 575, 574, 261, 453, 47, 378, 273, 261, 824, 1023, 49, 13));
  EXPECT_THAT(vocab_.tokenize("<|im_start|>user\nHi  there!<|im_end|>", false, true),
              ElementsAre(1, 312, 13, 75, 108, 35, 378, 36, 2));
  EXPECT_THAT(vocab_.tokenize("\u4F60\u597D 12", false, false),
              ElementsAre(231, 192, 163, 232, 168, 192, 35, 52, 53));
}

TEST_F(BuiltInModel, TextRoundTrips) {
  const std::string text = "The fox said: \u201Cwait\u201D\u2026 \U0001F98A\n\tand 3 owls came";
  EXPECT_EQ(vocab_.detokenize(vocab_.tokenize(text, true, false), true, false), text);
}

}  // namespace
}  // namespace quipu
