// Streaming: whole characters only, whatever the tokens cut.
#include <gtest/gtest.h>

#include "quipu/error.h"
#include "vocab/stream_decoder.h"
#include "vocab/tiny_vocab.h"

namespace quipu {
namespace {

Vocab byte_vocab() {
  return Vocab::load(tiny_bpe("qwen2", {}, {{"<s>", TokenType::control}}));
}

TEST(StreamDecoder, HoldsBytesBackUntilACharacterIsComplete) {
  StreamDecoder decoder(byte_vocab());
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push(0xA6), "");
  EXPECT_EQ(decoder.push(0x8A), "\U0001F98A");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, FlushesAnUnfinishedCharacterAtTheEnd) {
  StreamDecoder decoder(byte_vocab());
  decoder.push(0xE4);
  decoder.push(0xBD);
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push('b'), "b");
}

TEST(StreamDecoder, ReplacesBytesOfNoCharacterAtOnce) {
  StreamDecoder decoder(byte_vocab());
  EXPECT_EQ(decoder.push(0xFF), "\uFFFD");
  EXPECT_EQ(decoder.push(0x80), "\uFFFD");
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.push('c'), "\uFFFDc");
  EXPECT_EQ(decoder.push(0xC0), "\uFFFD");  // overlong
  EXPECT_EQ(decoder.push(0xED), "");
  EXPECT_EQ(decoder.push(0xA0), "\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(decoder.push(0xF4), "");
  EXPECT_EQ(decoder.push(0x90), "\uFFFD\uFFFD");  // past U+10FFFF
}

TEST(StreamDecoder, GivesTheWholeTextInTheEnd) {
  const Vocab vocab = byte_vocab();
  const std::string text = "na\u00EFve \u4F60\u597D \U0001F468\u200D\U0001F469 \u0301x";
  StreamDecoder decoder(vocab);
  std::string streamed;
  for (const Token token : vocab.tokenize(text, false, false)) streamed += decoder.push(token);
  EXPECT_EQ(streamed + decoder.finish(), text);
}

TEST(StreamDecoder, ShowsControlTokensOnRequest) {
  EXPECT_EQ(StreamDecoder(byte_vocab()).push(256), "");
  EXPECT_EQ(StreamDecoder(byte_vocab(), true).push(256), "<s>");
}

TEST(StreamDecoder, ABadTokenChangesNothing) {
  StreamDecoder decoder(byte_vocab());
  decoder.push(0xC3);
  EXPECT_THROW(decoder.push(9999), Error);
  EXPECT_EQ(decoder.push(0xA9), "\u00E9");
}

TEST(StreamDecoder, KeepsTheSpaceOfAContinuation) {
  const Vocab vocab = Vocab::load(tiny_spm({{"\u2581"},
                                            {"a"},
                                            {"\u2581"
                                             "a",
                                             TokenType::normal, 1}}));
  StreamDecoder decoder(vocab);
  EXPECT_EQ(decoder.push(261), " a");
}

}  // namespace
}  // namespace quipu
