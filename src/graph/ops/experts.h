// Mixture of experts: choosing experts for each token, and the feed-forward layers of those chosen.
// Shazeer et al. 2017, "Outrageously Large Neural Networks".
#pragma once

#include "graph/graph.h"
#include "graph/ops/elementwise.h"

namespace quipu {

inline constexpr std::size_t kMaxExpertGroups = 256;

/// How router logits become gates.
enum class ExpertGating : std::uint8_t {
  softmax,         ///< over all experts, before the choice
  sigmoid,         ///< of each
  chosen_softmax,  ///< experts are chosen by logit, the softmax is over those chosen
};

struct RouteParams {
  std::size_t n_used;  ///< experts per token
  ExpertGating gating;
  bool normalize;   ///< divide the chosen weights by their sum (taken as 2^-14 where it is less)
  float scale = 1;  ///< on the chosen weights
  /// Experts stand in so many groups of equal size, and only the best groups take part: those with the
  /// largest sum of their two best scores. DeepSeek-AI 2024, arXiv:2412.19437.
  std::size_t n_groups = 1;
  std::size_t n_groups_used = 1;
};

/// Chooses the n_used experts of largest score; equal scores: the lower number first. The score is the gate,
/// plus the expert's element of `selection_bias` (a vector weight [n_experts]) if that is valid; the weight
/// is the gate alone. router_logits: [rows, n_experts]
/// -> [rows, n_used, 2]: for each slot the expert's number (as a float) and its weight, in descending order
/// of score.
extern const Operation kRoute;
Value route(Value router_logits, const RouteParams& params, Value selection_bias = {});

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
