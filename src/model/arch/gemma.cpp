// The Gemma family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> gemma_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "gemma3",
          .paper = "Gemma Team 2025, arXiv:2503.19786",
          .qk_norm = true,
          .post_norms = true,
          .activation = Activation::gelu_tanh,
          .scale_embedding = true,
          .soft_cap_logits = true,
          .windows = {.period = 6},
      },
  };
  return kTable;
}

}  // namespace quipu
