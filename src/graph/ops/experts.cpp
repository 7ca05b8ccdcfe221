#include "graph/ops/experts.h"

namespace quipu {

const Operation kRoute{"route"};
const Operation kExperts{"experts"};

Value route(Value router_logits, const RouteParams& params) {
  require_shape(router_logits.shape().rank() == 2 && params.n_used >= 1 &&
                    params.n_used <= router_logits.shape().last(),
                kRoute, "cannot choose " + std::to_string(params.n_used) + " experts", router_logits);
  const Shape shape{router_logits.shape().rows(), params.n_used, 2};
  return router_logits.graph().add_node(kRoute, params, {router_logits}, ElementType::f32, shape);
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
