// The Cohere family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> cohere_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "command-r",
          .paper = "Cohere 2024, https://huggingface.co/CohereLabs/c4ai-command-r-v01",
          .norm = {.kind = NormKind::layer, .feed_forward = Presence::absent},
          .scales = {.logit_key = ScaleDescription::LogitKey::multiplies},
          .attention = {.rope = RopeStyle::interleaved,
                        .qk_norm = QkNorm::each,
                        .qk_norm_presence = Presence::optional},
      },
      {
          .name = "cohere2",
          .paper = "Cohere 2025, arXiv:2504.00698",
          .norm = {.kind = NormKind::layer, .feed_forward = Presence::absent},
          .scales = {.logit_key = ScaleDescription::LogitKey::multiplies},
          .attention = {.rope = RopeStyle::interleaved,
                        .windows = {.period = 4, .local_rope_base = 0, .local_rope_scaled = true},
                        .unrotated = {.without_window = true}},
      },
      {
          .name = "cohere2moe",
          .paper = "Cohere 2026, https://huggingface.co/CohereLabs",
          .next_token_layers = true,
          .norm = {.kind = NormKind::rms_or_layer, .feed_forward = Presence::absent},
          .scales = {.logit_key = ScaleDescription::LogitKey::multiplies},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .windows = {.period = 4,
                                    .first_sees_all = true,
                                    .local_rope_base = 0,
                                    .local_rope_scaled = true},
                        .unrotated = {.without_window = true, .but_leading_dense = true}},
          .experts = stated_experts(
              {.leading_dense = true, .shared = SharedExperts::sized_or_counted, .mean_of_shared = true}),
      },
  };
  return kTable;
}

}  // namespace quipu
