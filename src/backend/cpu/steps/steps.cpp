#include "backend/cpu/steps/steps.h"

#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"

namespace quipu::cpu {

void make_steps(const Node& node, Compiler& compiler) {
  using StepMaker = void (*)(const Node&, Compiler&);
  static const std::unordered_map<std::string_view, StepMaker> makers = {
      {kEmbed.name, make_embed},
      {kSelectRows.name, make_select_rows},
      {kLookUp.name, make_look_up},
      {kAddRow.name, make_add_row},
      {kRmsNorm.name, make_rms_norm},
      {kLayerNorm.name, make_layer_norm},
      {kMatmul.name, make_matmul},
      {kHeadMatmul.name, make_head_matmul},
      {kAdd.name, make_add},
      {kMultiply.name, make_multiply},
      {kScale.name, make_scale},
      {kMix.name, make_mix},
      {kMagnitude.name, make_magnitude},
      {kSparsify.name, make_sparsify},
      {kGated.name, make_gated},
      {kActivate.name, make_activate},
      {kSoftCap.name, make_soft_cap},
      {kXielu.name, make_xielu},
      {kClamp.name, make_clamp},
      {kSoftmax.name, make_softmax},
      {kView.name, make_view},
      {kSlice.name, make_slice},
      {kConcat.name, make_concat},
      {kRopeAngles.name, make_rope_angles},
      {kPositionTemperature.name, make_position_temperature},
      {kRope.name, make_rope},
      {kAttention.name, make_attention},
      {kStoreCells.name, make_store_cells},
      {kRoute.name, make_route},
      {kExperts.name, make_experts},
  };
  const auto maker = makers.find(node.operation->name);
  if (maker == makers.end()) {
    fail(ErrorCode::unsupported, "the CPU backend has no kernel for operation '{}'", node.operation->name);
  }
  maker->second(node, compiler);
}

}  // namespace quipu::cpu
