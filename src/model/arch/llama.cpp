// The Llama family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> llama_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "llama",
          .paper = "Touvron et al. 2023, arXiv:2302.13971; Mixtral: Jiang et al. 2024, arXiv:2401.04088",
          .rope = RopeStyle::interleaved,
          .rope_factors = true,
          .output_projection_bias = true,
          .feed_forward_bias = true,
          .experts = {.available = true},
      },
  };
  return kTable;
}

}  // namespace quipu
