// Stages that keep only some candidates. A vocabulary may have 150,000 tokens, of which few matter: none of
// these sorts more of the list than it keeps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/math.h"
#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class TopK final : public Stage {
 public:
  explicit TopK(std::int32_t k) : k_(k) {}
  std::string_view name() const override { return "top_k"; }
  void apply(Candidates& candidates) override {
    if (k_ > 0) candidates.keep_likeliest(static_cast<std::size_t>(k_));
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<TopK>(*this); }

 private:
  std::int32_t k_;
};

class TopP final : public Stage {
 public:
  explicit TopP(const stage::TopP& description)
      : p_(std::max(not_nan(description.p, "top_p"), 0.0f)),
        min_keep_(std::max<std::size_t>(description.min_keep, 1)) {}
  std::string_view name() const override { return "top_p"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<TopP>(*this); }

 private:
  float p_;
  std::size_t min_keep_;
};

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

class MinP final : public Stage {
 public:
  explicit MinP(const stage::MinP& description)
      : p_(std::min(not_nan(description.p, "min_p"), 1.0f)),
        min_keep_(std::max<std::size_t>(description.min_keep, 1)) {}
  std::string_view name() const override { return "min_p"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<MinP>(*this); }

 private:
  float p_;
  std::size_t min_keep_;
};

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

class Typical final : public Stage {
 public:
  explicit Typical(const stage::Typical& description)
      : p_(not_nan(description.p, "typical")), min_keep_(std::max<std::size_t>(description.min_keep, 1)) {}
  std::string_view name() const override { return "typ_p"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Typical>(*this); }

 private:
  /// How far a candidate's surprise is from the expected one; equals in the order of tokens.
  struct Distance {
    double value;
    Token id;
    float prob;
    bool operator<(const Distance& other) const {
      return std::pair(value, id) < std::pair(other.value, other.id);
    }
  };
  Distance last_kept();

  float p_;
  std::size_t min_keep_;
  std::vector<Distance> distances_;
};

/// The greatest distance that stays. Distances are sorted in growing stretches, as far as needed.
Typical::Distance Typical::last_kept() {
  double total = 0;
  std::size_t kept = 0, sorted = 0;
  for (std::size_t stretch = 64; sorted < distances_.size(); stretch *= 8) {
    const std::size_t end = std::min(stretch, distances_.size());
    const auto at = [&](std::size_t i) { return distances_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (end < distances_.size()) std::nth_element(at(sorted), at(end), distances_.end());
    std::sort(at(sorted), at(end));
    for (sorted = end; kept < sorted;) {
      total += static_cast<double>(distances_[kept++].prob);
      if (total > static_cast<double>(p_) && kept >= min_keep_) return distances_[kept - 1];
    }
  }
  return distances_.back();
}

void Typical::apply(Candidates& candidates) {
  if (p_ >= 1) return;
  candidates.normalize();
  const double expected = candidates.entropy();
  const auto distance = [&](const Candidate& candidate) {
    const double surprise = -exact_math::log(static_cast<double>(candidate.prob));
    return Distance{std::abs(surprise - expected), candidate.id, candidate.prob};
  };
  distances_.clear();
  for (const Candidate& candidate : candidates.items()) {
    if (candidate.prob > 0) distances_.push_back(distance(candidate));
  }
  const Distance last = last_kept();
  candidates.keep_if(
      [&](const Candidate& candidate) { return candidate.prob > 0 && !(last < distance(candidate)); });
}

class TopNSigma final : public Stage {
 public:
  explicit TopNSigma(float n) : n_(not_nan(n, "top_n_sigma")) {}
  std::string_view name() const override { return "top_n_sigma"; }
  void apply(Candidates& candidates) override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<TopNSigma>(*this); }

 private:
  float n_;
};

void TopNSigma::apply(Candidates& candidates) {
  if (n_ <= 0) return;
  const auto max = static_cast<double>(candidates.max_logit());
  double sum = 0, sum_squares = 0, count = 0;
  for (const Candidate& candidate : candidates.items()) {
    if (!std::isfinite(candidate.logit)) continue;
    const double below = std::isinf(max) ? 0.0 : max - static_cast<double>(candidate.logit);
    sum += below;
    sum_squares += below * below;
    ++count;
  }
  const double mean = count > 0 ? sum / count : 0.0;
  const double variance = count > 0 ? std::max(0.0, sum_squares / count - mean * mean) : 0.0;
  const double least = max - static_cast<double>(n_) * std::sqrt(variance);
  candidates.change_logits(
      [&](float logit) { return static_cast<double>(logit) < least ? -kInfinity : logit; });
}

class Xtc final : public Stage {
 public:
  explicit Xtc(const stage::Xtc& description)
      : probability_(not_nan(description.probability, "xtc_probability")),
        threshold_(not_nan(description.threshold, "xtc_threshold")),
        min_keep_(std::max<std::size_t>(description.min_keep, 1)),
        seed_(~description.seed),  // a draw of the same seed must not follow the same numbers
        random_(seed_) {}
  std::string_view name() const override { return "xtc"; }
  void apply(Candidates& candidates) override;
  void reset() override { random_ = Random(seed_); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Xtc>(*this); }

 private:
  float probability_, threshold_;
  std::size_t min_keep_;
  std::uint64_t seed_;
  Random random_;
};

void Xtc::apply(Candidates& candidates) {
  if (probability_ <= 0 || threshold_ > 0.5f) return;
  // One number for each token of text, so that a choice never depends on how the lists before it looked.
  if (random_.uniform() >= static_cast<double>(probability_)) return;
  candidates.normalize();
  const Candidate* least = nullptr;
  std::size_t n_top = 0;
  for (const Candidate& candidate : candidates.items()) {
    if (candidate.prob < threshold_ || candidate.prob <= 0) continue;
    ++n_top;
    if (least == nullptr || likelier(*least, candidate)) least = &candidate;
  }
  if (n_top < 2 || candidates.size() - (n_top - 1) < min_keep_) return;
  const Candidate kept = *least;
  candidates.keep_if([&](const Candidate& candidate) { return !likelier(candidate, kept); });
}

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::TopK& description) {
  return std::make_unique<TopK>(description.k);
}
std::unique_ptr<Stage> make_stage(const stage::TopP& description) {
  return std::make_unique<TopP>(description);
}
std::unique_ptr<Stage> make_stage(const stage::MinP& description) {
  return std::make_unique<MinP>(description);
}
std::unique_ptr<Stage> make_stage(const stage::Typical& description) {
  return std::make_unique<Typical>(description);
}
std::unique_ptr<Stage> make_stage(const stage::TopNSigma& description) {
  return std::make_unique<TopNSigma>(description.n);
}
std::unique_ptr<Stage> make_stage(const stage::Xtc& description) {
  return std::make_unique<Xtc>(description);
}

}  // namespace quipu::sampling
