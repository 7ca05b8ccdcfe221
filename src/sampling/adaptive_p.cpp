// Adaptive-p: draws tokens whose probability is near a target that answers to what was drawn before.
// https://github.com/MrJackSpade/adaptive-p-docs describes it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sampling/random.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

class AdaptiveP final : public Stage {
 public:
  explicit AdaptiveP(const stage::AdaptiveP& description)
      : target_(std::min(not_nan(description.target, "adaptive_p target"), 1.0f)),
        decay_(std::clamp(not_nan(description.decay, "adaptive_p decay"), 0.0f, 0.99f)),
        seed_(description.seed),
        random_(seed_) {
    AdaptiveP::reset();
  }
  std::string_view name() const override { return "adaptive_p"; }
  void apply(Candidates& candidates) override;
  void accept(Token token) override;
  void reset() override;
  std::unique_ptr<Stage> clone() const override { return std::make_unique<AdaptiveP>(*this); }

 private:
  float target_, decay_;
  std::uint64_t seed_;
  Random random_;
  float sum_ = 0, weight_ = 0;  // of the probabilities of tokens past, the last one weighing 1
  Token drawn_ = kNoToken;
  float drawn_prob_ = 0;
  std::vector<float> original_;  // scratch: probabilities before they are adapted
};

/// As if every token so far had had the target's probability.
void AdaptiveP::reset() {
  random_ = Random(seed_);
  weight_ = 1 / (1 - decay_);
  sum_ = target_ * weight_;
  drawn_ = kNoToken;
}

/// The logit of a token of this probability: highest at the aim, falling like a parabola near it and in a
/// straight line far from it.
float adapted_logit(float prob, float aim) {
  constexpr float kPeak = 5, kSharpness = 10, kWidth = 0.3f;
  const float distance = std::abs(prob - aim) / kWidth;
  return kPeak - kSharpness * distance * distance / (1 + distance);
}

void AdaptiveP::apply(Candidates& candidates) {
  candidates.normalize();
  original_.clear();
  for (const Candidate& candidate : candidates.items()) original_.push_back(candidate.prob);
  if (target_ >= 0) {
    const float aim = std::clamp(2 * target_ - sum_ / weight_, 0.0f, 1.0f);
    candidates.replace_logits([&](const Candidate& candidate) {
      return candidate.prob > 0 ? adapted_logit(candidate.prob, aim)
                                : -std::numeric_limits<float>::infinity();
    });
    candidates.normalize();
  }
  candidates.draw(random_.uniform());
  drawn_ = candidates.selected();
  const auto items = candidates.items();
  const auto drawn = std::find_if(items.begin(), items.end(),
                                  [&](const Candidate& candidate) { return candidate.id == drawn_; });
  drawn_prob_ = original_[static_cast<std::size_t>(drawn - items.begin())];
}

/// Only a token that was drawn teaches: others came from the user.
void AdaptiveP::accept(Token token) {
  if (token == drawn_) {
    sum_ = drawn_prob_ + decay_ * sum_;
    weight_ = 1 + decay_ * weight_;
  }
  drawn_ = kNoToken;
}

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::AdaptiveP& description) {
  return std::make_unique<AdaptiveP>(description);
}

}  // namespace quipu::sampling
