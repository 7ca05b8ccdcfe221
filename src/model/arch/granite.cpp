// The Granite family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> granite_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "granite",
          .paper = "IBM 2024, Granite 3.0 Language Models",
          .scales = {.keys = true, .logit_key = ScaleDescription::LogitKey::divides},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .output_bias = Presence::optional,
                        .unrotated = {.key = true}},
          .feed_forward = {.up_bias = Presence::optional, .down_bias = Presence::optional},
          .experts = {.available = true, .shared = SharedExperts::sized},
      },
      {
          .name = "granitemoe",
          .paper = "IBM 2024, Granite 3.0 Language Models",
          .scales = {.keys = true, .logit_key = ScaleDescription::LogitKey::divides},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .output_bias = Presence::optional,
                        .unrotated = {.key = true}},
          .feed_forward = {.up_bias = Presence::optional, .down_bias = Presence::optional},
          .experts = {.available = true, .shared = SharedExperts::sized},
      },
      {
          .name = "granite_swa",
          .paper = "IBM 2026, Granite 4 Language Models",
          .scales = {.keys = true, .logit_key = ScaleDescription::LogitKey::divides},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_factors = true,
                        .output_bias = Presence::optional,
                        .sinks = Presence::required,
                        .windows = {.listed = true, .local_rope_base = 0, .local_rope_scaled = true},
                        .unrotated = {.pattern_key = true}},
          .feed_forward = {.up_bias = Presence::optional, .down_bias = Presence::optional},
          .experts = {.available = true, .shared = SharedExperts::sized, .shared_gate_in_up = true},
      },
  };
  return kTable;
}

}  // namespace quipu
