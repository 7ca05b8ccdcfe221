// The weights of an architecture, by description: one list that the loader, the checker and the graph
// builders share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/storage.h"
#include "model/hparams.h"

namespace quipu {

/// One layer's weights; null where the model has none.
struct LayerWeights {
  const Weight* attn_norm = nullptr;
  const Weight* attn_q = nullptr;
  const Weight* attn_q_bias = nullptr;
  const Weight* attn_k = nullptr;
  const Weight* attn_k_bias = nullptr;
  const Weight* attn_v = nullptr;
  const Weight* attn_v_bias = nullptr;
  const Weight* attn_q_norm = nullptr;
  const Weight* attn_k_norm = nullptr;
  const Weight* attn_output = nullptr;
  const Weight* attn_output_bias = nullptr;
  const Weight* attn_post_norm = nullptr;
  const Weight* ffn_norm = nullptr;
  const Weight* ffn_gate = nullptr;
  const Weight* ffn_gate_bias = nullptr;
  const Weight* ffn_up = nullptr;
  const Weight* ffn_up_bias = nullptr;
  const Weight* ffn_down = nullptr;
  const Weight* ffn_down_bias = nullptr;
  const Weight* ffn_router = nullptr;
  const Weight* ffn_gate_experts = nullptr;
  const Weight* ffn_up_experts = nullptr;
  const Weight* ffn_down_experts = nullptr;
  const Weight* ffn_post_norm = nullptr;
};

struct ModelWeights {
  const Weight* token_embd = nullptr;
  const Weight* output_norm = nullptr;
  const Weight* output = nullptr;  ///< null: the token embeddings serve
  const Weight* output_bias = nullptr;
  const Weight* rope_factors = nullptr;
  std::vector<LayerWeights> layers;
};

/// A weight that a model may have, and where it goes.
struct WeightSpec {
  std::string name;
  WeightRole role;
  Shape shape;  ///< as Weight::shape
  bool required;
  const Weight** slot;
};

/// Every weight that a model of these hyper-parameters has or may have; the slots point into `weights`, whose
/// layers are made here.
std::vector<WeightSpec> list_weights(const Hparams& hparams, ModelWeights& weights);

}  // namespace quipu
