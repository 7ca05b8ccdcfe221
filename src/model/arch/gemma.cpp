// The Gemma family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> gemma_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "gemma",
          .paper = "Gemma Team 2024, arXiv:2403.08295",
          .embedding = {.scaled = true},
          .feed_forward = {.activation = Activation::gelu_tanh},
      },
      {
          .name = "gemma3",
          .paper = "Gemma Team 2025, arXiv:2503.19786",
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true},
          .attention = {.qk_norm = QkNorm::heads, .windows = {.period = 6}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.soft_cap = 0},
      },
      {
          .name = "gemma-embedding",
          .paper = "Schechter Vera et al. 2025, arXiv:2509.20354",
          .structure = Structure::encoder,
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true},
          .attention = {.qk_norm = QkNorm::heads, .windows = {.period = 6, .symmetric = true}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.logits = false, .dense = true},
      },
  };
  return kTable;
}

}  // namespace quipu
