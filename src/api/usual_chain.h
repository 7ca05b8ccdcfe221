// From the options that users set to the stages of a chain.
#pragma once

#include <vector>

#include "quipu/sampler.h"

namespace quipu {

/// `tokenizer` may be null where no option speaks of texts.
std::vector<SamplerStage> usual_chain(const SamplingOptions& options, const Tokenizer* tokenizer);

}  // namespace quipu
