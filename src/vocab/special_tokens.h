// Roles of tokens: from the file's keys, and from texts that models of the field use for them, since many
// files name only some.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "vocab/algorithm.h"
#include "vocab/special_ids.h"

namespace quipu::vocab {

/// Reads the `tokenizer.ggml.*_token_id` keys over `defaults`. An id outside of the vocabulary is logged and
/// counts as none.
SpecialTokens read_special_tokens(const gguf::Metadata& metadata, const SpecialTokens& defaults,
                                  std::int32_t n_tokens);

/// Fills roles that have no token yet by well-known texts, and marks such tokens as control tokens.
void recognize_special_tokens(TokenTable& tokens, SpecialTokens& special);

/// The tokens that end generation, ascending: by role and by well-known texts, which become control tokens
/// (with exceptions for families whose texts mean something else).
std::vector<Token> find_end_tokens(TokenTable& tokens, const SpecialTokens& special);

/// White space around special tokens, which files do not record: known by the model's name.
void apply_model_rules(const gguf::Metadata& metadata, TokenTable& tokens);

/// Whether the token is one that SpecialSplitter looks for.
bool is_special(TokenAttributes attributes);

}  // namespace quipu::vocab
