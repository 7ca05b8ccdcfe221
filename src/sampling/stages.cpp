#include "sampling/stages.h"

#include <variant>

namespace quipu::sampling {

std::unique_ptr<Stage> make_stage(const SamplerStage& description) {
  return std::visit([](const auto& one) { return make_stage(one); }, description);
}

}  // namespace quipu::sampling
