#include "model/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/math.h"

namespace quipu {
namespace {

/// Texts are at 0 in the fourth dimension of positions.
constexpr std::uint8_t kUnusedDimension = 3;

/// The pair (as a real number) that turns `rotations` times over the original context.
double pair_of_rotations(const RopeHparams& rope, double rotations) {
  const double n = rope.original_context;
  return rope.n_rot * exact_math::log(n / (rotations * 2 * std::numbers::pi)) /
         (2 * exact_math::log(rope.base));
}

/// Share of the unscaled frequency in each pair: 1 for pairs that turn often, 0 for those that turn rarely.
class YarnRamp {
 public:
  explicit YarnRamp(const RopeHparams& rope)
      : low_(std::max(0.0, std::floor(pair_of_rotations(rope, rope.yarn_beta_fast)))),
        high_(std::min(rope.n_rot - 1.0, std::ceil(pair_of_rotations(rope, rope.yarn_beta_slow)))) {}

  double operator()(std::size_t pair) const {
    const double way = (static_cast<double>(pair) - low_) / std::max(0.001, high_ - low_);
    return 1.0 - std::clamp(way, 0.0, 1.0);
  }

 private:
  double low_, high_;
};

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * exact_math::log(factor) + 1.0;
}

double magnitude_of(const RopeHparams& rope) {
  if (rope.yarn_extrapolation == 0)
    return static_cast<double>(rope.yarn_attention_factor) * rope.attention_factor;
  const double magnitude = yarn_magnitude(rope.factor, rope.yarn_dividend_multiplier);
  const double divisor =
      rope.yarn_log_multiplier == 0 ? 1.0 : yarn_magnitude(rope.factor, rope.yarn_log_multiplier);
  return magnitude / divisor * rope.attention_factor;
}

RopeHparams resolve(const RopeHparams& hparams, const RopeOverrides& overrides) {
  RopeHparams rope = hparams;
  rope.scaling = overrides.scaling.value_or(hparams.scaling);
  rope.base = overrides.base.value_or(hparams.base);
  if (overrides.frequency_scale) rope.factor = 1 / *overrides.frequency_scale;
  if (rope.scaling == RopeScaling::none) rope.factor = 1;
  rope.original_context = overrides.original_context.value_or(hparams.original_context);
  rope.yarn_extrapolation = overrides.yarn_extrapolation.value_or(hparams.yarn_extrapolation);
  if (rope.yarn_extrapolation < 0) rope.yarn_extrapolation = rope.scaling == RopeScaling::yarn ? 1 : 0;
  rope.yarn_attention_factor = overrides.yarn_attention_factor.value_or(hparams.yarn_attention_factor);
  rope.yarn_beta_fast = overrides.yarn_beta_fast.value_or(hparams.yarn_beta_fast);
  rope.yarn_beta_slow = overrides.yarn_beta_slow.value_or(hparams.yarn_beta_slow);
  return rope;
}

}  // namespace

RopeAnglesParams rope_frequencies(const RopeHparams& hparams, const RopeOverrides& overrides,
                                  std::span<const float> factors) {
  const RopeHparams rope = resolve(hparams, overrides);
  const YarnRamp ramp(rope);
  const double extrapolation = rope.yarn_extrapolation;
  RopeAnglesParams params;
  params.frequencies.resize(rope.n_rot / 2);
  for (std::size_t i = 0; i < params.frequencies.size(); ++i) {
    if (!rope.pair_dimensions.empty() && rope.pair_dimensions[i] == kUnusedDimension) continue;
    double frequency = exact_math::pow(rope.base, -2.0 * static_cast<double>(i) / rope.n_rot);
    if (!factors.empty()) frequency /= factors[i];
    const double scaled = frequency / rope.factor;
    const double unscaled_share = extrapolation == 0 ? 0 : ramp(i) * extrapolation;
    params.frequencies[i] = scaled * (1 - unscaled_share) + frequency * unscaled_share;
  }
  params.magnitude = static_cast<float>(magnitude_of(rope));
  return params;
}

float yarn_score_scale(const RopeHparams& hparams, const RopeOverrides& overrides) {
  const RopeHparams rope = resolve(hparams, overrides);
  const double growth = 0.1 * exact_math::log(rope.factor);
  const double magnitude = magnitude_of(rope) * (rope.yarn_extrapolation == 0 ? growth + 1 : 1);
  const double scale = magnitude * (growth * rope.yarn_log_multiplier + 1);
  return static_cast<float>(scale * scale);
}

bool takes_long_factors(const RopeHparams& hparams, const RopeOverrides& overrides) {
  return overrides.context_length > overrides.original_context.value_or(hparams.original_context);
}

}  // namespace quipu
