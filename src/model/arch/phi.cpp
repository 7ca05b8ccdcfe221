// The Phi family.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> phi_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "phi2",
          .paper = "Javaheripi et al. 2023, Phi-2: The surprising power of small language models",
          .norm = {.kind = NormKind::layer, .bias = Presence::required, .feed_forward = Presence::absent},
          .attention = {.output_bias = Presence::required},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::required,
                           .down_bias = Presence::required},
          .head = {.bias = true},
      },
      // attention.sliding_window is in some files and has no effect: they were made for full attention.
      {
          .name = "phi3",
          .paper = "Abdin et al. 2024, arXiv:2404.14219 and arXiv:2412.08905",
          .attention = {.rope_factors = true},
          .feed_forward = {.gate = Presence::absent, .gate_in_up = Presence::required},
      },
  };
  return kTable;
}

}  // namespace quipu
