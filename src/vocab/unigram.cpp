// Unigram language model (Kudo 2018): the split of a text into tokens with the highest sum of scores, found
// from left to right (Viterbi). Of equal sums the one whose last token begins first wins, as in the programs
// that these vocabularies were made with.
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "vocab/algorithm.h"
#include "vocab/characters_map.h"
#include "vocab/escaped_spaces.h"
#include "vocab/token_matcher.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

// Below the worst token: a character without a token is used only where it must.
constexpr float kUnknownPenalty = 10.0f;

CharactersMap read_characters_map(const gguf::Metadata& metadata) {
  const gguf::Value* const value = metadata.find("tokenizer.ggml.precompiled_charsmap");
  if (value == nullptr) return {};
  if (const auto* const array = std::get_if<gguf::Array>(value)) {
    std::string blob;
    if (const auto* const bytes = std::get_if<std::vector<std::uint8_t>>(array)) {
      blob.assign(bytes->begin(), bytes->end());
      return {blob, metadata.origin()};
    }
    if (const auto* const bytes = std::get_if<std::vector<std::int8_t>>(array)) {
      blob.assign(bytes->begin(), bytes->end());
      return {blob, metadata.origin()};
    }
  }
  fail(ErrorCode::bad_file, "{}: key 'tokenizer.ggml.precompiled_charsmap': expected an array of bytes",
       metadata.origin());
}

std::vector<TokenMatcher::Entry> matched_tokens(const TokenTable& tokens) {
  constexpr TokenAttributes kMatched =
      TokenAttribute::normal | TokenAttribute::user_defined | TokenAttributes(TokenAttribute::unused);
  std::vector<TokenMatcher::Entry> entries;
  for (Token token = 0; token < tokens.texts.size(); ++token) {
    if (tokens.may_come_from_text(token) &&
        tokens.attributes[static_cast<std::size_t>(token)].any(kMatched)) {
      entries.push_back({tokens.texts[token], token});
    }
  }
  return entries;
}

