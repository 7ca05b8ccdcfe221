#include "graph/ops/experts.h"

namespace quipu {

const Operation kRoute{"route"};
const Operation kExperts{"experts"};

namespace {

/// Whether a vector weight has an element for each row of each expert.
void require_bias(Value bias, std::size_t n_experts, std::size_t n_rows) {
  if (!bias.valid()) return;
  const Shape shape{n_experts, n_rows};
  require_shape(bias.shape() == shape, kExperts, "must be " + to_string(shape), bias);
}

}  // namespace

Value route(Value router_logits, const RouteParams& params, Value selection_bias, Value weight_scale) {
  const Shape& logits = router_logits.shape();
  require_shape(logits.rank() == 2 && params.n_used >= 1 && params.n_used <= logits.last(), kRoute,
                "cannot choose " + std::to_string(params.n_used) + " experts", router_logits);
  const bool groups_fit = params.n_groups >= 1 && params.n_groups <= kMaxExpertGroups &&
                          logits.last() % params.n_groups == 0 && params.n_groups_used >= 1 &&
                          params.n_groups_used <= params.n_groups &&
                          params.n_used <= logits.last() / params.n_groups * params.n_groups_used;
  require_shape(groups_fit, kRoute,
                "cannot choose " + std::to_string(params.n_used) + " experts from " +
                    std::to_string(params.n_groups_used) + " of " + std::to_string(params.n_groups) +
                    " groups",
                router_logits);
  for (const Value& by_expert : {selection_bias, weight_scale}) {
    if (!by_expert.valid()) continue;
    require_shape(by_expert.shape() == Shape{logits.last()}, kRoute,
                  "must have an element for each expert of " + to_string(logits), by_expert);
  }
  const Shape shape{logits.rows(), params.n_used, 2};
  return router_logits.graph().add_node(kRoute, params, {router_logits, selection_bias, weight_scale},
                                        ElementType::f32, shape);
}

Value experts(Value x, Value routes, const ExpertWeights& weights, const ExpertsParams& params) {
  require_shape(x.shape().rank() == 2, kExperts, "the input must be [rows, width]", x);
  require_shape(routes.shape().rank() == 3 && routes.shape().rows() == x.shape().rows(), kExperts,
                "routes must be [rows, slots, 2]", routes);
  const Shape& up = weights.up.shape();
  require_shape(up.rank() == 3 && up.last() == x.shape().last(), kExperts,
                "needs [n_experts, n_rows, width], width of " + to_string(x.shape()), weights.up);
  if (weights.gate.valid()) {
    require_shape(weights.gate.shape() == up, kExperts, "gate and up must be alike; up is " + to_string(up),
                  weights.gate);
  }
  const std::size_t hidden = weights.down.shape().last();
  const Shape down{up.dim(0), x.shape().last(), hidden};
  require_shape(weights.down.shape() == down, kExperts, "down must be " + to_string(down), weights.down);
  const bool gate_in_up = !weights.gate.valid() && up.dim(1) == 2 * hidden;
  require_shape(up.dim(1) == hidden || gate_in_up, kExperts, "down must take what up gives, " + to_string(up),
                weights.down);
  require_shape(!gate_in_up || !weights.up_bias.valid(), kExperts, "a gate that is in up has no bias",
                weights.up);
  require_bias(weights.gate_bias, up.dim(0), hidden);
  require_bias(weights.up_bias, up.dim(0), hidden);
  require_bias(weights.down_bias, up.dim(0), x.shape().last());
  return x.graph().add_node(kExperts, params,
                            {x, routes, weights.gate, weights.up, weights.down, weights.gate_bias,
                             weights.up_bias, weights.down_bias},
                            ElementType::f32, x.shape());
}

}  // namespace quipu
