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

}  // namespace quipu
