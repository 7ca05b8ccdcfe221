// The DeepSeek family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> deepseek_architectures() {
  static constexpr std::string_view kUnsupported[] = {"attention.temperature_scale"};
  static constexpr Architecture kTable[] = {
      {
          .name = "deepseek2",
          .paper = "DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437",
          .next_token_layers = true,
          .attention = {.kind = AttentionKind::latent,
                        .rope = RopeStyle::interleaved,
                        .yarn_log_multiplier = YarnLogMultiplier::cancels},
          .experts = {.available = true,
                      .gating_key = true,
                      .normalize_weights = false,
                      .normalize_key = true,
                      .own_width = true,
                      .leading_dense = true,
                      .shared = true,
                      .groups = true,
                      .selection_bias = Presence::optional},
          .unsupported_keys = kUnsupported,
      },
  };
  return kTable;
}

}  // namespace quipu
