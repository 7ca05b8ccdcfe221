#include "model/weights.h"

#include <fmt/format.h>

#include <utility>

#include "model/arch/architecture.h"

namespace quipu {
namespace {

/// Collects specs under a name prefix.
class WeightList {
 public:
  std::vector<WeightSpec> take() { return std::move(specs_); }
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void matrix(std::string_view name, const Weight*& slot, Shape shape, bool required = true) {
    specs_.push_back({prefix_ + std::string(name) + ".weight", WeightRole::matrix, shape, required, &slot});
  }
  void vector(std::string_view name, const Weight*& slot, std::size_t size, bool required = true) {
    specs_.push_back({prefix_ + std::string(name), WeightRole::vector, Shape{size}, required, &slot});
  }

 private:
  std::vector<WeightSpec> specs_;
  std::string prefix_;
};

void list_attention(const Hparams& hparams, const LayerHparams& layer, LayerWeights& w, WeightList& list) {
  const Architecture& arch = *hparams.architecture;
  const std::size_t n_embd = hparams.n_embd;
  const std::size_t q_rows = std::size_t{layer.n_heads} * hparams.k_dim;
  const std::size_t k_rows = std::size_t{layer.n_kv_heads} * hparams.k_dim;
  const std::size_t v_rows = std::size_t{layer.n_kv_heads} * hparams.v_dim;
  list.vector("attn_norm.weight", w.attn_norm, n_embd);
  list.matrix("attn_q", w.attn_q, {q_rows, n_embd});
  list.vector("attn_q.bias", w.attn_q_bias, q_rows, false);
  list.matrix("attn_k", w.attn_k, {k_rows, n_embd});
  list.vector("attn_k.bias", w.attn_k_bias, k_rows, false);
  list.matrix("attn_v", w.attn_v, {v_rows, n_embd});
  list.vector("attn_v.bias", w.attn_v_bias, v_rows, false);
  if (arch.qk_norm) {
    list.vector("attn_q_norm.weight", w.attn_q_norm, hparams.k_dim);
    list.vector("attn_k_norm.weight", w.attn_k_norm, hparams.k_dim);
  }
  list.matrix("attn_output", w.attn_output, {n_embd, std::size_t{layer.n_heads} * hparams.v_dim});
  if (arch.output_projection_bias) list.vector("attn_output.bias", w.attn_output_bias, n_embd, false);
  if (arch.post_norms) list.vector("post_attention_norm.weight", w.attn_post_norm, n_embd);
}

void list_experts(const Hparams& hparams, LayerWeights& w, WeightList& list) {
  const std::size_t n_experts = hparams.experts.n_experts;
  const std::size_t n_embd = hparams.n_embd;
  const std::size_t n_ff = hparams.experts.n_ff;
  list.matrix("ffn_gate_inp", w.ffn_router, {n_experts, n_embd});
  list.matrix("ffn_gate_exps", w.ffn_gate_experts, {n_experts, n_ff, n_embd}, false);
  list.matrix("ffn_up_exps", w.ffn_up_experts, {n_experts, n_ff, n_embd});
  list.matrix("ffn_down_exps", w.ffn_down_experts, {n_experts, n_embd, n_ff});
}

void list_feed_forward(const Hparams& hparams, const LayerHparams& layer, LayerWeights& w, WeightList& list) {
  const std::size_t n_embd = hparams.n_embd;
  const std::size_t n_ff = layer.n_ff;
  list.matrix("ffn_gate", w.ffn_gate, {n_ff, n_embd});
  list.matrix("ffn_up", w.ffn_up, {n_ff, n_embd});
  list.matrix("ffn_down", w.ffn_down, {n_embd, n_ff});
  if (!hparams.architecture->feed_forward_bias) return;
  list.vector("ffn_gate.bias", w.ffn_gate_bias, n_ff, false);
  list.vector("ffn_up.bias", w.ffn_up_bias, n_ff, false);
  list.vector("ffn_down.bias", w.ffn_down_bias, n_embd, false);
}

}  // namespace

std::vector<WeightSpec> list_weights(const Hparams& hparams, ModelWeights& weights) {
  const Architecture& arch = *hparams.architecture;
  const std::size_t n_embd = hparams.n_embd;
  WeightList list;
  list.matrix("token_embd", weights.token_embd, {hparams.n_vocab, n_embd});
  list.vector("output_norm.weight", weights.output_norm, n_embd);
  list.matrix("output", weights.output, {hparams.n_vocab, n_embd}, false);
  if (arch.head_bias) list.vector("output.bias", weights.output_bias, hparams.n_vocab, false);
  if (arch.rope_factors)
    list.vector("rope_freqs.weight", weights.rope_factors, hparams.rope.n_rot / 2, false);

  weights.layers.resize(hparams.n_layers());
  for (std::size_t i = 0; i < hparams.n_layers(); ++i) {
    LayerWeights& layer = weights.layers[i];
    list.set_prefix(fmt::format("blk.{}.", i));
    list_attention(hparams, hparams.layers[i], layer, list);
    list.vector("ffn_norm.weight", layer.ffn_norm, n_embd);
    if (hparams.experts.n_experts > 0) {
      list_experts(hparams, layer, list);
    } else {
      list_feed_forward(hparams, hparams.layers[i], layer, list);
    }
    if (arch.post_norms) list.vector("post_ffw_norm.weight", layer.ffn_post_norm, n_embd);
  }
  return list.take();
}

}  // namespace quipu
