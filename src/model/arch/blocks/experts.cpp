// Mixtures of experts. Shazeer et al. 2017, arXiv:1701.06538; shared experts: Dai et al. 2024,
// arXiv:2401.06066
#include "graph/ops/experts.h"

#include <algorithm>
#include <numbers>

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "model/arch/blocks/feed_forward.h"

namespace quipu {
namespace {

RouteParams route_params(const GraphScope& model) {
  const ExpertHparams& hparams = model.hparams.experts;
  const bool all = model.options.all_experts;
  return {.n_used = all ? hparams.n_experts : hparams.n_used,
          .gating = hparams.gating,
          .normalize = hparams.normalize_weights,
          .scale = hparams.weight_scale,
          .n_groups = hparams.n_groups,
          .n_groups_used = all ? hparams.n_groups : hparams.n_groups_used};
}

Value run_experts(LayerScope& layer, Value x, Value routes, const ExpertSetWeights& w) {
  GraphScope& model = layer.model;
  const bool gate_in_up = w.gate_up != nullptr;
  const ExpertWeights weights{.gate = gate_in_up ? Value() : model.weight(w.gate.matrix),
                              .up = model.weight(gate_in_up ? w.gate_up : w.up.matrix),
                              .down = model.weight(w.down.matrix),
                              .gate_bias = model.weight(w.gate.bias),
                              .up_bias = model.weight(w.up.bias),
                              .down_bias = model.weight(w.down.bias)};
  return experts(x, routes, weights,
                 {.activation = model.hparams.activation,
                  .limits = layer.hparams.expert_limits,
                  .weigh_input = model.arch.experts.weigh_input});
}

/// A second set of smaller experts, each of which serves several of the first, sees what the first set gives.
/// Its weights are the probabilities of the first experts with the numbers of those chosen, as in published
/// code that files were made for, where the paper sums those of an expert's own.
Value chunk_experts(LayerScope& layer, Value given, Value logits, const ExpertSetWeights& w) {
  const ExpertHparams& hparams = layer.model.hparams.experts;
  RouteParams params = route_params(layer.model);
  params.n_used = std::min<std::size_t>(params.n_used, hparams.n_experts / hparams.chunk_size);
  params.chunk_size = hparams.chunk_size;
  const Value routes = layer.label(route(logits, params), "ffn_adj_moe_routes");
  const Value refined = layer.label(run_experts(layer, given, routes, w), "ffn_adj_moe_out");
  return layer.label(add(given, scale(refined, hparams.chunk_scale)), "ffn_final_moe_out");
}

Value shared_experts(LayerScope& layer, Value x, const ExpertLayerWeights& w) {
  const Value shared = layer.label(dense_feed_forward(layer, x, w.shared), "ffn_shexp");
  if (w.shared_gate.matrix == nullptr) return shared;
  const Value gate = layer.linear(x, w.shared_gate, "ffn_shexp_gate_inp");
  return layer.label(multiply(shared, activate(Activation::sigmoid, gate)), "ffn_shexp_out");
}

}  // namespace

Value router_logits(LayerScope& layer, Value x) {
  return layer.linear(x, layer.weights.experts.router, "ffn_moe_logits");
}

Value expert_feed_forward(LayerScope& layer, Value x, Value logits) {
  GraphScope& model = layer.model;
  const ExpertLayerWeights& w = layer.weights.experts;
  if (!logits.valid()) logits = router_logits(layer, x);
  const Value routes =
      layer.label(route(logits, route_params(model), model.weight(w.selection_bias)), "ffn_moe_routes");
  Value chosen = layer.label(run_experts(layer, x, routes, w.chosen), "ffn_moe_out");
  if (model.arch.experts.chunk_experts) chosen = chunk_experts(layer, chosen, logits, w.chunks);
  if (w.shared.up.matrix == nullptr) return chosen;
  const Value sum = add(chosen, shared_experts(layer, x, w));
  if (model.arch.experts.shared == SharedExperts::dense)
    return layer.label(scale(sum, std::numbers::sqrt2_v<float> / 2), "ffn_out");
  return layer.label(model.arch.experts.mean_of_shared ? scale(sum, 0.5f) : sum, "ffn_out");
}

}  // namespace quipu
