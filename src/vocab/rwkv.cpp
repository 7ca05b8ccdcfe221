// The RWKV "World" tokenizer: the longest token from the left, on plain bytes. Texts in files are written
// with backslashes (\n, \t, \r, \xHH, and any other character for itself).
#include "vocab/algorithm.h"
#include "vocab/token_matcher.h"

namespace quipu::vocab {

namespace {

std::string unescape(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      bytes.push_back(text[at]);
      continue;
    }
    const char c = text[++at];
    const int byte = c == 'x' ? byte_of_digits(text.substr(at + 1, 2)) : -1;
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      at += 2;
    } else {
      bytes.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
    }
  }
  return bytes;
}

class Rwkv final : public Algorithm {
 public:
  explicit Rwkv(const AlgorithmInputs& inputs)
      : matcher_(make_matcher(inputs.tokens)), unknown_(inputs.unknown) {}

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    TokenMatcher::States states;
    matcher_.scan(text, states);
    for (std::size_t at = 0; at < text.size();) {
      const auto [token, length] = matcher_.longest(states[at]);
      if (length > 0) {
        out.push_back(token);
      } else if (unknown_ != kNoToken) {
        out.push_back(unknown_);
      }
      at += length > 0 ? length : 1;
    }
  }

  std::string piece(std::string_view token_text, TokenAttributes /*attributes*/) const override {
    return unescape(token_text);
  }

 private:
  static TokenMatcher make_matcher(const TokenTable& tokens) {
    std::vector<std::string> texts;
    std::vector<Token> ids;
    for (Token token = 0; token < tokens.texts.size(); ++token) {
      if (!tokens.may_come_from_text(token)) continue;
      texts.push_back(unescape(tokens.texts[token]));
      ids.push_back(token);
    }
    std::vector<TokenMatcher::Entry> entries;
    for (std::size_t i = 0; i < texts.size(); ++i) entries.push_back({texts[i], ids[i]});
    return TokenMatcher(entries);
  }

  TokenMatcher matcher_;
  Token unknown_;
};

}  // namespace

Traits rwkv_traits(const gguf::Metadata& /*metadata*/) {
  return {};
}

std::unique_ptr<Algorithm> make_rwkv(const AlgorithmInputs& inputs) {
  return std::make_unique<Rwkv>(inputs);
}

}  // namespace quipu::vocab
