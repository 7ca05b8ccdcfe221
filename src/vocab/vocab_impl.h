// What a Vocab holds: filled by vocab_load.cpp, never changed afterwards.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vocab/algorithm.h"
#include "vocab/special_splitter.h"
#include "vocab/vocab.h"

namespace quipu {

struct Vocab::Impl {
  VocabType type = VocabType::none;
  std::string origin;  ///< for messages
  std::size_t size = 0;
  vocab::TokenTable tokens;
  vocab::TextTable pieces;  ///< with control tokens shown
  SpecialTokens special;
  std::vector<Token> end_tokens;
  std::vector<Token> suppressed;
  vocab::Traits traits;
  std::unique_ptr<const vocab::Algorithm> algorithm;  ///< null for type none
  std::unique_ptr<const vocab::SpecialSplitter> splitter;

  /// The token as an index; throws if it is out of range.
  std::size_t checked(Token token) const;
  void require_text() const;
  std::vector<Token> tokenize(std::string_view text, bool add_special, vocab::Recognize recognize,
                              std::span<const ByteRange> untrusted = {}) const;
  /// What `add_special` puts behind a text, or kNoToken.
  Token end_of_text() const;
};

}  // namespace quipu
