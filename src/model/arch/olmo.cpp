// OLMo and OpenELM.
#include "model/arch/architecture.h"

namespace quipu {

std::span<const Architecture> olmo_architectures() {
  static constexpr Architecture kTable[] = {
      {
          .name = "olmo",
          .paper = "Groeneveld et al. 2024, arXiv:2402.00838",
          .norm = {.kind = NormKind::layer, .weights = false},
          .attention = {.rope = RopeStyle::interleaved, .clamp = true},
      },
      // With windows: OLMo 3.
      {
          .name = "olmo2",
          .paper = "Team OLMo 2024, arXiv:2501.00656",
          .norm = {.placement = NormPlacement::after},
          .attention = {.qk_norm = QkNorm::whole,
                        .windows = {.period = 4, .required = false, .local_rope_base = 0}},
      },
      {
          .name = "openelm",
          .paper = "Mehta et al. 2024, arXiv:2404.14619",
          .attention = {.qk_norm = QkNorm::heads},
      },
      {
          .name = "olmoe",
          .paper = "Muennighoff et al. 2024, arXiv:2409.02060",
          .attention = {.qk_norm = QkNorm::whole},
          .experts = {.available = true, .normalize_weights = false},
      },
  };
  return kTable;
}

}  // namespace quipu
