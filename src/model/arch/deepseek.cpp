// The DeepSeek family.
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr AttentionDescription kLatentAttention = {.kind = AttentionKind::latent,
                                                   .rope = RopeStyle::interleaved,
                                                   .yarn_log_multiplier = YarnLogMultiplier::cancels,
                                                   .temperature = {.keys = true}};
constexpr ExpertDescription kDeepSeekExperts = {.available = true,
                                                .gating_key = true,
                                                .normalize_weights = false,
                                                .normalize_key = true,
                                                .own_width = true,
                                                .leading_dense = true,
                                                .shared = SharedExperts::counted,
                                                .selection_bias = Presence::optional};

}  // namespace

std::span<const Architecture> deepseek_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "deepseek",
          .paper = "Dai et al. 2024, arXiv:2401.06066",
          .attention = {.rope = RopeStyle::interleaved},
          .experts = {.available = true,
                      .normalize_weights = false,
                      .own_width = true,
                      .leading_dense = true,
                      .shared = SharedExperts::counted},
      },
      {
          .name = "deepseek2",
          .paper = "DeepSeek-AI 2024, arXiv:2405.04434 and arXiv:2412.19437",
          .next_token_layers = true,
          .attention = kLatentAttention,
          .experts = kDeepSeekExperts,
      },
      {
          .name = "mistral4",
          .paper = "Mistral AI 2026, https://huggingface.co/mistralai",
          .next_token_layers = true,
          .attention = kLatentAttention,
          .experts = kDeepSeekExperts,
      },
      // attention.sliding_window may be in files and has no effect: the published model attends to
      // everything.
      {
          .name = "deepseek2-ocr",
          .paper = "Wei et al. 2025, arXiv:2510.18234",
          .experts = kDeepSeekExperts,
      },
  };
  return kTable;
}

}  // namespace quipu
