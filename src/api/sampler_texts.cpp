// What stages of sampling need of a vocabulary, in the form they take it: sequences of tokens, texts of
// tokens.
#include <algorithm>
#include <set>

#include "api/guard.h"
#include "base/error.h"
#include "quipu/sampler.h"

namespace quipu {
namespace {

/// Longest part of a breaker behind its first token; what is longer is cut.
constexpr std::size_t kLongestTail = 20;

/// Adds the sequences that begin with `first` and spell `text` or a text around it.
void add_breakers(const Tokenizer& tokenizer, std::string_view text, Token first, std::string_view piece,
                  std::set<std::vector<Token>>& breakers) {
  if (piece.find(text) != std::string_view::npos) {
    breakers.insert({first});
    return;
  }
  // A token may end with the text's beginning; the rest is in the tokens behind it.
  for (std::size_t common = std::min(piece.size(), text.size() - 1); common > 0; --common) {
    if (!piece.ends_with(text.substr(0, common))) continue;
    std::vector<Token> tail =
        tokenizer.tokenize(text.substr(common), {.add_special = false, .parse_special = false});
    tail.resize(std::min(tail.size(), kLongestTail));
    tail.insert(tail.begin(), first);
    if (tail.size() > 1) breakers.insert(std::move(tail));
  }
}

}  // namespace

std::vector<std::vector<Token>> dry_breakers(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  return guarded([&] {
    std::set<std::vector<Token>> breakers;
    for (std::size_t i = 0; i < tokenizer.size(); ++i) {
      const auto token = static_cast<Token>(i);
      const std::string piece = tokenizer.piece(token, true);
      for (const std::string& text : texts) {
        if (!text.empty() && !piece.empty()) add_breakers(tokenizer, text, token, piece, breakers);
      }
    }
    return std::vector<std::vector<Token>>(breakers.begin(), breakers.end());
  });
}

std::shared_ptr<const TokenTexts> token_texts(const Tokenizer& tokenizer) {
  return guarded([&] {
    auto texts = std::make_shared<TokenTexts>();
    texts->end = tokenizer.eos().value_or(kNoToken);
    for (std::size_t i = 0; i < tokenizer.size(); ++i) {
      const auto token = static_cast<Token>(i);
      texts->pieces.push_back(tokenizer.piece(token));
      texts->end_generation.push_back(tokenizer.ends_generation(token));
    }
    return std::shared_ptr<const TokenTexts>(std::move(texts));
  });
}

}  // namespace quipu
