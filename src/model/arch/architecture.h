// Architectures as data: a description says what a model is made of; the block builders (blocks/), the list
// of weights (weights.cpp) and the hyper-parameters (hparams.cpp) are driven by it. A plain new architecture
// is one more table entry. What a description does not mention is as in Llama: RMS norms before the blocks,
// rotated heads, a gated feed-forward layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "graph/ops/elementwise.h"
#include "graph/ops/experts.h"
#include "graph/ops/rope.h"
#include "model/hparams.h"

namespace quipu {

/// Whether models of the architecture have a part.
enum class Presence : std::uint8_t { absent, optional, required };

enum class Structure : std::uint8_t {
  decoder,          ///< keeps past tokens in a memory
  encoder,          ///< sees all of a text at once, keeps nothing
  encoder_decoder,  ///< an encoder, and a decoder with cross-attention to it
};

enum class NormKind : std::uint8_t {
  rms,
  layer,
  rms_or_layer,  ///< as the file says by which epsilon it has; RMS where both
};

enum class NormPlacement : std::uint8_t {
  before,     ///< x + block(norm(x))
  around,     ///< x + norm(block(norm(x)))
  after,      ///< x + norm(block(x))
  after_sum,  ///< norm(x + block(x))
};

/// Norms, and the sums that blocks are added to.
struct NormDescription {
  NormKind kind = NormKind::rms;
  bool weights = true;  ///< else norms have no tensors
  Presence bias = Presence::absent;
  NormPlacement placement = NormPlacement::before;
  bool first_attention = true;             ///< layer 0 has a norm before attention
  Presence second_sum = Presence::absent;  ///< attn_norm_2: norm(x + norm(x + attention(x)))
  /// attn_norm_2 comes before attention, attn_norm only before the feed-forward layer.
  Presence attention_own = Presence::absent;
  /// ffn_norm. A layer without it feeds attention and the feed-forward layer the same normed input, and adds
  /// both to its own: x + attention(norm(x)) + feed_forward(norm(x)).
  Presence feed_forward = Presence::required;
  bool parallel_key = false;  ///< use_parallel_residual: x + attention(attn_norm(x)) + ffn(ffn_norm(x))
  bool sub = false;    ///< attn_sub_norm before attention's output matrix, ffn_sub_norm before ffn_down
  bool final = true;   ///< after the last layer
  float post_eps = 0;  ///< of the norms after blocks; 0: as the others
};

enum class AttentionKind : std::uint8_t {
  heads,   ///< queries, keys and values of their own; keys and values may be shared by groups of heads
  latent,  ///< keys and values from one compressed vector. DeepSeek-AI 2024, arXiv:2405.04434
};

/// How attention knows of positions.
enum class PositionKind : std::uint8_t {
  rotation,
  alibi,     ///< a bias that falls with distance; not where the model's largest bias is 0
  relative,  ///< a learned bias for each bucket of distances
  none,
};

enum class QkNorm : std::uint8_t {
  none,
  heads,  ///< on each head
  whole,  ///< on all heads of a token together
  each,   ///< on each head, with factors of its own
  plain,  ///< on each head, without weights, in layers that rotate
  gains,  ///< on each head, without weights but for a factor of each query head
};

/// What scores are multiplied by, where no key says otherwise.
enum class ScoreScale : std::uint8_t {
  inverse_root,  ///< 1 / sqrt(head size)
  inverse,       ///< 1 / head size
  none,
};

/// What positions of several dimensions (time, height, width, and one more) turn.
/// rope.dimension_sections: how many pairs are whose. Texts stand at the same time, height and width, and at
/// 0 in the fourth dimension.
enum class RopeSections : std::uint8_t {
  none,
  blocks,       ///< pairs in a row. Wang et al. 2024, arXiv:2409.12191
  interleaved,  ///< pairs in turn, as long as sections last. Bai et al. 2025, arXiv:2511.21631
};

/// Which layers have a sliding window. The file's keys override the defaults.
struct WindowPattern {
  std::uint32_t period = 0;         ///< 0: the architecture has no windows
  bool first_sees_all = false;      ///< of each period the first layer sees everything; else the last one
  bool symmetric = false;           ///< windows reach both ways, half of their size each
  bool required = true;             ///< attention.sliding_window must be there
  bool listed = false;              ///< there is no period: attention.sliding_window_pattern lists the layers
  bool own_head_sizes = false;      ///< attention.key_length_swa, attention.value_length_swa
  std::uint32_t default_size = 0;   ///< where attention.sliding_window is absent; 0: then there are none
  std::uint32_t size = 0;           ///< of all windows, whatever attention.sliding_window says; 0: as it says
  bool chunked = false;             ///< windows do not slide: positions are cut into chunks of their size
  float local_rope_base = 10000;    ///< base of the windowed layers; 0: the model's
  bool full_half_rotation = false;  ///< layers without windows rotate half of rope.dimension_count
  bool local_rope_scaled = false;   ///< windowed layers are scaled as the others are; else not at all
};

/// Which layers do not rotate.
struct UnrotatedLayers {
  bool without_window = false;     ///< all that have no window ...
  bool but_leading_dense = false;  ///< ... and come after leading_dense_block_count
  /// One of each `period` layers: the first one, or the last.
  std::uint32_t period = 0;
  bool first = false;
  bool with_windows = false;  ///< periods count only in models that have windows
  bool key = false;           ///< all, where rope.scaling.finetuned is false
  bool pattern_key = false;   ///< attention.rope_pattern lists those that do, if it is there
};

/// Scores grow with the query's position: they are multiplied by log(floor((position + offset) / length) + 1)
/// * scale + 1. Meta AI 2025, Llama 4.
struct TemperatureDescription {
  bool keys = false;       ///< attention.temperature_scale, attention.temperature_length
  bool unrotated = false;  ///< only where a layer does not rotate, and the model has windows
  float scale = 0;
  std::uint32_t length = 0;
  float offset = 0;
};

/// What rope.scaling.yarn_log_multiplier does. It also scales scores (yarn_score_scale) unless `none`.
enum class YarnLogMultiplier : std::uint8_t {
  none,
  divisor,  ///< divides the magnitude
  cancels,  ///< takes the magnitude's place, and divides it: what remains is 1
};

struct AttentionDescription {
  AttentionKind kind = AttentionKind::heads;
  PositionKind positions = PositionKind::rotation;
  RopeStyle rope = RopeStyle::halves;
  RopeSections rope_sections = RopeSections::none;
  bool optional_sections = false;  ///< files without sections are as `rope` says, those with them in halves
  /// rope_freqs.weight may divide the frequencies; or, by the length of the context,
  /// rope_factors_short.weight or rope_factors_long.weight (LongRoPE, Ding et al. 2024, arXiv:2402.13753).
  bool rope_factors = false;
  YarnLogMultiplier yarn_log_multiplier = YarnLogMultiplier::none;
  float max_alibi_bias = 0;  ///< where fixed; else attention.max_alibi_bias
  QkNorm qk_norm = QkNorm::none;
  Presence qk_norm_presence = Presence::required;
  Presence qkv_bias = Presence::optional;
  Presence output_bias = Presence::absent;
  bool compressed_queries = true;  ///< where attention is latent: attention.q_lora_rank counts
  bool square_qkv = false;         ///< attn_qkv has 3 * n_embd rows, whatever the heads take of them
  bool thirds_of_qkv = false;      ///< queries, keys and values each start at a third of them
  bool clamp = false;              ///< attention.clamp_kqv bounds queries, keys and values
  ScoreScale score_scale = ScoreScale::inverse_root;
  std::optional<float> soft_cap = {};  ///< of scores, where attn_logit_softcapping is absent; unset: never
  bool norm_after_rope = false;        ///< queries and keys are normed when they have been rotated
  Presence sinks = Presence::absent;   ///< attn_sinks: a logit for each head without a value
  Presence gate = Presence::absent;    ///< attn_gate: factors of what heads attended to
  Activation gate_activation = Activation::sigmoid;
  bool plain_v_norm = false;        ///< values are normed, without weights
  bool values_may_be_keys = false;  ///< where attn_v is absent they are the keys, before norm and rotation
  std::uint32_t n_own_caches =
      0;  ///< later layers read the cells of the last one before that has the same window
  bool shared_caches_key = false;  ///< attention.shared_kv_layers says how many do
  bool value_scale_key = false;    ///< attention.value_scale multiplies the block's output
  WindowPattern windows = {};
  UnrotatedLayers unrotated = {};
  TemperatureDescription temperature = {};
};

struct FeedForwardDescription {
  Presence gate = Presence::required;
  /// ffn_up has the gate's rows before its own.
  Presence gate_in_up = Presence::absent;
  Activation activation = Activation::silu;
  Activation ungated_activation = Activation::silu;  ///< where there is no gate
  bool activation_key = false;                       ///< hidden_activation names another
  bool xielu = false;                                ///< xIELU where there is no gate
  Presence up_bias = Presence::absent;               ///< and the gate's
  Presence down_bias = Presence::absent;
  bool unused_bias = false;  ///< files may hold biases that have no effect
  GateLimits limits = {};    ///< of the experts, and where limit_keys of all gated layers
  /// swiglu_clamp_exp bounds the experts of each layer, swiglu_clamp_shexp its other gated layers; 0: not.
  bool limit_keys = false;
};

/// Experts that see every token, together one feed-forward layer of this width.
enum class SharedExperts : std::uint8_t {
  none,
  counted,           ///< expert_shared_count times the experts' width
  one,               ///< the experts' width
  sized,             ///< expert_shared_feed_forward_length; 0 or absent: there are none
  sized_or_dense,    ///< expert_shared_feed_forward_length, or the dense layers' width
  sized_or_counted,  ///< the same, or counted; none where expert_shared_count is 0
  dense,             ///< the dense layers' width and names; their sum is multiplied by the root of 1/2
  counted_sizes,     ///< expert_shared_count times expert_shared_feed_forward_length, or the experts' width
};

struct ExpertDescription {
  bool available = false;
  ExpertGating gating = ExpertGating::softmax;
  bool gating_key = false;  ///< expert_gating_func overrides
  bool normalize_weights = true;
  bool normalize_key = false;  ///< expert_weights_norm overrides
  /// The experts' width is <arch>.expert_feed_forward_length; where false it is the dense one.
  bool own_width = false;
  bool leading_dense = false;  ///< leading_dense_block_count layers have no experts
  bool every_key = false;      ///< of each moe_every_n_layers layers only the second has experts
  bool step_key = false;       ///< of each interleave_moe_layer_step layers only the last has experts
  bool idle_experts =
      false;  ///< layers that the step leaves out have no feed-forward layer, but unused experts
  /// A layer has experts where the file holds its router; one that holds neither experts nor a dense layer
  /// has only the activation.
  bool where_found = false;
  SharedExperts shared = SharedExperts::none;
  bool shared_gate_in_up = false;  ///< ffn_up_shexp has the gate's rows before its own
  bool shared_gate = false;        ///< ffn_gate_inp_shexp: sigmoid of it scales the shared experts
  bool mean_of_shared = false;     ///< chosen and shared experts are averaged; else added
  bool biases = false;             ///< the router and all experts have biases
  bool weigh_input = false;        ///< weights multiply what experts see, not what they give
  bool route_layer_input = false;  ///< the router sees the layer's own input
  bool beside_dense = false;   ///< layers have both: experts of ffn_norm_exps(layer input) and a dense layer
  bool chunk_experts = false;  ///< a second, smaller set refines what the first gives. arXiv:2508.07785
  Presence selection_bias = Presence::absent;
};

/// Experts of a width of their own whose gating and normalization the file states; sigmoid and none where it
/// does not. `rest` says what else there is.
constexpr ExpertDescription stated_experts(ExpertDescription rest) {
  rest.available = rest.gating_key = rest.normalize_key = rest.own_width = true;
  rest.gating = ExpertGating::sigmoid;
  rest.normalize_weights = false;
  return rest;
}

/// Factors on what flows through the model.
struct ScaleDescription {
  bool keys = false;         ///< embedding_scale, residual_scale and attention.scale override
  float embedding = 1;       ///< on embeddings, also on those given
  float depth_residual = 0;  ///< what blocks add is multiplied by this / sqrt(n_layers); 0: by 1
  float width_logits = 0;    ///< logits are multiplied by this / n_embd; 0: by 1
  enum class LogitKey : std::uint8_t {
    none,
    multiplies,
    divides
  } logit_key = LogitKey::none;  ///< logit_scale
};

struct EmbeddingDescription {
  bool scaled = false;                      ///< those of tokens, by sqrt(n_embd)
  Presence positions = Presence::absent;    ///< position_embd: one row for each position
  Presence token_types = Presence::absent;  ///< token_types; row 0 counts for every token
  bool norm = false;                        ///< token_embd_norm
  bool plain_norm = false;                  ///< a norm without weights
  bool skip = false;                        ///< layers add it again, times layer_output_scale
  bool may_be_head = false;                 ///< files may have the head's matrix alone
  /// Width of an embedding for each layer; with the key, embedding_length_per_layer_input, 0 is none.
  std::uint32_t layer_width = 0;
  bool layer_width_key = false;
};

/// Copies of the stream of embeddings, see blocks/streams.h.
struct StreamDescription {
  std::uint32_t count = 1;
  std::uint32_t laurel_rank = 0;
  std::uint32_t n_sparse_layers = 0;  ///< whose gates keep what is above so many standard deviations
  float deviations = 0;
};

/// The layers between a pooled embedding and the scores of a ranking model.
struct RankDescription {
  bool available = false;
  bool dense = false;                ///< cls, [n_embd, n_embd] and an activation, before cls.output
  bool gelu = false;                 ///< its activation is GELU; else tanh
  bool norm = false;                 ///< cls.norm follows the activation
  bool softmax = false;              ///< over the scores
  bool cls_scores = false;           ///< cls itself gives the scores, there is no cls.output
  Pooling pooling = Pooling::first;  ///< what becomes the pooled embedding
};

struct HeadDescription {
  bool logits = true;
  bool bias = false;                   ///< output.bias may be there
  std::optional<float> soft_cap = {};  ///< where final_logit_softcapping is absent; unset: never
  bool dense = false;                  ///< dense_2, dense_3 may follow embeddings
  RankDescription rank = {};
};

/// Names of norms, without ".weight", where published files have their own; and complete names that files may
/// have instead.
struct TensorNames {
  std::string_view attn_post_norm = "post_attention_norm";
  std::string_view other_attn_post_norm = {};
  std::string_view ffn_norm = "ffn_norm";
  std::string_view ffn_post_norm = "post_ffw_norm";
  std::string_view other_ffn_post_norm = {};
  std::string_view output_norm = "output_norm";
};

struct Architecture {
  std::string_view name;  ///< general.architecture
  std::string_view paper;
  Structure structure = Structure::decoder;
  /// Tensors are named enc.* and dec.*, attn_output is attn_o. Raffel et al. 2019
  bool t5_names = false;
  bool never_causal = false;   ///< whatever attention.causal says
  bool matrix_scales = false;  ///< a matrix may have a factor, NAME.scale
  /// A layer without heads has no attention; one with heads but without key/value heads has only attention's
  /// output matrix; one without a feed-forward width does nothing. NVIDIA 2024, arXiv:2411.19146
  bool layers_lack_blocks = false;
  bool loops = false;  ///< num_loops: times that all layers run; norms in between unless skip_loop_final_norm
  bool next_token_layers = false;  ///< nextn_predict_layers of the file's layers are not used
  NormDescription norm = {};
  ScaleDescription scales = {};
  EmbeddingDescription embedding = {};
  StreamDescription streams = {};
  AttentionDescription attention = {};
  FeedForwardDescription feed_forward = {};
  ExpertDescription experts = {};
  HeadDescription head = {};
  TensorNames names = {};
  /// Features that models of the architecture may have and Quipu does not: keys refused unless 0, and tensors
  /// of layers, by the end of their name.
  std::span<const std::string_view> unsupported_keys = {};
  std::span<const std::string_view> unsupported_tensors = {};
  std::span<const std::string_view> unused_tensors =
      {};                     ///< of layers: for what is no part of the text model
  bool layer_scales = false;  ///< layer_output_scale: a factor on what a layer gives
  /// What no key says, and published files are told by: called when everything has been read.
  void (*adjust)(const gguf::Metadata& metadata, Hparams& hparams) = nullptr;
};

std::span<const Architecture> bert_architectures();
std::span<const Architecture> cohere_architectures();
std::span<const Architecture> deepseek_architectures();
std::span<const Architecture> gemma_architectures();
std::span<const Architecture> glm_architectures();
std::span<const Architecture> granite_architectures();
std::span<const Architecture> grok_architectures();
std::span<const Architecture> gpt_architectures();
std::span<const Architecture> llama_architectures();
std::span<const Architecture> minicpm_architectures();
std::span<const Architecture> mixture_architectures();
std::span<const Architecture> mpt_architectures();
std::span<const Architecture> olmo_architectures();
std::span<const Architecture> phi_architectures();
std::span<const Architecture> qwen_architectures();
std::span<const Architecture> t5_architectures();

/// A table of architectures, and what people call what is in it.
struct ArchitectureFamily {
  std::string_view name;   ///< "llama"
  std::string_view title;  ///< "Llama and its kind"
  std::span<const Architecture> architectures;
};
/// All of them, by name.
std::span<const ArchitectureFamily> architecture_families();

/// Null if there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace quipu
