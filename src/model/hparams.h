// Hyper-parameters: what an architecture reads from a file's metadata, checked and with defaults filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "graph/ops/experts.h"

namespace quipu {

struct Architecture;

enum class RopeScaling : std::uint8_t { none, linear, yarn };

/// Rotation as trained. Su et al. 2021; YaRN: Peng et al. 2023.
struct RopeHparams {
  std::uint32_t n_rot = 0;  ///< elements of a head that turn
  float base = 10000;
  float factor = 1;  ///< how many times longer than trained positions may be: 1 / freq_scale
  RopeScaling scaling = RopeScaling::linear;
  float attention_factor = 1;  ///< on the magnitude
  std::uint32_t original_context = 0;
  float yarn_extrapolation = -1;  ///< negative: 1 for YaRN, else 0
  float yarn_attention_factor = 1;
  float yarn_beta_fast = 32;
  float yarn_beta_slow = 1;
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
};

struct LayerHparams {
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::uint32_t n_ff = 0;    ///< width of the dense feed-forward layer
  std::uint32_t window = 0;  ///< sliding window in positions; 0: sees everything
  bool local_rope = false;   ///< rotates with the frequencies of windowed layers
};

struct ExpertHparams {
  std::uint32_t n_experts = 0;  ///< 0: no experts
  std::uint32_t n_used = 0;
  std::uint32_t n_ff = 0;
  float weight_scale = 1;
};

struct Hparams {
  const Architecture* architecture = nullptr;
  std::uint32_t n_vocab = 0;
  std::uint32_t n_ctx_train = 0;  ///< 0: the file does not say
  std::uint32_t n_embd = 0;
  std::uint32_t k_dim = 0;  ///< of a key head
  std::uint32_t v_dim = 0;  ///< of a value head
  float rms_eps = 0;
  float embedding_scale = 1;
  float attention_scale = 1;
  float final_soft_cap = 0;  ///< 0: none
  bool causal = true;
  RopeHparams rope;
  RopeHparams local_rope;  ///< for layers with local_rope
  ExpertHparams experts;
  std::vector<LayerHparams> layers;

  std::size_t n_layers() const { return layers.size(); }
};

/// Reads and checks. Error(bad_file) names the key that is missing or wrong, Error(unsupported) the
/// architecture, rotation scaling or gating that Quipu does not have. `n_vocab`: the vocabulary's size.
Hparams read_hparams(const gguf::Metadata& metadata, std::size_t n_vocab);

}  // namespace quipu
