// What a tokenizer algorithm is to Vocab, and the table of those that files may name
// (`tokenizer.ggml.model`).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "quipu/types.h"
#include "vocab/attributes.h"
#include "vocab/special_ids.h"
#include "vocab/text_table.h"
#include "vocab/vocab_type.h"

namespace quipu::vocab {

/// The tokens of a file. Every token has a text, which is not empty; of equal texts the first is found.
struct TokenTable {
  TextTable texts;
  std::vector<float> scores;  ///< no NaN
  std::vector<TokenAttributes> attributes;
};

/// What an algorithm implies where the file does not say otherwise.
struct Traits {
  SpecialTokens special;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  bool clean_spaces = false;
};

/// Immutable; used by any number of threads at once.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  /// Appends the tokens of `text`, any bytes. `after_special`: it begins the whole text or follows a special
  /// token.
  virtual void encode(std::string_view text, bool after_special, std::vector<Token>& out) const = 0;
  /// The bytes that an ordinary token of this text stands for.
  virtual std::string piece(std::string_view token_text) const = 0;
};

struct AlgorithmInputs {
  const gguf::Metadata& metadata;
  const TokenTable& tokens;  ///< outlives the algorithm
  Token unknown = kNoToken;  ///< for what has no token; without it such text is left out
  bool add_space_prefix = false;
};

struct AlgorithmRow {
  std::string_view name;
  VocabType type;
  Traits (*traits)(const gguf::Metadata&);
  std::unique_ptr<Algorithm> (*make)(const AlgorithmInputs&);
};

/// Null for a name that is not in the table.
const AlgorithmRow* find_algorithm(std::string_view name);

// The members, each in the file of its name.
Traits spm_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_spm(const AlgorithmInputs& inputs);
Traits bpe_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_bpe(const AlgorithmInputs& inputs);

/// The byte that a token of this text ("<0xHH>") stands for, or -1.
int byte_of_text(std::string_view token_text);

}  // namespace quipu::vocab
