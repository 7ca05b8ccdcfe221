// Hyper-parameters: what an architecture reads from a file's metadata, checked and with defaults filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/experts.h"
#include "graph/ops/rope.h"
#include "quipu/types.h"

namespace quipu {

struct Architecture;

enum class RopeScaling : std::uint8_t { none, linear, yarn, long_rope };

/// Rotation as trained. Su et al. 2021; YaRN: Peng et al. 2023.
struct RopeHparams {
  std::uint32_t n_rot = 0;  ///< elements of a head that turn
  RopeStyle style = RopeStyle::halves;
  /// Of positions with several dimensions: the one that turns each pair. Empty: there is only one.
  std::vector<std::uint8_t> pair_dimensions{};
  float base = 10000;
  float factor = 1;  ///< how many times longer than trained positions may be: 1 / freq_scale
  RopeScaling scaling = RopeScaling::linear;
  float attention_factor = 1;  ///< on the magnitude
  std::uint32_t original_context = 0;
  float yarn_extrapolation = -1;  ///< negative: 1 for YaRN, else 0
  float yarn_attention_factor = 1;
  float yarn_beta_fast = 32;
  float yarn_beta_slow = 1;
  float yarn_log_multiplier = 0;       ///< of the magnitude's divisor; 0: it is not divided
  float yarn_dividend_multiplier = 1;  ///< of what is divided
};

/// Rotation parameters that a context sets; an unset one is the model's.
struct RopeOverrides {
  std::optional<RopeScaling> scaling{};
  std::optional<float> base{};
  std::optional<float> frequency_scale{};
  std::optional<std::uint32_t> original_context{};
  std::optional<float> yarn_extrapolation{};
  std::optional<float> yarn_attention_factor{};
  std::optional<float> yarn_beta_fast{};
  std::optional<float> yarn_beta_slow{};
  /// Of one sequence: longer than the original context, it takes LongRoPE's long factors. 0: it is not.
  std::uint32_t context_length = 0;

  bool operator==(const RopeOverrides&) const = default;
};

struct LayerHparams {
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t n_ff = 0;                   ///< width of the dense feed-forward layer
  std::uint32_t k_dim = 0;                  ///< of a key head as the cache holds it
  std::uint32_t v_dim = 0;                  ///< of a value head, likewise
  std::optional<std::uint32_t> cache_of{};  ///< reads the cells of this layer and keeps none
  std::uint32_t window = 0;                 ///< sliding window in positions; 0: sees everything
  bool rotates = true;
  bool local_rope = false;   ///< rotates with the frequencies of windowed layers
  bool is_idle = false;      ///< no feed-forward layer: only its activation
  bool has_experts = false;  ///< where the architecture's experts are `where_found`: may have
  GateLimits limits{};       ///< of gated feed-forward layers, but for experts
  GateLimits expert_limits{};
  XieluParams xielu{};

  bool attends() const { return n_heads != 0 && n_kv_heads != 0; }
  bool keeps_cells() const { return attends() && !cache_of; }
};

struct ExpertHparams {
  std::uint32_t n_experts = 0;  ///< 0: no experts
  std::uint32_t n_used = 0;
  std::uint32_t n_ff = 0;
  std::uint32_t n_ff_shared = 0;  ///< width of the shared experts together; 0: none
  ExpertGating gating = ExpertGating::softmax;
  bool normalize_weights = true;
  float weight_scale = 1;
  std::uint32_t n_chunk_ff = 0;  ///< width of the experts of the second set
  std::uint32_t chunk_size = 1;  ///< experts that share one of the second set
  float chunk_scale = 0;         ///< on what the second set gives
  std::uint32_t n_groups = 1;
  std::uint32_t n_groups_used = 1;
};

/// Attention through a compressed vector. A head has a part without positions and a rotated one.
struct LatentHparams {
  std::uint32_t q_rank = 0;   ///< 0: queries are not compressed
  std::uint32_t kv_rank = 0;  ///< 0: the model has no latent attention
  std::uint32_t k_dim = 0;    ///< of a head, rotated part included
  std::uint32_t v_dim = 0;
  /// The cache holds the compressed vectors, which the heads' matrices are moved away from (attn_k_b,
  /// attn_v_b); else it holds the heads' keys and values (attn_kv_b, older files).
  bool absorbed = false;
};

struct Hparams {
  const Architecture* architecture = nullptr;
  std::uint32_t n_vocab = 0;
  std::uint32_t n_ctx_train = 0;  ///< 0: the file does not say
  std::uint32_t n_embd = 0;
  std::uint32_t k_dim = 0;  ///< of a key head as the cache holds it, where the layer's is no other
  std::uint32_t v_dim = 0;  ///< of a value head, likewise
  std::uint32_t layer_embedding_width = 0;  ///< 0: layers have no embeddings of their own
  bool layer_norms = false;                 ///< else RMS norms
  float norm_eps = 0;
  float token_scale = 1;     ///< on the embeddings of tokens, not on those given
  float input_scale = 1;     ///< on all embeddings
  float residual_scale = 1;  ///< on what blocks add
  float logit_scale = 1;
  float attention_scale = 1;
  float score_soft_cap = 0;     ///< 0: none
  bool plain_qk_norms = true;   ///< where the architecture has such norms
  float value_scale = 1;        ///< on what attention adds
  float temperature_scale = 0;  ///< as TemperatureDescription
  std::uint32_t temperature_length = 0;
  float final_soft_cap = 0;  ///< 0: none
  float clamp_qkv = 0;       ///< 0: none
  float max_alibi_bias = 0;  ///< 0: none
  Activation activation = Activation::silu;
  bool causal = true;
  bool parallel_blocks = false;  ///< each layer's blocks all see its input
  std::uint32_t n_token_types = 0;
  std::uint32_t n_position_buckets = 0;   ///< of relative positions
  std::uint32_t n_classes = 1;            ///< scores that ranking gives
  std::uint32_t dense_2_width = 0;        ///< rows of dense_2; 0: there is none
  std::uint32_t dense_3_width = 0;        ///< columns of dense_3, likewise
  std::uint32_t n_next_token_layers = 0;  ///< layers of the file that come after `layers` and are not used
  std::optional<std::uint32_t> decoder_start_token;
  std::optional<Pooling> pooling;  ///< unset: the file does not say
  RopeHparams rope;
  RopeHparams local_rope;  ///< for layers with local_rope
  LatentHparams latent;
  ExpertHparams experts;
  /// The decoder's, or the only ones.
  std::vector<LayerHparams> layers;
  /// Of an encoder with a decoder.
  std::vector<LayerHparams> encoder_layers;
  std::uint32_t n_loops = 1;        ///< times that `layers` run, each time with cells of their own
  bool norm_between_loops = false;  ///< the last norm also stands between the times

  std::size_t n_layers() const { return layers.size(); }
  /// The layer of each attention to past tokens, in the order of the computation.
  std::vector<std::size_t> attending_layers() const;
};

/// Reads and checks. Error(bad_file) names the key that is missing or wrong, Error(unsupported) the
/// architecture, rotation scaling or gating that Quipu does not have. `n_vocab`: the vocabulary's size.
/// `keys_read`, if given, gets the keys that were looked for, without the architecture's prefix.
Hparams read_hparams(const gguf::Metadata& metadata, std::size_t n_vocab,
                     std::set<std::string>* keys_read = nullptr);

}  // namespace quipu
