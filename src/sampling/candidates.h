// The list of tokens that may come next. Stages narrow it and reweigh it; at the end one is selected.
// Whatever order stages leave it in is a pure function of the logits, so draws from it are repeatable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "quipu/types.h"

namespace quipu::sampling {

struct Candidate {
  Token id = kNoToken;
  float logit = 0;
  float prob = 0;  ///< valid after Candidates::normalize, until the list changes
};

/// The order of likelihood: higher logit first, and among equals the lower token first.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Storage is kept between uses; a list serves one thread.
class Candidates {
 public:
  /// One candidate for each logit, in order of token. NaN counts as minus infinity: such a token is never
  /// selected. Plus infinity means certain: several share the probability. Throws Error(invalid_argument) if
  /// no logit is finite, with the counts of what was there instead.
  void assign(std::span<const float> logits);

  std::span<Candidate> items() { return items_; }
  std::span<const Candidate> items() const { return items_; }
  std::size_t size() const { return items_.size(); }
  /// So many of the first items are the likeliest of all, in order of likelihood.
  std::size_t sorted_front() const { return sorted_front_; }

  /// The highest logit. The list must not be empty; so in all that follow.
  float max_logit() const;
  /// The likeliest, first of equals.
  const Candidate& likeliest() const;

  /// Puts the `k` likeliest in front, in order of likelihood. The order of the rest depends on the standard
  /// library: no stage may end with a list that is sorted in part. O(n + k log k).
  void sort_front(std::size_t k);
  /// Keeps the `k` likeliest, sorted.
  void keep_likeliest(std::size_t k);
  /// Leaves one certain token, which need not have been in the list.
  void become(Token token);
  /// Keeps the first `n` items.
  void truncate(std::size_t n);
  /// Keeps the items for which `wanted` holds, in their order. At least one must.
  template <typename Predicate>
  void keep_if(Predicate wanted) {
    const bool all_sorted = sorted_front_ == items_.size();
    by_token_ = false;
    std::erase_if(items_, [&](const Candidate& candidate) { return !wanted(candidate); });
    sorted_front_ = all_sorted ? items_.size() : 0;
  }

  /// Replaces every logit by `change(logit)`, a function that does not fall where the logit rises.
  template <typename Function>
  void change_logits(Function change) {
    for (Candidate& candidate : items_) candidate.logit = change(candidate.logit);
  }

  /// Replaces every logit by `value(candidate)`.
  template <typename Function>
  void replace_logits(Function value) {
    sorted_front_ = 0;
    for (Candidate& candidate : items_) candidate.logit = value(std::as_const(candidate));
  }
  /// Replaces the logits of the given tokens, ascending, where they are in the list, by
  /// `change(index in tokens, logit)`.
  template <typename Function>
  void change_logits_of(std::span<const Token> tokens, Function change);

  /// Sets `prob` to the softmax of the logits over what is in the list; they sum to 1.
  void normalize();
  /// Of the probabilities, in nats.
  double entropy() const;
  /// Selects the first whose cumulative probability, in the list's order, exceeds `uniform`, in [0, 1).
  void draw(double uniform);

  /// The token that a stage settled on, or kNoToken.
  Token selected() const { return selected_; }
  void select(Token token) { selected_ = token; }

 private:
  std::vector<Candidate> items_;
  std::vector<Candidate> best_;  // scratch of keep_likeliest
  std::size_t sorted_front_ = 0;
  bool by_token_ = false;  // item i is token i
  Token selected_ = kNoToken;
};

template <typename Function>
void Candidates::change_logits_of(std::span<const Token> tokens, Function change) {
  sorted_front_ = 0;
  if (by_token_) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto at = static_cast<std::size_t>(tokens[i]);  // a negative token is beyond the end
      if (at < items_.size()) items_[at].logit = change(i, items_[at].logit);
    }
    return;
  }
  for (Candidate& candidate : items_) {
    const auto found = std::lower_bound(tokens.begin(), tokens.end(), candidate.id);
    if (found == tokens.end() || *found != candidate.id) continue;
    candidate.logit = change(static_cast<std::size_t>(found - tokens.begin()), candidate.logit);
  }
}

/// `changed`, or the nearest finite number where a change of a finite logit went beyond: a token that was
/// possible stays so.
inline float bounded_change(float logit, float changed) {
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::isfinite(logit) ? std::clamp(changed, -kMax, kMax) : logit;
}

/// Weight of a candidate relative to the likeliest: e^(logit - max_logit), where equal infinities weigh 1.
float relative_weight(float logit, float max_logit);

}  // namespace quipu::sampling
