// The MiniCPM family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> minicpm_architectures() {
  static constexpr Architecture kTable[] = {
      // Files without logit_scale: the published code divides by n_embd / 256; the reference, which files are
      // made for, multiplies by it.
      {
          .name = "minicpm",
          .paper = "Hu et al. 2024, arXiv:2404.06395",
          .scales = {.keys = true,
                     .embedding = 12,
                     .depth_residual = 1.4f,
                     .width_logits = 256,
                     .logit_key = ScaleDescription::LogitKey::divides},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .output_bias = Presence::optional},
          .feed_forward = {.up_bias = Presence::optional, .down_bias = Presence::optional},
          .experts = {.available = true},
      },
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
