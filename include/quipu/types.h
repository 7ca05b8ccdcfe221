// The small numbers that everything speaks in.
#pragma once

#include <cstdint>

namespace quipu {

/// A token's number in its vocabulary, in [0, n_vocab).
using Token = std::int32_t;
/// Where no token is meant.
inline constexpr Token kNoToken = -1;

/// A token's place in its sequence, from 0.
using Position = std::int32_t;

/// One conversation of a context, in [0, n_seq_max).
using SequenceId = std::int32_t;

/// How the embeddings of a text's tokens become one; the numbers are those of model files.
enum class Pooling : std::uint8_t {
  none = 0,   ///< each token keeps its own
  mean = 1,   ///< of all tokens
  first = 2,  ///< that of the first token (CLS)
  last = 3,   ///< that of the last token
  rank = 4,   ///< scores of a classification head
};

}  // namespace quipu
