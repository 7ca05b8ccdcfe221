// Mixture of experts: choosing experts for each token, and the feed-forward layers of those chosen.
// Shazeer et al. 2017, "Outrageously Large Neural Networks".
#pragma once

#include "graph/graph.h"
#include "graph/ops/elementwise.h"

namespace quipu {

enum class ExpertGating : std::uint8_t { softmax, sigmoid };

struct RouteParams {
  std::size_t n_used;   ///< experts per token
  ExpertGating gating;  ///< over all experts, before the choice
  bool normalize;       ///< divide the chosen weights by their sum
  float scale = 1;      ///< on the chosen weights
};

/// Chooses the n_used experts of largest gate; equal gates: the lower number first. router_logits: [rows,
/// n_experts]
/// -> [rows, n_used, 2]: for each slot the expert's number (as a float) and its weight, in descending order
/// of gate.
extern const Operation kRoute;
Value route(Value router_logits, const RouteParams& params);

/// Weights of all experts, [n_experts, n_rows, n_cols] each. `gate` may be absent.
struct ExpertWeights {
  Value gate, up, down;
};

/// sum over slots of weight * down(activation(gate(x)) * up(x)), slots in order. x: [rows, width]; routes
/// from route()
/// -> [rows, width]
extern const Operation kExperts;
Value experts(Value x, Value routes, const ExpertWeights& weights, Activation activation);

}  // namespace quipu
