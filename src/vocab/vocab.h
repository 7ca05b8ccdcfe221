// A model's vocabulary: its tokens, their roles, and both directions between text and tokens.
// Format: the `tokenizer.ggml.*` keys of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "quipu/types.h"
#include "vocab/attributes.h"
#include "vocab/special_ids.h"
#include "vocab/vocab_type.h"

namespace quipu {

/// Immutable, cheap to copy, used by any number of threads at once.
/// A token that is not in [0, size()) is an Error(invalid_argument) wherever one is passed. On a vocabulary
/// of type `none` everything about texts is an Error(unsupported).
class Vocab {
 public:
  /// Reads the tokenizer of a model. Error(unsupported) names a tokenizer or pre-tokenizer that Quipu does
  /// not know; Error(bad_file) names the key that is missing or wrong. Ids of roles outside the vocabulary
  /// are logged and count as none.
  static Vocab load(const gguf::Metadata& metadata);

  VocabType type() const;
  std::size_t size() const;
  const SpecialTokens& special() const;
  /// Whether `token` ends generation; false for kNoToken and where nothing is known.
  bool is_end(Token token) const;
  /// All of those, ascending.
  std::span<const Token> end_tokens() const;
  /// Tokens that the model must not generate, as the file lists them.
  std::span<const Token> suppressed_tokens() const;
  /// What tokenizing with `add_special` puts around the text.
  bool add_bos() const;
  bool add_eos() const;
  /// Whether the model wants separators: between two texts, and in WordPiece vocabularies behind every text.
  bool add_separator() const;
  /// Whether text after the beginning or after a special token gets a space in front.
  bool add_space_prefix() const;

  /// As in the file (escaped or in the byte alphabet); lives as long as the vocabulary.
  std::string_view text(Token token) const;
  /// The token of this text as in the file, or kNoToken.
  Token find(std::string_view text) const;
  float score(Token token) const;
  TokenAttributes attributes(Token token) const;

  /// `text` may be any bytes. With `add_special` the beginning and end tokens are added as the model wants
  /// them; with `parse_special` control tokens that are written out in the text are recognized (user-defined
  /// ones always are).
  std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const;
  /// The same for text of users: nothing in it becomes a control token, nor one that the file has as such and
  /// that is shown like text.
  std::vector<Token> tokenize_untrusted(std::string_view text, bool add_special) const;

  /// A prompt in which users wrote some stretches (ascending, apart from each other): control tokens are
  /// recognized, but for those that would have a byte of these. Nothing is added around it.
  std::vector<Token> tokenize_prompt(std::string_view text, std::span<const ByteRange> untrusted) const;

  /// The bytes that a token stands for: not always whole characters. Control and unknown tokens stand for
  /// nothing, or with `special` for their text. Lives as long as the vocabulary.
  std::string_view piece(Token token, bool special) const;

  /// The bytes of all pieces, without the space that tokenizing put in front and, for vocabularies that want
  /// it, without spaces before punctuation. `remove_special` leaves out what `add_special` added;
  /// `unparse_special` shows control tokens.
  std::string detokenize(std::span<const Token> tokens, bool remove_special, bool unparse_special) const;

 private:
  struct Impl;
  explicit Vocab(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace quipu
