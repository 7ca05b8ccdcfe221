// MPT.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> mpt_architectures() {
  static constexpr std::string_view kUnsupported[] = {"ffn.act.scales"};  // AWQ
  static constexpr Architecture kTable[] = {
      {
          .name = "mpt",
          .paper = "MosaicML 2023, https://www.databricks.com/blog/mpt-7b; ALiBi: Press et al. 2021, "
                   "arXiv:2108.12409",
          .norm = {.kind = NormKind::layer, .bias = Presence::optional},
          .embedding = {.positions = Presence::optional},
          .attention = {.positions = PositionKind::alibi,
                        .qk_norm = QkNorm::whole,
                        .qk_norm_presence = Presence::optional,
                        .output_bias = Presence::optional,
                        .clamp = true},
          .feed_forward = {.gate = Presence::absent,
                           .ungated_activation = Activation::gelu_tanh,
                           .up_bias = Presence::optional,
                           .down_bias = Presence::optional},
          .unsupported_tensors = kUnsupported,
      },
  };
  return kTable;
}

}  // namespace quipu
