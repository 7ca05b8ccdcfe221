// Tokens to text as they come, for showing text while it is generated.
#pragma once

#include <string>
#include <utility>

#include "vocab/utf8.h"
#include "vocab/vocab.h"

namespace quipu {

/// Gives out valid UTF-8 only and never a part of a character: bytes of an unfinished one wait for the next
/// token. Bytes that belong to no character become U+FFFD. A continuation keeps its leading space.
class StreamDecoder {
 public:
  /// `special`: show control tokens.
  explicit StreamDecoder(Vocab vocab, bool special = false) : vocab_(std::move(vocab)), special_(special) {}

  /// The text that `token` completes; may be empty. Throws what Vocab::piece throws, and then changes
  /// nothing.
  std::string push(Token token) { return bytes_.push(vocab_.piece(token, special_)); }
  /// The end of the stream: U+FFFD for an unfinished character. The decoder is as new afterwards.
  std::string finish() { return bytes_.finish(); }

 private:
  Vocab vocab_;
  bool special_;
  vocab::Utf8Stream bytes_;
};

}  // namespace quipu
