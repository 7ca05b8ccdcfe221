// The Qwen family.
#include "base/error.h"
#include "model/arch/architecture.h"

namespace quipu {

namespace {

/// Qwen's width counts gate and up together.
void halve_feed_forward(const gguf::Metadata& metadata, Hparams& hparams) {
  for (LayerHparams& layer : hparams.layers) {
    if (layer.n_ff % 2 != 0)
      fail(ErrorCode::bad_file, "{}: key 'qwen.feed_forward_length' is {}, which is odd", metadata.origin(),
           layer.n_ff);
    layer.n_ff /= 2;
  }
}

}  // namespace

std::span<const Architecture> qwen_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "qwen",
          .paper = "Bai et al. 2023, arXiv:2309.16609",
          .attention = {.square_qkv = true},
          .adjust = halve_feed_forward,
      },
      {
          .name = "qwen2",
          .paper = "Yang et al. 2024, arXiv:2407.10671",
          .head = {.bias = true},
      },
      {
          .name = "dream",
          .paper = "Ye et al. 2025, arXiv:2508.15487",
          .never_causal = true,
      },
      {
          .name = "qwen2vl",
          .paper = "Wang et al. 2024, arXiv:2409.12191",
          .attention = {.rope_sections = RopeSections::blocks},
      },
      {
          .name = "qwen3vl",
          .paper = "Bai et al. 2025, arXiv:2511.21631",
          .attention = {.rope_sections = RopeSections::interleaved, .qk_norm = QkNorm::heads},
          .head = {.rank = {.available = true, .softmax = true, .pooling = Pooling::last}},
      },
      {
          .name = "qwen3",
          .paper = "Yang et al. 2025, arXiv:2505.09388",
          .attention = {.qk_norm = QkNorm::heads},
          .head = {.rank = {.available = true, .softmax = true, .pooling = Pooling::last}},
      },
      {
          .name = "qwen3moe",
          .paper = "Yang et al. 2025, arXiv:2505.09388",
          .attention = {.qk_norm = QkNorm::heads},
          .experts = {.available = true, .own_width = true},
      },
      {
          .name = "qwen3vlmoe",
          .paper = "Bai et al. 2025, arXiv:2511.21631",
          .attention = {.rope_sections = RopeSections::interleaved, .qk_norm = QkNorm::heads},
          .experts = {.available = true, .own_width = true},
      },
      {
          .name = "qwen2moe",
          .paper = "Yang et al. 2024, arXiv:2407.10671",
          .experts = {.available = true,
                      .normalize_weights = false,
                      .own_width = true,
                      .shared = SharedExperts::sized_or_dense,
                      .shared_gate = true},
      },
  };
  return kTable;
}

}  // namespace quipu
