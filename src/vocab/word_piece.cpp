// WordPiece (Schuster and Nakajima 2012; Devlin et al. 2018): text is cleaned and cut into words, and each
// word into the longest tokens from the left. In files the first piece of a word begins with U+2581.
#include "vocab/algorithm.h"
#include "vocab/escaped_spaces.h"
#include "vocab/token_matcher.h"
#include "vocab/unicode.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

// Each is a word of its own. Without kana and Hangul, and with the gap at U+2B820 that the tokenizers these
// vocabularies were made with have.
bool is_ideograph(std::uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

std::vector<TokenMatcher::Entry> ordinary_tokens(const TokenTable& tokens) {
  std::vector<TokenMatcher::Entry> entries;
  for (Token token = 0; token < tokens.texts.size(); ++token) {
    if (tokens.may_come_from_text(token)) entries.push_back({tokens.texts[token], token});
  }
  return entries;
}

class WordPiece final : public Algorithm {
 public:
  explicit WordPiece(const AlgorithmInputs& inputs)
      : matcher_(ordinary_tokens(inputs.tokens)), unknown_(inputs.unknown) {
    lowercase_ = inputs.metadata.get_bool("tokenizer.ggml.normalizer.lowercase").value_or(true);
    strip_accents_ = inputs.metadata.get_bool("tokenizer.ggml.normalizer.strip_accents").value_or(lowercase_);
  }

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    std::string storage;
    std::string_view rest = repair_utf8(text, storage);
    std::string word;
    TokenMatcher::States states;
    const auto end_word = [&] {
      if (!word.empty()) encode_word(word, states, out);
      word.clear();
    };
    while (!rest.empty()) {
      const Character character = take_character(rest);
      const std::uint32_t c = strip_accents_ ? without_accents(character.code_point) : character.code_point;
      const CharacterKind kind = kind_of(c);
      if (kind == CharacterKind::space) {
        end_word();
      } else if (c == 0 || c == 0xFFFD || kind == CharacterKind::control ||
                 (strip_accents_ && kind == CharacterKind::mark)) {
        continue;
      } else {
        const bool alone = kind == CharacterKind::punctuation ||
                           (c < 0x7F && kind == CharacterKind::symbol) || is_ideograph(c);
        if (alone) end_word();
        append_utf8(word, lowercase_ ? to_lower(c) : c);
        if (alone) end_word();
      }
    }
    end_word();
  }

 private:
  std::string decode(std::string_view token_text) const override { return unescape_spaces(token_text); }

  void encode_word(std::string_view word, TokenMatcher::States& states, std::vector<Token>& out) const {
    const std::string marked = std::string(kEscapedSpace).append(word);
    matcher_.scan(marked, states);
    const std::size_t before = out.size();
    for (std::size_t at = 0; at < marked.size();) {
      const auto [token, length] = matcher_.longest(states[at]);
      if (length == 0) {  // one gap makes the whole word unknown
        out.resize(before);
        if (unknown_ != kNoToken) out.push_back(unknown_);
        return;
      }
      out.push_back(token);
      at += length;
    }
  }

  TokenMatcher matcher_;
  Token unknown_;
  bool lowercase_ = true;
  bool strip_accents_ = true;
};

}  // namespace

Traits word_piece_traits(const gguf::Metadata& /*metadata*/) {
  return {.special = {.bos = 101, .unknown = 100, .separator = 102, .padding = 0, .mask = 103},
          .add_bos = true,
          .add_separator = true,
          .clean_spaces = true};
}

std::unique_ptr<Algorithm> make_word_piece(const AlgorithmInputs& inputs) {
  return std::make_unique<WordPiece>(inputs);
}

}  // namespace quipu::vocab
