// The GLM family: the gate stands before the rows of ffn_up.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> glm_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "chatglm",
          .paper = "GLM Team 2024, arXiv:2406.12793",
          .attention = {.rope = RopeStyle::interleaved},
          .feed_forward = {.gate = Presence::absent, .gate_in_up = Presence::required},
      },
      {
          .name = "glm4",
          .paper = "GLM Team 2024, arXiv:2406.12793; GLM-4.1V: arXiv:2507.01006",
          .next_token_layers = true,
          .norm = {.placement = NormPlacement::around},
          .attention = {.rope = RopeStyle::interleaved,
                        .rope_sections = RopeSections::blocks,
                        .optional_sections = true},
          .feed_forward = {.gate = Presence::absent, .gate_in_up = Presence::required},
      },
      {
          .name = "glm4moe",
          .paper = "GLM-4.5 Team 2025, arXiv:2508.06471",
          .next_token_layers = true,
          .attention = {.rope_sections = RopeSections::blocks,
                        .optional_sections = true,
                        .qk_norm = QkNorm::heads,
                        .qk_norm_presence = Presence::optional},
          .experts = stated_experts({.leading_dense = true,
                                     .shared = SharedExperts::counted,
                                     .selection_bias = Presence::required}),
          .names = {.ffn_norm = "post_attention_norm"},
      },
  };
  return kTable;
}

}  // namespace quipu