class Unigram final : public Algorithm {
 public:
  explicit Unigram(const AlgorithmInputs& inputs)
      : tokens_(inputs.tokens),
        matcher_(matched_tokens(inputs.tokens)),
        map_(read_characters_map(inputs.metadata)),
        unknown_(inputs.unknown),
        add_space_prefix_(inputs.add_space_prefix) {
    merge_spaces_ = inputs.metadata.get_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
    escape_spaces_ = inputs.metadata.get_bool("tokenizer.ggml.escape_whitespaces").value_or(true);
    spaces_behind_ = inputs.metadata.get_bool("tokenizer.ggml.treat_whitespace_as_suffix").value_or(false);
    float lowest = std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < tokens_.scores.size(); ++i) {
      if (tokens_.attributes[i].any(TokenAttribute::normal)) lowest = std::min(lowest, tokens_.scores[i]);
    }
    unknown_score_ = lowest - kUnknownPenalty;
    byte_tokens_ = find_byte_tokens(tokens_);
  }

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    const std::string normal = normalize(text);
    if (normal.size() >= std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorCode::invalid_argument, "a text of {} bytes is too long to tokenize", text.size());
    }
    const std::vector<Step> best = best_steps(normal);
    std::vector<std::uint32_t> ends;  // of the chosen tokens, from the last
    for (auto at = static_cast<std::uint32_t>(normal.size()); at > 0; at = best[at].begin) ends.push_back(at);
    bool after_unknown = false;
    for (std::size_t i = ends.size(); i-- > 0;) {
      const Step& step = best[ends[i]];
      if (step.token != kNoToken) {
        out.push_back(step.token);
        after_unknown = false;
      } else if (!append_bytes(std::string_view(normal).substr(step.begin, ends[i] - step.begin), out)) {
        if (!after_unknown && unknown_ != kNoToken) out.push_back(unknown_);
        after_unknown = true;
      } else {
        after_unknown = false;
      }
    }
  }

 private:
  // How a prefix of the text ends: the token (none: a character without one) and where it begins.
  struct Step {
    double score = -std::numeric_limits<double>::max();
    std::uint32_t begin = 0;
    Token token = kNoToken;
  };

  std::string decode(std::string_view token_text) const override { return unescape_spaces(token_text); }

  // By place where the prefix ends. Tokens begin at characters only, so what no token ends at stays as it is.
  std::vector<Step> best_steps(std::string_view text) const {
    TokenMatcher::States states;
    matcher_.scan(text, states);
    std::vector<Step> best(text.size() + 1);
    best[0].score = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min(length_by_lead_byte(text[at]), text.size() - at);
      const double before = best[at].score;
      const auto propose = [&](Token token, std::size_t token_length, double score) {
        Step& step = best[at + token_length];
        if (before + score > step.score) step = {before + score, static_cast<std::uint32_t>(at), token};
      };
      bool has_token = false;
      matcher_.visit(states[at], [&](Token token, std::size_t token_length) {
        has_token = has_token || token_length == length;
        propose(token, token_length, score_of(token));
      });
      if (!has_token) propose(kNoToken, length, double{unknown_score_});
      at += length;
    }
    return best;
  }

  // User-defined tokens are taken wherever they stand.
  double score_of(Token token) const {
    const auto i = static_cast<std::size_t>(token);
    return tokens_.attributes[i].any(TokenAttribute::user_defined) ? 0.0 : double{tokens_.scores[i]};
  }

  // The bytes of a character as tokens; false, and nothing appended, if one is missing.
  bool append_bytes(std::string_view character, std::vector<Token>& out) const {
    const std::size_t before = out.size();
    for (const char c : character) {
      const Token token = byte_tokens_[static_cast<std::uint8_t>(c)];
      if (token == kNoToken) {
        out.resize(before);
        return false;
      }
      out.push_back(token);
    }
    return true;
  }

  // What comes for the beginning of a text: by the map, else as it is; a byte that begins no character is
  // U+FFFD.
  CharactersMap::Replacement first_normalized(std::string_view text) const {
    const CharactersMap::Replacement replacement = map_.find(text);
    if (replacement.length > 0) return replacement;
    const std::size_t length = sequence_length(text);
    if (length == 0) return {1, kReplacementCharacter};
    return {length, text.substr(0, length)};
  }

  // Characters are exchanged by the map, and spaces are escaped, added in front and merged as the file says.
  std::string normalize(std::string_view text) const {
    const std::string_view space = escape_spaces_ ? kEscapedSpace : std::string_view(" ");
    std::string normal;
    normal.reserve(text.size() + text.size() / 2 + 8);
    bool prefix_due = add_space_prefix_ && !spaces_behind_;
    bool in_word = false;
    for (std::string_view rest = text; !rest.empty();) {
      const CharactersMap::Replacement first = first_normalized(rest);
      for (const char c : first.with) {
        if (c == ' ') {
          in_word = false;
          if (!merge_spaces_) normal.append(space);
          continue;
        }
        if (!in_word && (prefix_due || merge_spaces_)) {
          normal.append(space);
          prefix_due = false;
        }
        in_word = true;
        normal.push_back(c);
      }
      rest.remove_prefix(first.length);
    }
    if (add_space_prefix_ && spaces_behind_) normal.append(space);
    return normal;
  }

  const TokenTable& tokens_;
  TokenMatcher matcher_;
  CharactersMap map_;
  Token unknown_;
  std::array<Token, 256> byte_tokens_{};
  float unknown_score_ = 0;
  bool add_space_prefix_;
  bool merge_spaces_ = false;
  bool escape_spaces_ = true;
  bool spaces_behind_ = false;
};

}  // namespace

Traits unigram_traits(const gguf::Metadata& /*metadata*/) {
  return {.special = {.eos = 1, .unknown = 2, .padding = 0}, .add_eos = true};
}

std::unique_ptr<Algorithm> make_unigram(const AlgorithmInputs& inputs) {
  return std::make_unique<Unigram>(inputs);
}

}  // namespace quipu::vocab
