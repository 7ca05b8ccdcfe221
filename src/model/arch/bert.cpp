// BERT and its descendants. GELU is the tanh form in all of them, as files in the wild expect, where the
// papers have the exact one.
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr NormDescription kBertNorm = {.kind = NormKind::layer,
                                       .bias = Presence::required,
                                       .placement = NormPlacement::after_sum,
                                       .final = false};

}  // namespace

std::span<const Architecture> bert_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "bert",
          .paper = "Devlin et al. 2018, arXiv:1810.04805",
          .structure = Structure::encoder,
          .norm = kBertNorm,
          .embedding = {.positions = Presence::required, .token_types = Presence::optional, .norm = true},
          .attention = {.positions = PositionKind::none, .output_bias = Presence::optional},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::optional},
          .head = {.logits = false, .rank = {.available = true, .dense = true}},
      },
      {
          .name = "nomic-bert",
          .paper = "Nussbaum et al. 2024, arXiv:2402.01613",
          .structure = Structure::encoder,
          .norm = kBertNorm,
          .embedding = {.token_types = Presence::optional, .norm = true},
          .attention = {.output_bias = Presence::optional},
          .feed_forward = {.unused_bias = true},
          .head = {.logits = false},
      },
      {
          .name = "nomic-bert-moe",
          .paper = "Nussbaum and Duderstadt 2025, arXiv:2502.07972",
          .structure = Structure::encoder,
          .norm = kBertNorm,
          .embedding = {.token_types = Presence::optional, .norm = true},
          .attention = {.output_bias = Presence::optional},
          .feed_forward = {.gate = Presence::absent,
                           .activation = Activation::gelu_tanh,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::optional},
          .experts = {.available = true, .normalize_weights = false, .every_key = true},
          .head = {.logits = false},
      },
      {
          .name = "jina-bert-v3",
          .paper = "Sturua et al. 2024, arXiv:2409.10173",
          .structure = Structure::encoder,
          .norm = kBertNorm,
          .embedding = {.token_types = Presence::optional, .norm = true},
          .attention = {.output_bias = Presence::optional},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::optional},
          .head = {.logits = false},
      },
      {
          .name = "neo-bert",
          .paper = "Le Breton et al. 2025, arXiv:2502.19587",
          .structure = Structure::encoder,
          .attention = {.rope = RopeStyle::interleaved},
          .feed_forward = {.gate = Presence::absent, .gate_in_up = Presence::required},
          .head = {.logits = false, .rank = {.available = true, .dense = true}},
          .names = {.output_norm = "enc.output_norm"},
      },
      {
          .name = "eurobert",
          .paper = "Boizard et al. 2025, arXiv:2503.05500",
          .structure = Structure::encoder,
          .head = {.logits = false},
      },
      {
          .name = "jina-bert-v2",
          .paper = "Guenther et al. 2023, arXiv:2310.19923",
          .structure = Structure::encoder,
          .norm = {.kind = NormKind::layer,
                   .bias = Presence::required,
                   .placement = NormPlacement::after_sum,
                   .second_sum = Presence::optional,
                   .final = false},
          .embedding = {.token_types = Presence::required, .norm = true},
          .attention = {.positions = PositionKind::alibi,
                        .max_alibi_bias = 8,
                        .qk_norm = QkNorm::whole,
                        .qk_norm_presence = Presence::optional,
                        .output_bias = Presence::required},
          .feed_forward = {.gate = Presence::optional,
                           .gate_in_up = Presence::optional,
                           .activation = Activation::gelu_tanh,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::required},
          .head = {.logits = false, .rank = {.available = true, .cls_scores = true}},
      },
      {
          .name = "modern-bert",
          .paper = "Warner et al. 2024, arXiv:2412.13663",
          .structure = Structure::encoder,
          .norm = {.kind = NormKind::layer, .first_attention = false},
          .embedding = {.norm = true},
          .attention =
              {.qkv_bias = Presence::absent,
               .square_qkv = true,
               .windows = {.period = 3, .first_sees_all = true, .symmetric = true, .required = false}},
          .feed_forward = {.gate = Presence::absent,
                           .gate_in_up = Presence::required,
                           .activation = Activation::gelu_tanh,
                           .activation_key = true},
          .head = {.logits = false,
                   .rank = {.available = true,
                            .dense = true,
                            .gelu = true,
                            .norm = true,
                            .pooling = Pooling::mean}},
      },
  };
  return kTable;
}

}  // namespace quipu
