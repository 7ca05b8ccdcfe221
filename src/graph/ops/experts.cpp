#include "graph/ops/experts.h"

namespace quipu {

const Operation kRoute{"route"};
const Operation kExperts{"experts"};

Value route(Value router_logits, const RouteParams& params, Value selection_bias) {
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
  if (selection_bias.valid()) {
    require_shape(selection_bias.shape() == Shape{logits.last()}, kRoute,
                  "must have an element for each expert of " + to_string(logits), selection_bias);
  }
  const Shape shape{logits.rows(), params.n_used, 2};
  return router_logits.graph().add_node(kRoute, params, {router_logits, selection_bias}, ElementType::f32,
                                        shape);
}

Value experts(Value x, Value routes, const ExpertWeights& weights, Activation activation) {
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
  const Shape down{up.dim(0), x.shape().last(), up.dim(1)};
  require_shape(weights.down.shape() == down, kExperts, "down must be " + to_string(down), weights.down);
  return x.graph().add_node(kExperts, ActivationParams{activation},
                            {x, routes, weights.gate, weights.up, weights.down}, ElementType::f32, x.shape());
}

}  // namespace quipu
