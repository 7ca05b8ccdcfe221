// The tokens that a vocabulary gives a role.
#pragma once

#include "quipu/types.h"

namespace quipu {

/// kNoToken where the vocabulary has no such token.
struct SpecialTokens {
  Token bos = kNoToken;  ///< beginning of the sequence
  Token eos = kNoToken;  ///< end of the sequence
  Token eot = kNoToken;  ///< end of a turn
  Token eom = kNoToken;  ///< end of a message
  Token unknown = kNoToken;
  Token separator = kNoToken;
  Token padding = kNoToken;
  Token mask = kNoToken;
  Token newline = kNoToken;
  // Fill in the middle: text before, after and between; padding, repository and file names.
  Token fim_prefix = kNoToken;
  Token fim_suffix = kNoToken;
  Token fim_middle = kNoToken;
  Token fim_padding = kNoToken;
  Token fim_repository = kNoToken;
  Token fim_separator = kNoToken;
};

}  // namespace quipu
