// The MiniCPM family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> minicpm_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "minicpm3",
          .paper = "Hu et al. 2024, arXiv:2404.06395",
          .scales = {.embedding = 12, .depth_residual = 1.4f, .width_logits = 256},
          .attention = {.kind = AttentionKind::latent, .rope_factors = true},
      },
  };
  return kTable;
}

}  // namespace quipu
