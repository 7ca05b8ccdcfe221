// Architectures as data: a description says what the blocks are made of; the block builders (decoder.cpp),
// the list of weights (weights.cpp) and the hyper-parameters (hparams.cpp) are driven by it. A plain new
// architecture is one more table entry.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/ops/elementwise.h"
#include "graph/ops/experts.h"
#include "graph/ops/rope.h"

namespace quipu {

/// Which layers have a sliding window: all but each `period`-th one. The file's keys override the defaults.
struct WindowPattern {
  std::uint32_t period = 0;       ///< 0: the architecture has no windows
  float local_rope_base = 10000;  ///< base of the windowed layers, which are not scaled
};

struct ExpertDescription {
  bool available = false;
  ExpertGating gating = ExpertGating::softmax;
  bool normalize_weights = true;
  /// The experts' width is <arch>.expert_feed_forward_length; where false it is the dense one.
  bool own_width = false;
};

struct Architecture {
  std::string_view name;  ///< general.architecture
  std::string_view paper;
  RopeStyle rope = RopeStyle::halves;
  bool rope_factors = false;            ///< rope_freqs.weight may divide the frequencies
  bool qk_norm = false;                 ///< RMS norm on each query and key head
  bool output_projection_bias = false;  ///< attn_output.bias may be there
  bool feed_forward_bias = false;       ///< ffn_*.bias may be there
  bool head_bias = false;               ///< output.bias may be there
  bool post_norms = false;              ///< norms after attention and feed-forward too
  Activation activation = Activation::silu;
  bool scale_embedding = false;  ///< by sqrt(n_embd)
  bool soft_cap_logits = false;  ///< final_logit_softcapping applies where present
  WindowPattern windows = {};
  ExpertDescription experts = {};
};

std::span<const Architecture> llama_architectures();
std::span<const Architecture> qwen_architectures();
std::span<const Architecture> gemma_architectures();

/// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace quipu
