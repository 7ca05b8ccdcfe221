// The last tokens of a text, for stages that look back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quipu/types.h"

namespace quipu::sampling {

/// Keeps at least the last `n` tokens, contiguous; all of them for n < 0.
class History {
 public:
  explicit History(std::int32_t n) : n_(n) {
    constexpr std::int32_t kReserved = 4096;
    const std::int32_t first = n < 0 ? kReserved : std::min(n, kReserved);
    tokens_.reserve(2 * static_cast<std::size_t>(first));
  }

  void add(Token token) {
    if (n_ == 0) return;
    // Shifting down once in n tokens costs a copy of one token for each.
    if (n_ > 0 && tokens_.size() >= 2 * static_cast<std::size_t>(n_))
      tokens_.erase(tokens_.begin(), tokens_.end() - n_);
    tokens_.push_back(token);
  }
  void clear() { tokens_.clear(); }
  /// The last n tokens, oldest first.
  std::span<const Token> tokens() const {
    if (n_ < 0) return tokens_;
    return std::span(tokens_).last(std::min(tokens_.size(), static_cast<std::size_t>(n_)));
  }

 private:
  std::int32_t n_;
  std::vector<Token> tokens_;
};

}  // namespace quipu::sampling
