// The normalizer that Unigram files carry (`tokenizer.ggml.precompiled_charsmap`): which character sequences
// are replaced by which. Format: that of SentencePiece, a double-array trie in units of 32 bits
// (Kanda et al. 2018) behind its length in bytes, then the replacements, each ended by NUL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quipu::vocab {

class CharactersMap {
 public:
  /// Maps nothing.
  CharactersMap() = default;
  /// `origin` begins error messages. Error(bad_file) if the parts do not fit into `blob`.
  CharactersMap(std::string_view blob, std::string_view origin);

  struct Replacement {
    std::size_t length = 0;  ///< bytes of the text that are replaced; 0: none
    std::string_view with;
  };
  /// For the longest sequence of the map that `text` begins with. What points outside the map ends the
  /// search.
  Replacement find(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;  // its last byte is NUL
};

}  // namespace quipu::vocab
