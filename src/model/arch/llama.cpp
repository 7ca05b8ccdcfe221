// The Llama family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> llama_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "llama",
          .paper = "Touvron et al. 2023, arXiv:2302.13971; Mixtral: Jiang et al. 2024, arXiv:2401.04088",
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .output_bias = Presence::optional},
          .feed_forward = {.up_bias = Presence::optional, .down_bias = Presence::optional},
          .experts = {.available = true},
      },
  };
  return kTable;
}

}  // namespace quipu
