// The weights of an architecture, by description: one list that the loader, the checker and the graph
// builders share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/storage.h"
#include "model/hparams.h"

namespace quipu {

// Null where the model has none.
struct LinearWeights {
  const Weight* matrix = nullptr;
  const Weight* scale = nullptr;  ///< one number that the matrix is multiplied by
  const Weight* bias = nullptr;
};
struct NormWeights {
  const Weight* factors = nullptr;
  const Weight* bias = nullptr;
  bool without_weights = false;  ///< there is a norm, but it has no tensors
  float eps = 0;                 ///< 0: the model's

  bool exists() const { return factors != nullptr || without_weights; }
};

struct AttentionWeights {
  LinearWeights qkv;  ///< rows of q, k and v in one matrix; else q, k and v
  LinearWeights q, k, v;
  NormWeights q_norm, k_norm;
  const Weight* relative_bias = nullptr;  ///< [buckets, heads]
  // Latent attention: q from q_a and q_b, or from q; keys and values from kv_a and either k_b and v_b, one
  // matrix for each head, or kv_b.
  LinearWeights q_a, q_b, kv_a, kv_b;
  NormWeights q_a_norm, kv_a_norm;
  const Weight* k_b = nullptr;
  const Weight* v_b = nullptr;
  NormWeights sub_norm;  ///< before output
  const Weight* sinks = nullptr;
  LinearWeights gate;  ///< of what was attended to, for each head or each element
  LinearWeights output;
};

struct FeedForwardWeights {
  LinearWeights gate, up, down;
  NormWeights sub_norm;  ///< before down
};

/// Matrices and biases of all experts of a layer.
struct ExpertSetWeights {
  LinearWeights gate, up, down;
  const Weight* gate_up = nullptr;  ///< the gates' rows, then those of up; else gate and up
};

struct ExpertLayerWeights {
  LinearWeights router;
  NormWeights norm;  ///< of experts beside a dense layer
  const Weight* selection_bias = nullptr;
  ExpertSetWeights chosen;
  ExpertSetWeights chunks;
  FeedForwardWeights shared;
  LinearWeights shared_gate;
};

/// Of the block that takes in a layer's own embedding.
struct LayerEmbeddingBlockWeights {
  LinearWeights gate, projection;
  NormWeights post_norm;
};

/// Of streams of embeddings: how a layer predicts and corrects them, and its detour.
struct StreamWeights {
  LinearWeights router, predict, correct, laurel_l, laurel_r;
  NormWeights router_norm, laurel_norm;
  const Weight* correct_scale = nullptr;
};

/// One layer's weights.
struct LayerWeights {
  NormWeights attn_norm, attn_post_norm, attn_sum_norm, attn_second_sum_norm;
  NormWeights attn_own_norm;  ///< before attention alone; attn_norm is the feed-forward layer's then
  AttentionWeights attention;
  NormWeights cross_norm;
  AttentionWeights cross;                ///< attention to an encoder's output
  const Weight* output_scale = nullptr;  ///< on the embeddings that the layer adds
  NormWeights ffn_norm, ffn_post_norm, ffn_sum_norm;
  FeedForwardWeights feed_forward;
  ExpertLayerWeights experts;
  LayerEmbeddingBlockWeights layer_embedding;
  StreamWeights streams;
  const Weight* scale = nullptr;  ///< on what the layer gives
};

/// From tokens and embeddings to each layer's own embeddings.
struct LayerEmbeddingWeights {
  const Weight* tokens = nullptr;
  LinearWeights projection;
  NormWeights norm;
};

struct ModelWeights {
  const Weight* token_embd = nullptr;
  const Weight* position_embd = nullptr;
  const Weight* token_types = nullptr;
  NormWeights token_norm;
  LayerEmbeddingWeights layer_embedding;
  const Weight* split_streams = nullptr;  ///< a matrix for each stream but the first
  const Weight* merge_streams = nullptr;
  NormWeights output_norm;
  LinearWeights output;  ///< no matrix: the token embeddings serve
  LinearWeights dense_2, dense_3;
  LinearWeights cls, cls_output;
  NormWeights cls_norm;
  const Weight* rope_factors = nullptr;
  const Weight* rope_factors_short = nullptr;
  const Weight* rope_factors_long = nullptr;
  std::vector<LayerWeights> layers;
  NormWeights encoder_norm;
  std::vector<LayerWeights> encoder_layers;
};

enum class WeightUse : std::uint8_t {
  required,
  optional,
  unused,       ///< known, not loaded
  unsupported,  ///< of a feature that Quipu does not have: a file that has it is refused
};

/// A weight that a model may have, and where it goes.
struct WeightSpec {
  std::string name;
  WeightRole role;
  Shape shape;  ///< as Weight::shape
  WeightUse use;
  const Weight** slot;                    ///< null for those that are not loaded
  std::optional<Shape> other_shape = {};  ///< may have this one instead
  std::string other_name = {};            ///< may be called this instead
  std::string needed_with = {};           ///< required where the file has the tensor of this name
  std::string replaced_by = {};           ///< not required where the file has the tensor of this name
};

/// Every weight that a model of these hyper-parameters has or may have; the slots point into `weights`, whose
/// layers are made here.
std::vector<WeightSpec> list_weights(const Hparams& hparams, ModelWeights& weights);

/// The numbers of a vector weight, row by row, for what graphs must know when they are built.
std::vector<float> read_numbers(const Weight& weight);

/// Whether a tensor belongs to a part that models may have and texts do not need: layers of next-token
/// prediction, or what sees images.
bool is_of_unused_part(const Hparams& hparams, std::string_view tensor);

}  // namespace quipu
