// GPT-2 and its descendants: layer norms with biases, feed-forward layers without a gate. GELU is the tanh
// form in all of them, as files in the wild expect.
#include "model/arch/architecture.h"

namespace quipu {
namespace {

constexpr NormDescription kLayerNormWithBias = {.kind = NormKind::layer, .bias = Presence::required};

constexpr FeedForwardDescription kUngated = {.gate = Presence::absent,
                                             .ungated_activation = Activation::gelu_tanh,
                                             .up_bias = Presence::required,
                                             .down_bias = Presence::required};

/// Positions are learned and added to the embeddings.
constexpr Architecture gpt2(std::string_view name, std::string_view paper) {
  return {
      .name = name,
      .paper = paper,
      .norm = kLayerNormWithBias,
      .embedding = {.positions = Presence::required},
      .attention = {.positions = PositionKind::none, .output_bias = Presence::required},
      .feed_forward = kUngated,
  };
}

}  // namespace

std::span<const Architecture> gpt_architectures() {
  static constexpr Architecture kTable[] = {
      gpt2("gpt2", "Radford et al. 2019, Language Models are Unsupervised Multitask Learners"),
      gpt2("starcoder", "Li et al. 2023, arXiv:2305.06161"),
      {
          .name = "starcoder2",
          .paper = "Lozhkov et al. 2024, arXiv:2402.19173",
          .norm = kLayerNormWithBias,
          .attention = {.output_bias = Presence::required},
          .feed_forward = kUngated,
      },
      {
          .name = "gptneox",
          .paper = "Black et al. 2022, arXiv:2204.06745",
          .norm = {.kind = NormKind::layer, .bias = Presence::required, .parallel_key = true},
          .attention = {.output_bias = Presence::required},
          .feed_forward = kUngated,
      },
      {
          .name = "codeshell",
          .paper = "Xie et al. 2024, arXiv:2403.15747",
          .norm = kLayerNormWithBias,
          .embedding = {.may_be_head = true},
          .attention = {.output_bias = Presence::required},
          .feed_forward = kUngated,
      },
      {
          .name = "stablelm",
          .paper = "Bellagente et al. 2024, arXiv:2402.17834",
          .norm = {.kind = NormKind::layer, .bias = Presence::required, .feed_forward = Presence::optional},
          .attention = {.qk_norm = QkNorm::each, .qk_norm_presence = Presence::optional},
      },
      {
          .name = "falcon",
          .paper = "Almazrouei et al. 2023, arXiv:2311.16867",
          .norm = {.kind = NormKind::layer,
                   .bias = Presence::required,
                   .attention_own = Presence::optional,
                   .feed_forward = Presence::absent},
          .feed_forward = {.gate = Presence::absent, .ungated_activation = Activation::gelu_tanh},
      },
      {
          .name = "bloom",
          .paper = "BigScience Workshop 2022, arXiv:2211.05100",
          .norm = kLayerNormWithBias,
          .embedding = {.norm = true},
          .attention = {.positions = PositionKind::alibi,
                        .max_alibi_bias = 8,
                        .output_bias = Presence::required},
          .feed_forward = kUngated,
      },
      {
          .name = "nemotron",
          .paper = "Parmar et al. 2024, arXiv:2402.16819",
          .norm = kLayerNormWithBias,
          .attention = {.output_bias = Presence::optional},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::relu_squared,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::optional},
      },
      {
          .name = "jais",
          .paper = "Sengupta et al. 2023, arXiv:2308.16149",
          .norm = kLayerNormWithBias,
          .attention = {.positions = PositionKind::alibi,
                        .output_bias = Presence::required,
                        .score_scale = ScoreScale::inverse},
          .feed_forward = {.up_bias = Presence::required, .down_bias = Presence::required},
      },
      {
          .name = "jais2",
          .paper = "Inception, MBZUAI and Cerebras 2025, Jais 2",
          .norm = kLayerNormWithBias,
          .attention = {.output_bias = Presence::required},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::relu_squared,
                           .up_bias = Presence::required,
                           .down_bias = Presence::required},
      },
  };
  return kTable;
}

}  // namespace quipu
