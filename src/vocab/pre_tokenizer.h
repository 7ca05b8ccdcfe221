// Pre-tokenizers of byte-pair vocabularies: text is cut into words before merging. What a name stands for is
// a row of a table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "vocab/regex.h"

namespace quipu::vocab {

/// How the texts of a vocabulary spell what they stand for.
enum class Spelling {
  byte_alphabet,  ///< a character for each byte (byte_alphabet.h); merging begins with bytes
  plain,          ///< as it is; merging begins with characters, what has no token becomes "<0xHH>" tokens
  plain_with_escaped_spaces,  ///< the same with U+2581 for a space
};

/// What `tokenizer.ggml.pre` implies.
struct PreTokenizerRow {
  std::vector<std::string_view> names;
  /// Applied one after the other, each to the parts of the one before. What lies between matches is a part.
  std::vector<std::string> patterns;
  bool add_bos = false;
  bool force_bos = false;  ///< whatever the file says
  bool no_bos = false;     ///< there is none unless the file names it
  bool add_separator = false;
  bool ignore_merges = false;    ///< a word that is a token as a whole is that token
  bool newlines_in_one = false;  ///< as `ignore_merges`, but for words of newlines only
  bool clean_spaces = false;     ///< detokenizing removes spaces before punctuation
  bool may_lack_merges = false;
  Spelling spelling = Spelling::byte_alphabet;
};

/// Null for a name that is not in the table.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);
/// The whole table.
const std::vector<PreTokenizerRow>& pre_tokenizers();

class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerRow& row);

  /// Appends the end of each word of `text` (as repair_utf8 leaves it).
  void split(std::string_view text, std::vector<std::size_t>& ends) const;

 private:
  std::vector<Regex> patterns_;
};

}  // namespace quipu::vocab
