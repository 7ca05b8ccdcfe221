// Grok. Grok-1's files lack the keys that Grok-2's have: its figures are the defaults.
#include <cmath>

#include "base/error.h"
#include "model/arch/architecture.h"

namespace quipu {
namespace {

void read_grok(const gguf::Metadata& metadata, Hparams& hparams) {
  const auto number = [&](const char* key, float fallback) {
    const float value = metadata.get_f32(key).value_or(fallback);
    if (!std::isfinite(value)) fail(ErrorCode::bad_file, "{}: key '{}' is {}", metadata.origin(), key, value);
    return value;
  };
  hparams.attention_scale = number("grok.attention.output_scale", 0.08838834764831845f);
  hparams.logit_scale = number("grok.logit_scale", 0.5773502691896257f);
  hparams.input_scale = number("grok.embedding_scale", 78.38367176906169f);
  hparams.rope.yarn_beta_fast = number("grok.rope.scaling.yarn_beta_fast", 8);
  if (!metadata.contains("grok.expert_feed_forward_length")) hparams.experts.n_ff = hparams.layers[0].n_ff;
}

}  // namespace

std::span<const Architecture> grok_architectures() {
  static constexpr Architecture kTable[] = {
      // router_logit_softcapping is in the files; the reference, which they were made for, does not apply it.
      {
          .name = "grok",
          .paper = "xAI 2024, https://github.com/xai-org/grok-1; 2025, https://huggingface.co/xai-org/grok-2",
          .norm = {.placement = NormPlacement::around},
          .attention = {.soft_cap = 30},
          .feed_forward = {.activation = Activation::gelu_tanh},
          .experts = {.available = true, .own_width = true, .shared = SharedExperts::dense},
          .head = {.soft_cap = 0},
          .names = {.attn_post_norm = "attn_output_norm", .other_ffn_post_norm = "layer_output_norm.weight"},
          .adjust = read_grok,
      },
  };
  return kTable;
}

}  // namespace quipu
