// Every pass over the whole vocabulary is here: they decide what sampling costs.
#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"

namespace quipu::sampling {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

[[noreturn]] void fail_without_finite(std::span<const float> logits) {
  if (logits.empty()) fail(ErrorCode::invalid_argument, "sampling: the list of logits is empty");
  std::size_t nans = 0, low = 0, high = 0;
  for (const float logit : logits) {
    if (std::isnan(logit)) {
      ++nans;
    } else if (logit < 0) {
      ++low;
    } else {
      ++high;
    }
  }
  fail(ErrorCode::invalid_argument,
       "sampling: none of {} logits is finite ({} NaN, {} minus infinity, {} plus infinity)", logits.size(),
       nans, low, high);
}

}  // namespace

float relative_weight(float logit, float max_logit) {
  // An infinite maximum leaves NaN and minus infinity for the difference; only what equals it has weight.
  if (std::isinf(max_logit)) return logit == max_logit ? 1.0f : 0.0f;
  return static_cast<float>(exact_math::exp(static_cast<double>(logit) - static_cast<double>(max_logit)));
}

void Candidates::assign(std::span<const float> logits) {
  if (logits.size() > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    fail(ErrorCode::invalid_argument, "sampling: {} logits are more than tokens can be numbered",
         logits.size());
  }
  items_.resize(logits.size());
  bool any_finite = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    any_finite |= std::abs(logit) < kInfinity;  // false for NaN
    items_[i] = {static_cast<Token>(i), logit == logit ? logit : -kInfinity, 0.0f};
  }
  sorted_front_ = 0;
  by_token_ = true;
  selected_ = kNoToken;
  if (!any_finite) {
    items_.clear();
    fail_without_finite(logits);
  }
}

float Candidates::max_logit() const {
  QUIPU_CHECK(!items_.empty());
  if (sorted_front_ > 0) return items_.front().logit;
  float max = -kInfinity;
  for (const Candidate& candidate : items_) max = candidate.logit > max ? candidate.logit : max;
  return max;
}

const Candidate& Candidates::likeliest() const {
  QUIPU_CHECK(!items_.empty());
  if (sorted_front_ > 0) return items_.front();
  const Candidate* best = &items_.front();
  for (const Candidate& candidate : items_) {
    if (likelier(candidate, *best)) best = &candidate;
  }
  return *best;
}

void Candidates::sort_front(std::size_t k) {
  k = std::min(k, items_.size());
  if (k <= sorted_front_) return;
  by_token_ = false;
  const auto rest = items_.begin() + static_cast<std::ptrdiff_t>(sorted_front_);
  const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(k);
  if (middle != items_.end()) std::nth_element(rest, middle, items_.end(), likelier);
  std::sort(rest, middle, likelier);
  sorted_front_ = k;
}

void Candidates::keep_likeliest(std::size_t k) {
  QUIPU_CHECK(k > 0);
  if (k <= sorted_front_ || k >= items_.size()) {
    sort_front(items_.size());
    return truncate(k);
  }
  by_token_ = false;
  // One pass that collects what beats the k-th best so far; twice k collected are cut back to k. Most of a
  // large vocabulary fails one comparison, and in the worst order a cut of 2 k is paid for by k new entries.
  best_.clear();
  best_.reserve(2 * k);
  Candidate kth{std::numeric_limits<Token>::max(), -kInfinity, 0.0f};
  const auto cut = [&] {
    const auto last = best_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(best_.begin(), last, best_.end(), likelier);
    kth = *last;
    best_.resize(k);
  };
  for (const Candidate& candidate : items_) {
    if (!likelier(candidate, kth)) continue;
    best_.push_back(candidate);
    if (best_.size() == 2 * k) cut();
  }
  if (best_.size() > k) cut();
  std::sort(best_.begin(), best_.end(), likelier);
  items_.swap(best_);
  sorted_front_ = k;
}

void Candidates::become(Token token) {
  items_.assign(1, {token, 0.0f, 1.0f});
  sorted_front_ = 1;
  by_token_ = false;
}

void Candidates::truncate(std::size_t n) {
  if (n < items_.size()) items_.resize(n);
  sorted_front_ = std::min(sorted_front_, n);
}

void Candidates::normalize() {
  const float max = max_logit();
  double sum = 0;
  for (Candidate& candidate : items_) candidate.prob = relative_weight(candidate.logit, max);
  for (const Candidate& candidate : items_) sum += static_cast<double>(candidate.prob);
  const float scale = static_cast<float>(1.0 / sum);  // the sum is at least 1: the likeliest weighs 1
  for (Candidate& candidate : items_) candidate.prob *= scale;
}

double Candidates::entropy() const {
  double sum = 0;
  for (const Candidate& candidate : items_) {
    const auto p = static_cast<double>(candidate.prob);
    if (p > 0) sum -= p * exact_math::log(p);
  }
  return sum;
}

void Candidates::draw(double uniform) {
  double sum = 0;
  for (const Candidate& candidate : items_) sum += static_cast<double>(candidate.prob);
  const double target = uniform * sum;
  double total = 0;
  for (const Candidate& candidate : items_) {
    total += static_cast<double>(candidate.prob);
    if (total > target) return select(candidate.id);
  }
  // target < sum, so the walk ends above; rounding of the product could at most reach the last with a chance.
  select(likeliest().id);
}

}  // namespace quipu::sampling
