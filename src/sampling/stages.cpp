#include "sampling/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"

namespace quipu::sampling {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float not_nan(float value, std::string_view what) {
  if (std::isnan(value)) fail(ErrorCode::invalid_argument, "sampling: {} is not a number", what);
  return value;
}

}  // namespace

void Greedy::apply(Candidates& candidates) {
  candidates.select(candidates.likeliest().id);
}

Temperature::Temperature(float temperature) : temperature_(not_nan(temperature, "temp")) {}

void Temperature::apply(Candidates& candidates) {
  if (temperature_ <= 0) {
    const Token kept = candidates.likeliest().id;
    for (Candidate& candidate : candidates.items()) {
      if (candidate.id != kept) candidate.logit = -kInfinity;
    }
    return;
  }
  if (temperature_ == 1) return;
  // Where the quotient would overflow, distances from the maximum are divided instead: the same
  // probabilities.
  const float max = candidates.max_logit();
  const float shift = std::isfinite(max) && !std::isfinite(max / temperature_) ? max : 0.0f;
  candidates.change_logits(
      [&](float logit) { return std::isinf(logit) ? logit : (logit - shift) / temperature_; });
}

void TopK::apply(Candidates& candidates) {
  if (k_ > 0) candidates.keep_likeliest(static_cast<std::size_t>(k_));
}

TopP::TopP(float p, std::size_t min_keep)
    : p_(std::max(not_nan(p, "top_p"), 0.0f)), min_keep_(std::max<std::size_t>(min_keep, 1)) {}

void TopP::apply(Candidates& candidates) {
  if (p_ >= 1) return;
  candidates.normalize();
  if (min_keep_ == 1) {
    // Tokens under (1 - p) / n, all together, miss p by what the others then have: none of them is needed.
    // Dropping them first (with a margin for rounding) leaves little to sort.
    const auto least =
        static_cast<float>(0.999 * (1.0 - static_cast<double>(p_)) / static_cast<double>(candidates.size()));
    candidates.keep_if([&](const Candidate& candidate) { return candidate.prob >= least; });
  }
  double total = 0;
  std::size_t kept = 0;
  // The front is sorted in growing stretches: few tokens carry most of the probability.
  for (std::size_t stretch = 64; kept < candidates.size(); stretch *= 8) {
    candidates.sort_front(stretch);
    while (kept < candidates.sorted_front()) {
      total += static_cast<double>(candidates.items()[kept++].prob);
      if (total >= static_cast<double>(p_) && kept >= min_keep_) return candidates.truncate(kept);
    }
  }
}

MinP::MinP(float p, std::size_t min_keep)
    : p_(std::min(not_nan(p, "min_p"), 1.0f)), min_keep_(std::max<std::size_t>(min_keep, 1)) {}

void MinP::apply(Candidates& candidates) {
  if (p_ <= 0) return;
  const float max = candidates.max_logit();
  const auto threshold =
      static_cast<float>(static_cast<double>(max) + exact_math::log(static_cast<double>(p_)));
  const auto probable = [&](const Candidate& candidate) { return candidate.logit >= threshold; };
  if (min_keep_ > 1) {
    const auto items = candidates.items();
    const auto n_probable = static_cast<std::size_t>(std::count_if(items.begin(), items.end(), probable));
    if (n_probable < min_keep_) return candidates.keep_likeliest(min_keep_);
  }
  candidates.keep_if(probable);
}

void Draw::apply(Candidates& candidates) {
  candidates.normalize();
  const auto items = candidates.items();
  double sum = 0;
  for (const Candidate& candidate : items) sum += static_cast<double>(candidate.prob);
  const double target = random_.uniform() * sum;
  double total = 0;
  for (const Candidate& candidate : items) {
    total += static_cast<double>(candidate.prob);
    if (total > target) return candidates.select(candidate.id);
  }
  // target < sum, so the walk ends above; rounding of the product could at most reach the last with a chance.
  candidates.select(candidates.likeliest().id);
}

}  // namespace quipu::sampling
