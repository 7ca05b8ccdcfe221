// Mixtures of experts. Shazeer et al. 2017, arXiv:1701.06538; shared experts: Dai et al. 2024,
// arXiv:2401.06066
#include "graph/ops/experts.h"

#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "model/arch/blocks/feed_forward.h"

namespace quipu {

Value expert_feed_forward(LayerScope& layer, Value x) {
  GraphScope& model = layer.model;
  const ExpertHparams& hparams = model.hparams.experts;
  const ExpertLayerWeights& w = layer.weights.experts;
  const Value logits = layer.label(matmul(x, model.weight(w.router)), "ffn_moe_logits");
  const RouteParams params{.n_used = hparams.n_used,
                           .gating = hparams.gating,
                           .normalize = hparams.normalize_weights,
                           .scale = hparams.weight_scale,
                           .n_groups = hparams.n_groups,
                           .n_groups_used = hparams.n_groups_used};
  const Value routes = layer.label(route(logits, params, model.weight(w.selection_bias)), "ffn_moe_routes");
  const ExpertWeights weights{
      .gate = model.weight(w.gate), .up = model.weight(w.up), .down = model.weight(w.down)};
  const Value chosen = layer.label(experts(x, routes, weights, model.hparams.activation), "ffn_moe_out");
  if (w.shared.up.matrix == nullptr) return chosen;
  const Value shared = layer.label(dense_feed_forward(layer, x, w.shared), "ffn_shexp");
  return layer.label(add(chosen, shared), "ffn_out");
}

}  // namespace quipu
