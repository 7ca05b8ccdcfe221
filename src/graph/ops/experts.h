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
  /// Above 1: what is chosen are not experts but chunks of so many neighbours; a choice is its best expert's
  /// number divided by this, and the same chunk may be chosen more than once. Wu et al. 2025,
  /// arXiv:2508.07785
  std::size_t chunk_size = 1;
};

/// Chooses the n_used experts of largest score; equal scores: the lower number first. The score is the gate,
/// plus the expert's element of `selection_bias` (a vector weight [n_experts]) if that is valid; the weight
/// is the gate alone, times the expert's element of `weight_scale` (likewise) if that is valid.
/// router_logits: [rows, n_experts]
/// -> [rows, n_used, 2]: for each slot the expert's number (as a float) and its weight, in descending order
/// of score.
extern const Operation kRoute;
Value route(Value router_logits, const RouteParams& params, Value selection_bias = {},
            Value weight_scale = {});

/// Weights of all experts, [n_experts, n_rows, n_cols] each. `gate` may be absent, or be the upper half of
/// the rows of `up`. Biases are vector weights [n_experts, n_rows], each of which may be absent; there are
/// none beside a gate that is in `up`.
struct ExpertWeights {
  Value gate, up, down;
  Value gate_bias{}, up_bias{}, down_bias{};
};

struct ExpertsParams {
  Activation activation;
  GateLimits limits{};       ///< where there is a gate
  bool weigh_input = false;  ///< the weight multiplies x instead of the result
};

/// sum over slots of weight * down(activation(gate(x)) * up(x)), slots in order. x: [rows, width]; routes
/// from route()
/// -> [rows, width]
extern const Operation kExperts;
Value experts(Value x, Value routes, const ExpertWeights& weights, const ExpertsParams& params);

}  // namespace quipu
