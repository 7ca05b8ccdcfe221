// From the description of a stage (quipu/stages.h, which says what each does) to the stage. The classes are
// in the files named after what they do.
#pragma once

#include <cmath>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "quipu/stages.h"
#include "sampling/stage.h"

namespace quipu::sampling {

// select.cpp
std::unique_ptr<Stage> make_stage(const stage::Greedy& description);
std::unique_ptr<Stage> make_stage(const stage::Draw& description);
// temperature.cpp
std::unique_ptr<Stage> make_stage(const stage::Temperature& description);
std::unique_ptr<Stage> make_stage(const stage::DynamicTemperature& description);
// truncation.cpp
std::unique_ptr<Stage> make_stage(const stage::TopK& description);
std::unique_ptr<Stage> make_stage(const stage::TopP& description);
std::unique_ptr<Stage> make_stage(const stage::MinP& description);
std::unique_ptr<Stage> make_stage(const stage::Typical& description);
std::unique_ptr<Stage> make_stage(const stage::TopNSigma& description);
std::unique_ptr<Stage> make_stage(const stage::Xtc& description);
// penalties.cpp, dry.cpp
std::unique_ptr<Stage> make_stage(const stage::Penalties& description);
std::unique_ptr<Stage> make_stage(const stage::Bias& description);
std::unique_ptr<Stage> make_stage(const stage::Dry& description);
// mirostat.cpp, adaptive_p.cpp
std::unique_ptr<Stage> make_stage(const stage::Mirostat& description);
std::unique_ptr<Stage> make_stage(const stage::Mirostat2& description);
std::unique_ptr<Stage> make_stage(const stage::AdaptiveP& description);
// infill.cpp
std::unique_ptr<Stage> make_stage(const stage::Infill& description);

std::unique_ptr<Stage> make_stage(const SamplerStage& description);

/// A parameter, or Error(invalid_argument) if it is NaN.
inline float not_nan(float value, std::string_view name) {
  if (std::isnan(value)) fail(ErrorCode::invalid_argument, "sampling: {} is not a number", name);
  return value;
}

}  // namespace quipu::sampling
