// Stages in order: from a row of logits to one token.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/stage.h"

namespace quipu::sampling {

/// A copy continues from the same state on its own.
class Chain {
 public:
  Chain() = default;
  Chain(const Chain& other);
  Chain& operator=(const Chain& other);
  Chain(Chain&&) noexcept = default;
  Chain& operator=(Chain&&) noexcept = default;

  void add(std::unique_ptr<Stage> stage);
  std::size_t size() const { return stages_.size(); }

  /// Applies the stages until one has selected a token, and returns it. If none does, the likeliest that is
  /// left, first of equals. Throws Error(invalid_argument) if no logit is finite; the stages' states are then
  /// as before.
  Token sample(std::span<const float> logits);
  /// Applies the stages to a list of the caller's, up to and including the one that selects.
  void apply(Candidates& candidates);
  void accept(Token token);
  void reset();

 private:
  std::vector<std::unique_ptr<Stage>> stages_;
  Candidates candidates_;
};

}  // namespace quipu::sampling
