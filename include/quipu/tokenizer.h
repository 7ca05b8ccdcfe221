// Text to tokens and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/types.h"

namespace quipu {

class Vocab;

struct TokenizeOptions {
  bool add_special =
      true;  ///< tokens that the model expects around a text (BOS, EOS), where its file asks for them
  bool parse_special = true;  ///< special tokens written out in the text ("<|im_end|>") are those tokens
  bool untrusted = false;     ///< text of others: nothing in it becomes a control token, whatever it spells
};

struct DetokenizeOptions {
  bool remove_special = false;  ///< leave out the BOS in front and the EOS behind
  bool show_special = false;    ///< special tokens appear as their text; else they are silent
};

/// What a vocabulary has special tokens for. `fim`: fill in the middle (the text before a gap, after it, in
/// it; padding, and what comes before names of repositories and files).
enum class TokenRole {
  bos,  ///< beginning and end of a text
  eos,
  eot,  ///< end of a turn, of a message
  eom,
  unknown,
  separator,
  padding,
  mask,
  newline,
  fim_prefix,
  fim_suffix,
  fim_middle,
  fim_padding,
  fim_repository,
  fim_separator,
};

/// The vocabulary of a model. A shared handle: cheap to copy, immutable, used by any number of threads at
/// once, and valid without the model it came from.
class Tokenizer {
 public:
  /// False for models that come without a vocabulary (`no_vocab`): they have a number of tokens but no text,
  /// and whatever needs text is Error(unsupported).
  bool has_text() const noexcept;
  /// Tokens are 0 .. size() - 1.
  std::size_t size() const noexcept;

  /// Any bytes are a text: NUL is a character like others, and what is not UTF-8 becomes byte tokens or
  /// U+FFFD as the vocabulary has it.
  std::vector<Token> tokenize(std::string_view text, TokenizeOptions options = {}) const;

  /// The bytes that a token stands for, which need not be whole characters (see TextStream). Special tokens
  /// are empty unless `show_special`. Error(invalid_argument) for a token outside the vocabulary; so in all
  /// that take one.
  std::string piece(Token token, bool show_special = false) const;
  /// The text of several tokens: the pieces, without the space that some vocabularies put before the first
  /// word.
  std::string detokenize(std::span<const Token> tokens, DetokenizeOptions options = {}) const;

  /// The same three into memory of the caller. They return how many tokens or bytes there are; if `out` is
  /// too small for them, minus that number, and write nothing. Nothing ends the bytes.
  std::int32_t tokenize_into(std::span<Token> out, std::string_view text, TokenizeOptions options = {}) const;
  /// `skip_spaces`: leave out up to so many spaces in front.
  std::int32_t piece_into(std::span<char> out, Token token, bool show_special = false,
                          std::int32_t skip_spaces = 0) const;
  std::int32_t detokenize_into(std::span<char> out, std::span<const Token> tokens,
                               DetokenizeOptions options = {}) const;

  /// The token of a role; nothing where the vocabulary has none.
  std::optional<Token> token(TokenRole role) const noexcept;
  /// Beginning and end of a text; nothing where the vocabulary has no such token.
  std::optional<Token> bos() const noexcept;
  std::optional<Token> eos() const noexcept;
  /// A model that produces such a token has nothing more to say (EOS, end of turn ...).
  bool ends_generation(Token token) const;
  /// All of these, ascending. Lives as long as the tokenizer or a copy; so do the next two.
  std::span<const Token> end_tokens() const noexcept;
  /// Tokens that the file says are never to be generated.
  std::span<const Token> suppressed_tokens() const noexcept;
  /// A token as the file spells it (spaces and bytes escaped).
  std::string_view spelling(Token token) const;
  /// The token that the file spells like this.
  std::optional<Token> find(std::string_view spelling) const;
  /// What the file gives for ordering tokens; 0 where it gives nothing.
  float score(Token token) const;
  /// Control tokens steer the model and are not text.
  bool is_control(Token token) const;
  /// The sum of: 1 unknown, 2 unused, 4 normal, 8 control, 16 user-defined, 32 byte, 64 normalized, 128 white
  /// space on the left belongs to it, 256 on the right, 512 single word.
  std::uint32_t attributes(Token token) const;

 private:
  friend struct ApiAccess;
  explicit Tokenizer(std::shared_ptr<const Vocab> vocab) : vocab_(std::move(vocab)) {}
  std::shared_ptr<const Vocab> vocab_;
};

/// Turns tokens into text as they come, never splitting a character: bytes that begin one are held back until
/// it is whole. What cannot become a character any more is U+FFFD. What it returns is always valid UTF-8.
class TextStream {
 public:
  explicit TextStream(Tokenizer tokenizer, bool show_special = false);
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  /// The text that this token completes; often empty.
  std::string add(Token token);
  /// What is still held back, as U+FFFD; the stream is then as new.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu
