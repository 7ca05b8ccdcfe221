// SentencePiece-style tokenizer (Kudo and Richardson 2018, the BPE variant): spaces become U+2581, characters
// are merged into the token with the highest score, what is left without a token becomes byte tokens.
#include <array>
#include <bit>
#include <limits>

#include "base/error.h"
#include "vocab/algorithm.h"
#include "vocab/escaped_spaces.h"
#include "vocab/merge.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

// Lower for a higher score.
std::uint32_t rank_of_score(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 and 0 are equal
  const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

class Spm final : public Algorithm {
 public:
  explicit Spm(const AlgorithmInputs& inputs)
      : tokens_(inputs.tokens), unknown_(inputs.unknown), add_space_prefix_(inputs.add_space_prefix) {
    byte_tokens_ = find_byte_tokens(tokens_);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char character = static_cast<char>(byte);
      if (byte_tokens_[byte] == kNoToken) byte_tokens_[byte] = tokens_.texts.find({&character, 1});
    }
    ranks_.reserve(tokens_.scores.size());
    for (const float score : tokens_.scores) ranks_.push_back(rank_of_score(score));
    words_are_apart_ = words_are_apart();
  }

  void encode(std::string_view text, bool after_special, std::vector<Token>& out) const override {
    const std::string escaped =
        escape_spaces(text, add_space_prefix_ && after_special ? kEscapedSpace : std::string_view());
    if (escaped.size() >= std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorCode::invalid_argument, "a text of {} bytes is too long to tokenize", text.size());
    }
    std::vector<Part> parts;
    Merger merger;
    for (std::size_t begin = 0; begin < escaped.size();) {
      const std::size_t end = words_are_apart_ ? end_of_word(escaped, begin) : escaped.size();
      const std::string_view word = std::string_view(escaped).substr(begin, end - begin);
      split_characters(word, parts);
      merger.merge(parts, [&](const Part& left, const Part& right) -> Merge {
        const Token token = tokens_.texts.find(word.substr(left.begin, left.length + right.length));
        if (token == kNoToken) return {};
        return {ranks_[static_cast<std::size_t>(token)], token};
      });
      for (const Part& part : parts) append(part, word.substr(part.begin, part.length), out);
      begin = end;
    }
  }

 private:
  std::string decode(std::string_view token_text) const override { return unescape_spaces(token_text); }

  // Words begin with spaces; a truncated character may have eaten into one, so whole characters are passed
  // over.
  static std::size_t end_of_word(std::string_view text, std::size_t begin) {
    std::size_t at = begin;
    bool in_spaces = true;
    while (at < text.size()) {
      const bool space = text.substr(at).starts_with(kEscapedSpace);
      if (space && !in_spaces) return at;
      in_spaces = space;
      at += std::min(length_by_lead_byte(text[at]), text.size() - at);
    }
    return at;
  }

  // Whether no token has a space after another character: then no merge reaches from one word into the next,
  // and words can be merged one by one, which is faster.
  bool words_are_apart() const {
    for (Token token = 0; token < tokens_.texts.size(); ++token) {
      const std::string_view text = tokens_.texts[token];
      if (text.find(kEscapedSpace) != std::string_view::npos && end_of_word(text, 0) != text.size())
        return false;
    }
    return true;
  }

  void split_characters(std::string_view text, std::vector<Part>& parts) const {
    parts.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min(length_by_lead_byte(text[at]), text.size() - at);
      parts.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       tokens_.texts.find(text.substr(at, length))});
      at += length;
    }
  }

  // One token, or the bytes of a character without one; a character with a byte that has no token is unknown.
  void append(const Part& part, std::string_view text, std::vector<Token>& out) const {
    if (part.id != kNoToken) {
      out.push_back(part.id);
      return;
    }
    const std::size_t before = out.size();
    for (const char c : text) {
      const Token token = byte_tokens_[static_cast<std::uint8_t>(c)];
      if (token == kNoToken) {
        out.resize(before);
        if (unknown_ != kNoToken) out.push_back(unknown_);
        return;
      }
      out.push_back(token);
    }
  }

  const TokenTable& tokens_;
  std::array<Token, 256> byte_tokens_{};
  std::vector<std::uint32_t> ranks_;  // by token
  bool words_are_apart_ = false;
  Token unknown_;
  bool add_space_prefix_;
};

}  // namespace

Traits spm_traits(const gguf::Metadata& /*metadata*/) {
  return {.special = {.bos = 1, .eos = 2, .unknown = 0}, .add_bos = true, .add_space_prefix = true};
}

std::unique_ptr<Algorithm> make_spm(const AlgorithmInputs& inputs) {
  return std::make_unique<Spm>(inputs);
}

}  // namespace quipu::vocab
