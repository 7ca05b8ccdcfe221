// Kinds of vocabulary.
#pragma once

namespace quipu {

/// Numbers as tools of this field exchange them.
enum class VocabType {
  none = 0,  ///< no tokenizer: tokens are mere numbers
  spm = 1,   ///< SentencePiece-style merging by score, with byte fallback
  bpe = 2,   ///< byte-pair encoding by ranked merges
  word_piece = 3,
  unigram = 4,
  rwkv = 5,
  plamo2 = 6,
};

}  // namespace quipu
