// From rotation hyper-parameters to the frequency of each pair and one magnitude.
#pragma once

#include <span>

#include "graph/ops/rope.h"
#include "model/hparams.h"

namespace quipu {

/// `factors` ([n_rot / 2] or empty) divide the frequencies. Linear scaling, and YaRN as in Peng et al. 2023,
/// arXiv:2309.00071, with the attention factor of the context specification: its magnitude replaces the
/// parameter wherever extrapolation is on, and the model's own factor multiplies both.
/// A log multiplier m divides the magnitude by 0.1 m ln(factor) + 1.
RopeAnglesParams rope_frequencies(const RopeHparams& hparams, const RopeOverrides& overrides,
                                  std::span<const float> factors);

/// What YaRN scales scores by where an architecture reads the log multiplier m: the square of the magnitude
/// times 0.1 m ln(factor) + 1. Where nothing is extrapolated, the magnitude is taken 0.1 ln(factor) + 1 times
/// larger.
float yarn_score_scale(const RopeHparams& hparams, const RopeOverrides& overrides);

/// Which of LongRoPE's factors apply: those of a context longer than the original one, or the short ones.
bool takes_long_factors(const RopeHparams& hparams, const RopeOverrides& overrides);

}  // namespace quipu
