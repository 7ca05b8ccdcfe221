// The Qwen family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> qwen_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "qwen2",
          .paper = "Yang et al. 2024, arXiv:2407.10671",
          .head_bias = true,
      },
      {
          .name = "qwen3",
          .paper = "Yang et al. 2025, arXiv:2505.09388",
          .qk_norm = true,
      },
      {
          .name = "qwen3moe",
          .paper = "Yang et al. 2025, arXiv:2505.09388",
          .qk_norm = true,
          .experts = {.available = true, .own_width = true},
      },
  };
  return kTable;
}

}  // namespace quipu
