// What a tokenizer algorithm is to Vocab, and the table of those that files may name
// (`tokenizer.ggml.model`).
#pragma once

#include <array>
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
  std::vector<bool> control;  ///< those that the file says are control tokens

  /// Control tokens come from where the program puts them, never from the pieces of a text.
  bool may_come_from_text(Token token) const { return !control[static_cast<std::size_t>(token)]; }
};

/// What an algorithm implies where the file does not say otherwise.
struct Traits {
  SpecialTokens special;
  bool add_bos = false;
  bool add_eos = false;
  bool add_separator = false;
  bool force_bos = false;  ///< add_bos whatever the file says
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
  /// The bytes that a token stands for, special ones shown: by default, those that are special stand for
  /// their text, bytes for themselves, normal ones for what decode() says, and others for nothing.
  virtual std::string piece(std::string_view token_text, TokenAttributes attributes) const;

 private:
  virtual std::string decode(std::string_view token_text) const { return std::string(token_text); }
};

struct AlgorithmInputs {
  const gguf::Metadata& metadata;
  const TokenTable& tokens;  ///< outlives the algorithm
  Token unknown = kNoToken;  ///< for what has no token, where the algorithm has a use for it
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

Traits word_piece_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_word_piece(const AlgorithmInputs& inputs);
Traits unigram_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_unigram(const AlgorithmInputs& inputs);
Traits rwkv_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_rwkv(const AlgorithmInputs& inputs);
Traits plamo2_traits(const gguf::Metadata& metadata);
std::unique_ptr<Algorithm> make_plamo2(const AlgorithmInputs& inputs);

/// The byte that two hexadecimal digits stand for, or -1.
int byte_of_digits(std::string_view digits);
/// The byte that a token of this text ("<0xHH>") stands for, or -1.
int byte_of_text(std::string_view token_text);
/// The tokens "<0xHH>" by byte; kNoToken where there is none.
std::array<Token, 256> find_byte_tokens(const TokenTable& tokens);

}  // namespace quipu::vocab
