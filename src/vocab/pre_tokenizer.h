// Pre-tokenizers of byte-level BPE vocabularies: text is cut into words before merging. What a name stands
// for is a row of a table.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vocab/regex.h"

namespace quipu::vocab {

/// What `tokenizer.ggml.pre` implies besides the patterns.
struct PreTokenizerRow {
  std::span<const std::string_view> names;
  std::span<const std::string_view>
      patterns;  ///< applied one after the other, each to the parts of the one before
  bool add_bos = false;
  bool ignore_merges = false;  ///< a word that is a token as a whole is that token
  bool clean_spaces = false;   ///< detokenizing removes spaces before punctuation
};

/// Null for a name that is not in the table.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);

class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerRow& row);

  /// Appends the end of each word of `text` (as repair_utf8 leaves it).
  void split(std::string_view text, std::vector<std::size_t>& ends) const;

 private:
  std::vector<Regex> patterns_;
};

}  // namespace quipu::vocab
