// The Gemma family.
#include <cmath>

#include "model/arch/architecture.h"

namespace quipu {

namespace {

/// The model of 27B divides scores by the root of the width that heads share, which is not the size of a
/// head.
template <std::size_t n_layers>
void scale_27b(const gguf::Metadata&, Hparams& hparams) {
  if (hparams.n_layers() != n_layers) return;
  const std::uint32_t share = hparams.n_embd / hparams.layers[0].n_heads;
  hparams.attention_scale = 1.0f / std::sqrt(static_cast<float>(share));
}

}  // namespace

std::span<const Architecture> gemma_architectures() {
  static constexpr std::string_view kGemma4Experts[] = {"ffn_gate_inp.weight"};
  static constexpr Architecture kTable[] = {
      {
          .name = "gemma",
          .paper = "Gemma Team 2024, arXiv:2403.08295",
          .embedding = {.scaled = true},
          .feed_forward = {.activation = Activation::gelu_tanh},
      },
      {
          .name = "gemma2",
          .paper = "Gemma Team 2024, arXiv:2408.00118",
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true},
          .attention = {.soft_cap = 50,
                        .windows = {.period = 2,
                                    .default_size = 4096,
                                    .local_rope_base = 0,
                                    .local_rope_scaled = true}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.soft_cap = 30},
          .adjust = scale_27b<46>,
      },
      {
          .name = "gemma3",
          .paper = "Gemma Team 2025, arXiv:2503.19786",
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true},
          .attention = {.qk_norm = QkNorm::heads, .windows = {.period = 6}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.soft_cap = 0},
          .adjust = scale_27b<62>,
      },
      {
          .name = "gemma3n",
          .paper = "Gemma Team 2025, https://ai.google.dev/gemma/docs/gemma-3n",
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true, .layer_width = 256},
          .streams = {.count = 4, .laurel_rank = 64, .n_sparse_layers = 10, .deviations = 1.6448533535f},
          .attention = {.qk_norm = QkNorm::heads,
                        .score_scale = ScoreScale::none,
                        .plain_v_norm = true,
                        .n_own_caches = 20,
                        .windows = {.period = 5}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.soft_cap = 30},
      },
      {
          .name = "gemma4",
          .paper = "Gemma Team 2026, https://ai.google.dev/gemma/docs",
          .norm = {.placement = NormPlacement::around},
          .embedding = {.scaled = true, .layer_width_key = true},
          .attention = {.rope_factors = true,
                        .qk_norm = QkNorm::heads,
                        .qkv_bias = Presence::absent,
                        .score_scale = ScoreScale::none,
                        .plain_v_norm = true,
                        .values_may_be_keys = true,
                        .shared_caches_key = true,
                        .windows = {.listed = true, .own_head_sizes = true}},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .head = {.soft_cap = 30},
          .unsupported_tensors = kGemma4Experts,
          .layer_scales = true,
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
