// Temperatures: how much likelier than others the likely tokens are.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "sampling/stages.h"

namespace quipu::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void leave_only_the_likeliest(Candidates& candidates) {
  const Token kept = candidates.likeliest().id;
  for (Candidate& candidate : candidates.items()) {
    if (candidate.id != kept) candidate.logit = -kInfinity;
  }
}

void divide_logits(Candidates& candidates, float temperature) {
  if (temperature <= 0) return leave_only_the_likeliest(candidates);
  if (temperature == 1) return;
  // Where the quotient would overflow, distances from the maximum are divided instead: the same
  // probabilities.
  const float max = candidates.max_logit();
  const float shift = std::isfinite(max) && !std::isfinite(max / temperature) ? max : 0.0f;
  candidates.change_logits(
      [&](float logit) { return std::isinf(logit) ? logit : (logit - shift) / temperature; });
}

class Temperature final : public Stage {
 public:
  explicit Temperature(float temperature) : temperature_(not_nan(temperature, "temp")) {}
  std::string_view name() const override { return "temp"; }
  void apply(Candidates& candidates) override { divide_logits(candidates, temperature_); }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Temperature>(*this); }

 private:
  float temperature_;
};

/// Of the probabilities of a list, in [0, 1]: 0 where one is certain, 1 where all are equal.
double relative_entropy(Candidates& candidates) {
  if (candidates.size() < 2) return 0;
  candidates.normalize();
  return candidates.entropy() / exact_math::log(static_cast<double>(candidates.size()));
}

class DynamicTemperature final : public Stage {
 public:
  explicit DynamicTemperature(const stage::DynamicTemperature& description)
      : min_(std::max(0.0f, not_nan(description.temp, "temp") -
                                not_nan(description.range, "dynamic temperature range"))),
        max_(description.temp + description.range),
        exponent_(not_nan(description.exponent, "dynamic temperature exponent")) {}
  std::string_view name() const override { return "temp_ext"; }
  void apply(Candidates& candidates) override {
    if (candidates.size() < 2) return;
    const double share =
        exact_math::pow(std::clamp(relative_entropy(candidates), 0.0, 1.0), static_cast<double>(exponent_));
    divide_logits(candidates, static_cast<float>(static_cast<double>(min_) +
                                                 static_cast<double>(max_ - min_) * std::min(share, 1.0)));
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<DynamicTemperature>(*this); }

 private:
  float min_, max_, exponent_;
};

}  // namespace

std::unique_ptr<Stage> make_stage(const stage::Temperature& description) {
  return std::make_unique<Temperature>(description.temp);
}
std::unique_ptr<Stage> make_stage(const stage::DynamicTemperature& description) {
  if (description.range <= 0) return std::make_unique<Temperature>(description.temp);
  return std::make_unique<DynamicTemperature>(description);
}

}  // namespace quipu::sampling
