// The Qwen family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> qwen_architectures() {
  static constexpr Architecture kTable[] = {
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
  };
  return kTable;
}

}  // namespace quipu
