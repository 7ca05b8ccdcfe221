// The PLaMo-2 tokenizer (Preferred Networks 2025): the split with the lowest cost, found from the end of the
// text to its beginning; of equal costs the longest first token wins. Costs are integers, so sums are exact.
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "vocab/algorithm.h"
#include "vocab/token_matcher.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr double kScoreScale = 1e4;
constexpr std::int64_t kUnknownCost = 10'000'000;  // of a character without a token, or against a worse one
constexpr double kUselessCost = 20e6;              // tokens of this cost and above are never used
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

double cost_of(float score) {
  return std::round(-double{score} * kScoreScale);
}
bool is_usable(float score) {
  return cost_of(score) < kUselessCost && cost_of(score) > -0x1p31;
}

class Plamo2 final : public Algorithm {
 public:
  explicit Plamo2(const AlgorithmInputs& inputs)
      : matcher_(usable_tokens(inputs.tokens)), byte_tokens_(find_byte_tokens(inputs.tokens)) {
    for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
      if (byte_tokens_[byte] == kNoToken) {
        fail(ErrorCode::bad_file, "{}: key 'tokenizer.ggml.tokens': there is no byte token '<0x{:02X}>'",
             inputs.metadata.origin(), byte);
      }
    }
    costs_.reserve(inputs.tokens.scores.size());
    for (const float score : inputs.tokens.scores) {
      costs_.push_back(is_usable(score) ? static_cast<std::int64_t>(cost_of(score)) : 0);
    }
  }

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    std::string storage;
    std::string_view valid = repair_utf8(text, storage);
    if (valid.starts_with(kByteOrderMark)) valid.remove_prefix(kByteOrderMark.size());
    const std::vector<Step> best = best_steps(valid);
    for (std::size_t at = 0; at < valid.size(); at += best[at].length) {
      if (best[at].token != kNoToken) {
        out.push_back(best[at].token);
        continue;
      }
      for (const char c : valid.substr(at, best[at].length)) {
        out.push_back(byte_tokens_[static_cast<std::uint8_t>(c)]);
      }
    }
  }

  std::string piece(std::string_view token_text, TokenAttributes attributes) const override {
    const int byte = attributes.any(TokenAttribute::byte) ? byte_of_text(token_text) : -1;
    return byte < 0 ? std::string(token_text) : std::string(1, static_cast<char>(byte));
  }

 private:
  // How the rest of the text from some place on begins.
  struct Step {
    std::int64_t cost = std::numeric_limits<std::int64_t>::max();
    std::size_t length = 0;
    Token token = kNoToken;  // none: a character as its bytes
  };

  static std::vector<TokenMatcher::Entry> usable_tokens(const TokenTable& tokens) {
    std::vector<TokenMatcher::Entry> entries;
    for (Token token = 0; token < tokens.texts.size(); ++token) {
      const auto i = static_cast<std::size_t>(token);
      if (!tokens.may_come_from_text(token) || tokens.attributes[i].any(TokenAttribute::byte)) continue;
      if (is_usable(tokens.scores[i])) entries.push_back({tokens.texts[token], token});
    }
    return entries;
  }

  std::vector<Step> best_steps(std::string_view text) const {
    TokenMatcher::States states;
    matcher_.scan(text, states);
    std::vector<Step> best(text.size() + 1);
    best[text.size()].cost = 0;
    for (std::size_t at = text.size(); at-- > 0;) {
      if (is_continuation(text[at])) continue;  // tokens begin at characters
      Step& step = best[at];
      const auto propose = [&](Token token, std::size_t length, std::int64_t cost) {
        const std::int64_t rest = best[at + length].cost;
        if (rest != std::numeric_limits<std::int64_t>::max() && rest + cost < step.cost) {
          step = {rest + cost, length, token};
        }
      };
      matcher_.visit(states[at], [&](Token token, std::size_t length) {
        propose(token, length, costs_[static_cast<std::size_t>(token)]);
      });
      propose(kNoToken, length_by_lead_byte(text[at]), kUnknownCost);
    }
    return best;
  }

  TokenMatcher matcher_;
  std::array<Token, 256> byte_tokens_;
  std::vector<std::int64_t> costs_;  // by token
};

}  // namespace

Traits plamo2_traits(const gguf::Metadata& /*metadata*/) {
  return {.special = {.bos = 1, .eos = 2, .unknown = 0, .padding = 3}};
}

std::unique_ptr<Algorithm> make_plamo2(const AlgorithmInputs& inputs) {
  return std::make_unique<Plamo2>(inputs);
}

}  // namespace quipu::vocab
