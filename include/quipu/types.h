// The small things that everything speaks in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

namespace quipu {

/// A token's number in its vocabulary, in [0, n_vocab).
using Token = std::int32_t;
/// Where no token is meant.
inline constexpr Token kNoToken = -1;

/// A token's place in its sequence, from 0.
using Position = std::int32_t;

/// One conversation of a context, in [0, n_seq_max).
using SequenceId = std::int32_t;

/// A stretch of a text, bytes [begin, end).
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// How the embeddings of a text's tokens become one; the numbers are those of model files.
enum class Pooling : std::uint8_t {
  none = 0,   ///< each token keeps its own
  mean = 1,   ///< of all tokens
  first = 2,  ///< that of the first token (CLS)
  last = 3,   ///< that of the last token
  rank = 4,   ///< scores of a classification head
};

/// A std::variant of containers that can be copied while memory runs out: the copy constructor of libstdc++
/// 12 calls a null pointer where one of vectors alone throws. (Assignment builds the copy aside, which is
/// sound.)
template <typename... Types>
struct CopySafeVariant : std::variant<Types...> {
  using std::variant<Types...>::variant;
  CopySafeVariant() = default;
  CopySafeVariant(const CopySafeVariant& other) : std::variant<Types...>() { *this = other; }
  CopySafeVariant(CopySafeVariant&&) noexcept = default;
  CopySafeVariant& operator=(const CopySafeVariant&) = default;
  CopySafeVariant& operator=(CopySafeVariant&&) noexcept = default;
  ~CopySafeVariant() = default;
};

}  // namespace quipu
