#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/arch/architecture.h"
#include "quant/quant.h"

namespace quipu {
namespace {

WeightUse use_of(Presence presence) {
  return presence == Presence::required ? WeightUse::required : WeightUse::optional;
}

/// Collects specs under a name prefix.
class WeightList {
 public:
  explicit WeightList(const Architecture& architecture) : arch_(architecture) {}

  std::vector<WeightSpec> take() { return std::move(specs_); }
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  /// "NAME.weight"; nothing where absent. These return the last spec, for what is special about it.
  WeightSpec* matrix(std::string_view name, const Weight*& slot, Shape shape,
                     Presence presence = Presence::required) {
    return add(name, ".weight", WeightRole::matrix, shape, presence, slot);
  }
  WeightSpec* vector(std::string_view name, std::string_view suffix, const Weight*& slot, Shape shape,
                     Presence presence = Presence::required) {
    return add(name, suffix, WeightRole::vector, shape, presence, slot);
  }
  void scale(std::string_view name, LinearWeights& w) {
    if (arch_.matrix_scales) vector(name, ".scale", w.scale, {1}, Presence::optional);
  }
  void linear(std::string_view name, LinearWeights& w, std::size_t n_rows, std::size_t n_cols,
              Presence presence = Presence::required, Presence bias = Presence::absent) {
    matrix(name, w.matrix, {n_rows, n_cols}, presence);
    scale(name, w);
    vector(name, ".bias", w.bias, {n_rows}, presence == Presence::absent ? Presence::absent : bias);
  }
  void norm(std::string_view name, NormWeights& w, std::size_t size, Presence presence = Presence::required,
            std::string_view other_name = {}) {
    if (!arch_.norm.weights) {
      w.without_weights = presence == Presence::required;
      return;
    }
    WeightSpec* factors = vector(name, ".weight", w.factors, {size}, presence);
    if (factors != nullptr && !other_name.empty()) factors->other_name = full_name(other_name);
    Presence bias = arch_.norm.bias;
    if (presence != Presence::required && bias == Presence::required) bias = presence;
    vector(name, ".bias", w.bias, {size}, bias);
  }
  void not_loaded(std::string_view name, WeightUse use) {
    specs_.push_back({prefix_ + std::string(name), WeightRole::vector, Shape{1}, use, nullptr});
  }
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  WeightSpec* add(std::string_view name, std::string_view suffix, WeightRole role, Shape shape,
                  Presence presence, const Weight*& slot) {
    if (presence == Presence::absent) return nullptr;
    specs_.push_back(
        {prefix_ + std::string(name) + std::string(suffix), role, shape, use_of(presence), &slot});
    return &specs_.back();
  }

  const Architecture& arch_;
  std::vector<WeightSpec> specs_;
  std::string prefix_;
};

/// The lists of a layer's parts.
class LayerLister {
 public:
  LayerLister(const Hparams& hparams, const LayerHparams& layer, bool is_first, WeightList& list)
      : hparams_(hparams),
        layer_(layer),
        arch_(*hparams.architecture),
        is_first_(is_first),
        list_(list),
        n_embd_(hparams.n_embd) {}

  void attention_norms(LayerWeights& w) {
    const NormDescription& norm = arch_.norm;
    if (norm.placement == NormPlacement::after_sum) {
      list_.norm("attn_output_norm", w.attn_sum_norm, n_embd_);
      list_.norm("attn_norm_2", w.attn_second_sum_norm, n_embd_, norm.second_sum);
      return;
    }
    if (norm.placement != NormPlacement::after) {
      list_.norm("attn_norm", w.attn_norm, n_embd_,
                 is_first_ && !norm.first_attention ? Presence::optional : Presence::required);
      list_.norm("attn_norm_2", w.attn_own_norm, n_embd_, norm.attention_own);
    }
    post_norm(arch_.names.attn_post_norm, w.attn_post_norm, arch_.names.other_attn_post_norm);
  }

  void feed_forward_norms(LayerWeights& w) {
    if (arch_.norm.placement == NormPlacement::after_sum) {
      list_.norm("layer_output_norm", w.ffn_sum_norm, n_embd_);
      return;
    }
    if (arch_.norm.placement != NormPlacement::after)
      list_.norm(arch_.names.ffn_norm, w.ffn_norm, n_embd_, arch_.norm.feed_forward);
    post_norm(arch_.names.ffn_post_norm, w.ffn_post_norm, arch_.names.other_ffn_post_norm);
  }

  void attention(AttentionWeights& w) {
    if (!layer_.attends()) {
      list_.linear("attn_output", w.output, n_embd_, n_embd_);
      return;
    }
    if (arch_.attention.kind == AttentionKind::latent) {
      latent(w);
    } else {
      heads("attn_", w, true);
    }
    if (arch_.norm.sub) list_.norm("attn_sub_norm", w.sub_norm, n_embd_);
    list_.vector("attn_sinks", ".weight", w.sinks, {std::size_t{layer_.n_heads}}, arch_.attention.sinks);
    const std::size_t v_dim = hparams_.latent.kv_rank != 0 ? hparams_.latent.v_dim : layer_.v_dim;
    WeightSpec* gate =
        list_.matrix("attn_gate", w.gate.matrix, {layer_.n_heads * v_dim, n_embd_}, arch_.attention.gate);
    if (gate != nullptr) gate->other_shape = Shape{std::size_t{layer_.n_heads}, n_embd_};
    list_.linear(arch_.t5_names ? "attn_o" : "attn_output", w.output, n_embd_, layer_.n_heads * v_dim,
                 Presence::required, arch_.attention.output_bias);
    if (arch_.attention.positions == PositionKind::relative) {
      // Layers without one take the first one's.
      list_.vector("attn_rel_b", ".weight", w.relative_bias,
                   {std::size_t{hparams_.n_position_buckets}, std::size_t{layer_.n_heads}},
                   is_first_ ? Presence::required : Presence::optional);
    }
  }

  void cross_attention(LayerWeights& w) {
    list_.norm("cross_attn_norm", w.cross_norm, n_embd_);
    heads("cross_attn_", w.cross, false);
    list_.linear("cross_attn_o", w.cross.output, n_embd_, layer_.n_heads * std::size_t{layer_.v_dim});
    list_.not_loaded("cross_attn_rel_b.weight", WeightUse::unused);
  }

  void feed_forward(LayerWeights& w) {
    const ExpertDescription& choice = arch_.experts;
    if (layer_.is_idle) {
      for (const char* name :
           {"ffn_gate_inp.weight", "exp_probs_b.bias", "ffn_gate_exps.weight", "ffn_up_exps.weight",
            "ffn_down_exps.weight", "ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"})
        list_.not_loaded(name, WeightUse::unused);
      return;
    }
    if (layer_.has_experts) experts(w.experts);
    if (!layer_.has_experts || choice.beside_dense) dense(w, false);
    if (layer_.has_experts && choice.where_found) dense(w, true);
  }

  void layer_embedding(LayerEmbeddingBlockWeights& w) {
    const std::size_t width = hparams_.layer_embedding_width;
    if (width == 0) return;
    list_.linear("inp_gate", w.gate, width, n_embd_);
    list_.linear("proj", w.projection, n_embd_, width);
    list_.norm("post_norm", w.post_norm, n_embd_);
  }

  void streams(StreamWeights& w) {
    const StreamDescription& streams = arch_.streams;
    const std::size_t count = streams.count;
    if (count == 1) return;
    list_.linear("altup_router", w.router, count, n_embd_);
    list_.norm("altup_router_norm", w.router_norm, n_embd_);
    list_.linear("altup_predict_coef", w.predict, count * count, count);
    list_.linear("altup_correct_coef", w.correct, count, count);
    list_.vector("altup_correct_scale", ".weight", w.correct_scale, {n_embd_});
    list_.linear("laurel_l", w.laurel_l, streams.laurel_rank, n_embd_);
    list_.linear("laurel_r", w.laurel_r, n_embd_, streams.laurel_rank);
    list_.norm("laurel_post_norm", w.laurel_norm, n_embd_);
  }

  /// `may_be_absent`: as a whole.
  void dense(LayerWeights& w, bool may_be_absent) {
    const FeedForwardDescription& description = arch_.feed_forward;
    const std::size_t n_ff = layer_.n_ff;
    const Presence presence = may_be_absent ? Presence::optional : Presence::required;
    list_.linear("ffn_gate", w.feed_forward.gate, n_ff, n_embd_, may_be_absent ? presence : description.gate,
                 description.up_bias);
    const std::size_t up_rows = description.gate_in_up == Presence::required ? 2 * n_ff : n_ff;
    WeightSpec* up = list_.matrix("ffn_up", w.feed_forward.up.matrix, {up_rows, n_embd_}, presence);
    if (may_be_absent) up->needed_with = list_.full_name("ffn_down.weight");
    if (description.gate_in_up == Presence::optional) up->other_shape = Shape{2 * n_ff, n_embd_};
    list_.scale("ffn_up", w.feed_forward.up);
    WeightSpec* bias =
        list_.vector("ffn_up", ".bias", w.feed_forward.up.bias, {up_rows}, description.up_bias);
    if (bias != nullptr && description.gate_in_up == Presence::optional) bias->other_shape = Shape{2 * n_ff};
    list_.linear("ffn_down", w.feed_forward.down, n_embd_, n_ff, presence, description.down_bias);
    if (arch_.norm.sub) list_.norm("ffn_sub_norm", w.feed_forward.sub_norm, n_ff);
    if (description.unused_bias) {
      for (const char* name : {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"})
        list_.not_loaded(name, WeightUse::unused);
    }
  }

 private:
  void post_norm(std::string_view name, NormWeights& w, std::string_view other_name) {
    const NormPlacement placement = arch_.norm.placement;
    if (placement != NormPlacement::around && placement != NormPlacement::after) return;
    list_.norm(name, w, n_embd_, Presence::required, other_name);
    w.eps = arch_.norm.post_eps;
  }

  /// Queries, keys and values, each apart or all in one matrix.
  void heads(std::string_view prefix, AttentionWeights& w, bool may_be_fused) {
    const AttentionDescription& description = arch_.attention;
    const std::size_t q_rows = std::size_t{layer_.n_heads} * layer_.k_dim;
    const std::size_t k_rows = std::size_t{layer_.n_kv_heads} * layer_.k_dim;
    const std::size_t v_rows = std::size_t{layer_.n_kv_heads} * layer_.v_dim;
    const auto name = [&](std::string_view part) { return std::string(prefix) + std::string(part); };
    const std::string fused = list_.full_name(name("qkv.weight"));
    const std::size_t fused_rows = description.square_qkv ? 3 * n_embd_ : q_rows + k_rows + v_rows;
    if (may_be_fused) {
      list_.linear(name("qkv"), w.qkv, fused_rows, n_embd_,
                   description.square_qkv ? Presence::required : Presence::optional, description.qkv_bias);
    }
    const auto part = [&](std::string_view which, LinearWeights& linear, std::size_t rows) {
      if (may_be_fused && description.square_qkv) return;
      WeightSpec* matrix = list_.matrix(name(which), linear.matrix, {rows, n_embd_});
      matrix->replaced_by = may_be_fused ? fused : "";
      if (which == "v" && description.values_may_be_keys) matrix->use = WeightUse::optional;
      list_.scale(name(which), linear);
      // Published code leaves a bias out where a layer has only queries.
      list_.vector(name(which), ".bias", linear.bias, {rows},
                   layer_.cache_of ? Presence::absent : description.qkv_bias);
    };
    part("q", w.q, q_rows);
    if (layer_.cache_of) {
      for (const char* unused : {"k.weight", "k.bias", "v.weight", "v.bias", "k_norm.weight"})
        list_.not_loaded(name(unused), WeightUse::unused);
    } else {
      part("k", w.k, k_rows);
      part("v", w.v, v_rows);
    }
    if (description.qk_norm == QkNorm::gains) {
      list_.vector(name("q_norm"), ".weight", w.q_norm.factors,
                   {std::size_t{layer_.n_heads}, std::size_t{1}});
      w.k_norm.without_weights = true;
      return;
    }
    if (description.qk_norm == QkNorm::plain) {
      w.q_norm.without_weights = w.k_norm.without_weights = layer_.rotates && hparams_.plain_qk_norms;
      return;
    }
    if (description.qk_norm == QkNorm::none) return;
    if (description.qk_norm == QkNorm::each) {
      const auto factors = [&](std::string_view which, NormWeights& norm, std::uint32_t n_heads) {
        list_.vector(name(which), ".weight", norm.factors, {std::size_t{n_heads}, std::size_t{layer_.k_dim}},
                     description.qk_norm_presence);
      };
      factors("q_norm", w.q_norm, layer_.n_heads);
      factors("k_norm", w.k_norm, layer_.n_kv_heads);
      return;
    }
    const bool whole = description.qk_norm == QkNorm::whole;
    list_.norm(name("q_norm"), w.q_norm, whole ? q_rows : layer_.k_dim, description.qk_norm_presence);
    if (layer_.cache_of) return;
    list_.norm(name("k_norm"), w.k_norm, whole ? k_rows : layer_.k_dim, description.qk_norm_presence);
  }

  void latent(AttentionWeights& w) {
    const LatentHparams& latent = hparams_.latent;
    const std::size_t n_heads = layer_.n_heads;
    const std::size_t n_plain = latent.k_dim - hparams_.rope.n_rot;  // elements that are not rotated
    if (latent.q_rank != 0) {
      list_.linear("attn_q_a", w.q_a, latent.q_rank, n_embd_);
      list_.norm("attn_q_a_norm", w.q_a_norm, latent.q_rank);
      list_.linear("attn_q_b", w.q_b, n_heads * latent.k_dim, latent.q_rank);
    } else {
      list_.linear("attn_q", w.q, n_heads * latent.k_dim, n_embd_);
    }
    list_.linear("attn_kv_a_mqa", w.kv_a, std::size_t{latent.kv_rank} + hparams_.rope.n_rot, n_embd_);
    list_.norm("attn_kv_a_norm", w.kv_a_norm, latent.kv_rank);
    if (latent.absorbed) {
      list_.matrix("attn_k_b", w.k_b, {n_heads, std::size_t{latent.kv_rank}, n_plain});
      list_.matrix("attn_v_b", w.v_b, {n_heads, std::size_t{latent.v_dim}, std::size_t{latent.kv_rank}});
    } else {
      list_.linear("attn_kv_b", w.kv_b, n_heads * (n_plain + latent.v_dim), latent.kv_rank);
    }
  }

  void experts(ExpertLayerWeights& w) {
    const ExpertDescription& description = arch_.experts;
    const ExpertHparams& experts = hparams_.experts;
    // Of layers that may have experts, those that do have a router.
    const std::string router = list_.full_name("ffn_gate_inp.weight");
    const auto list_set = [&](std::string_view suffix, ExpertSetWeights& set, std::size_t n_experts,
                              std::size_t n_ff) {
      const auto name = [&](std::string_view part) { return fmt::format("ffn_{}_{}", part, suffix); };
      const std::string gate_up = list_.full_name(name("gate_up") + ".weight");
      const auto matrix = [&](std::string_view part, LinearWeights& linear, Shape shape, Presence presence) {
        WeightSpec* spec = list_.matrix(name(part), linear.matrix, shape,
                                        description.where_found ? Presence::optional : presence);
        if (presence == Presence::required && description.where_found) spec->needed_with = router;
        if (part != "down") spec->replaced_by = gate_up;
        if (description.biases) list_.vector(name(part), ".bias", linear.bias, {n_experts, shape.dim(1)});
      };
      list_.matrix(name("gate_up"), set.gate_up, {n_experts, 2 * n_ff, n_embd_}, Presence::optional);
      matrix("gate", set.gate, {n_experts, n_ff, n_embd_}, Presence::optional);
      matrix("up", set.up, {n_experts, n_ff, n_embd_}, Presence::required);
      matrix("down", set.down, {n_experts, n_embd_, n_ff}, Presence::required);
    };
    const std::size_t n_experts = experts.n_experts;
    list_.linear("ffn_gate_inp", w.router, n_experts, n_embd_,
                 description.where_found ? Presence::optional : Presence::required,
                 description.biases ? Presence::required : Presence::absent);
    WeightSpec* bias =
        list_.vector("exp_probs_b", ".bias", w.selection_bias, {n_experts}, description.selection_bias);
    if (bias != nullptr) bias->other_name = list_.full_name("exp_probs_b");
    if (description.beside_dense) list_.norm("ffn_norm_exps", w.norm, n_embd_);
    list_set("exps", w.chosen, n_experts, experts.n_ff);
    if (description.chunk_experts)
      list_set("chexps", w.chunks, n_experts / experts.chunk_size, experts.n_chunk_ff);
    shared_experts(w);
  }

  void shared_experts(ExpertLayerWeights& w) {
    const std::size_t n_ff = hparams_.experts.n_ff_shared;
    if (n_ff == 0) return;
    const bool is_dense = arch_.experts.shared == SharedExperts::dense;
    const Presence presence = arch_.experts.where_found || is_dense ? Presence::optional : Presence::required;
    const bool fused = arch_.experts.shared_gate_in_up;
    const std::string suffix = is_dense ? "" : "_shexp";
    if (!fused) list_.linear("ffn_gate" + suffix, w.shared.gate, n_ff, n_embd_, presence);
    list_.linear("ffn_up" + suffix, w.shared.up, fused ? 2 * n_ff : n_ff, n_embd_, presence);
    list_.linear("ffn_down" + suffix, w.shared.down, n_embd_, n_ff, presence);
    if (arch_.experts.shared_gate) list_.linear("ffn_gate_inp_shexp", w.shared_gate, 1, n_embd_);
  }

  const Hparams& hparams_;
  const LayerHparams& layer_;
  const Architecture& arch_;
  bool is_first_;
  WeightList& list_;
  std::size_t n_embd_;
};

void list_layers(const Hparams& hparams, const std::vector<LayerHparams>& layers, std::string_view prefix,
                 bool cross_attention, std::vector<LayerWeights>& weights, WeightList& list) {
  weights.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    list.set_prefix(fmt::format("{}blk.{}.", prefix, i));
    LayerLister lister(hparams, layers[i], i == 0, list);
    if (layers[i].n_heads != 0) {
      lister.attention_norms(weights[i]);
      lister.attention(weights[i].attention);
    }
    if (cross_attention) lister.cross_attention(weights[i]);
    if (layers[i].n_ff != 0) {
      lister.feed_forward_norms(weights[i]);
      lister.feed_forward(weights[i]);
      if (hparams.architecture->embedding.skip)
        list.vector("layer_output_scale", ".weight", weights[i].output_scale, {1});
    }
    lister.layer_embedding(weights[i].layer_embedding);
    lister.streams(weights[i].streams);
    if (hparams.architecture->layer_scales)
      list.vector("layer_output_scale", ".weight", weights[i].scale, {1}, Presence::optional);
    for (const std::string_view name : hparams.architecture->unsupported_tensors)
      list.not_loaded(name, WeightUse::unsupported);
    for (const std::string_view name : hparams.architecture->unused_tensors)
      list.not_loaded(name, WeightUse::unused);
  }
  list.set_prefix("");
}

void list_rank_head(const Hparams& hparams, ModelWeights& weights, WeightList& list) {
  const RankDescription& rank = hparams.architecture->head.rank;
  if (!rank.available) return;
  const std::size_t n_embd = hparams.n_embd;
  if (rank.dense || rank.cls_scores) {
    list.linear("cls", weights.cls, rank.cls_scores ? hparams.n_classes : n_embd, n_embd, Presence::optional,
                Presence::optional);
  }
  if (rank.norm) list.vector("cls.norm", ".weight", weights.cls_norm.factors, {n_embd}, Presence::optional);
  if (!rank.cls_scores) {
    list.linear("cls.output", weights.cls_output, hparams.n_classes, n_embd, Presence::optional,
                Presence::optional);
  }
}

void list_embedding(const Hparams& hparams, ModelWeights& weights, WeightList& list) {
  const EmbeddingDescription& embedding = hparams.architecture->embedding;
  const std::size_t n_embd = hparams.n_embd;
  WeightSpec* tokens = list.matrix("token_embd", weights.token_embd, {hparams.n_vocab, n_embd});
  if (embedding.may_be_head) tokens->replaced_by = "output.weight";
  if (embedding.positions != Presence::absent && hparams.n_ctx_train != 0) {
    list.matrix("position_embd", weights.position_embd, {std::size_t{hparams.n_ctx_train}, n_embd},
                embedding.positions);
  }
  list.vector("token_types", ".weight", weights.token_types, {std::size_t{hparams.n_token_types}, n_embd},
              embedding.token_types);
  weights.token_norm.without_weights = embedding.plain_norm;
  if (embedding.norm) list.norm("token_embd_norm", weights.token_norm, n_embd);
  if (const std::size_t width = hparams.layer_embedding_width; width != 0) {
    LayerEmbeddingWeights& w = weights.layer_embedding;
    list.matrix("per_layer_token_embd", w.tokens, {hparams.n_vocab, width * hparams.n_layers()});
    list.linear("per_layer_model_proj", w.projection, width * hparams.n_layers(), n_embd);
    list.norm("per_layer_proj_norm", w.norm, width);
  }
  if (const std::size_t count = hparams.architecture->streams.count; count > 1) {
    list.matrix("altup_proj", weights.split_streams, {count - 1, n_embd, n_embd});
    list.matrix("altup_unembd_proj", weights.merge_streams, {count - 1, n_embd, n_embd});
  }
}

void list_head(const Hparams& hparams, ModelWeights& weights, WeightList& list) {
  const Architecture& arch = *hparams.architecture;
  const std::size_t n_embd = hparams.n_embd;
  const bool encodes = arch.structure == Structure::encoder;
  if (arch.t5_names) {
    list.norm("enc.output_norm", encodes ? weights.output_norm : weights.encoder_norm, n_embd);
    if (!encodes) list.norm("dec.output_norm", weights.output_norm, n_embd);
  } else if (arch.norm.final) {
    list.norm(arch.names.output_norm, weights.output_norm, n_embd);
  }
  if (arch.head.logits) {
    list.linear("output", weights.output, hparams.n_vocab, n_embd, Presence::optional,
                arch.head.bias ? Presence::optional : Presence::absent);
  } else {
    list.not_loaded("output.weight", WeightUse::unused);
  }
  if (hparams.dense_2_width != 0) list.linear("dense_2", weights.dense_2, hparams.dense_2_width, n_embd);
  if (hparams.dense_3_width != 0) list.linear("dense_3", weights.dense_3, n_embd, hparams.dense_3_width);
  list_rank_head(hparams, weights, list);
}

}  // namespace

std::vector<WeightSpec> list_weights(const Hparams& hparams, ModelWeights& weights) {
  const Architecture& arch = *hparams.architecture;
  WeightList list(arch);
  list_embedding(hparams, weights, list);
  list_head(hparams, weights, list);
  if (arch.attention.rope_factors) {
    const Shape pairs{std::size_t{std::max(hparams.rope.n_rot, hparams.local_rope.n_rot)} / 2};
    list.vector("rope_freqs", ".weight", weights.rope_factors, pairs, Presence::optional);
    list.vector("rope_factors_short", ".weight", weights.rope_factors_short, pairs, Presence::optional);
    list.vector("rope_factors_long", ".weight", weights.rope_factors_long, pairs, Presence::optional);
  }
  const bool encodes = arch.structure == Structure::encoder;
  if (arch.structure == Structure::encoder_decoder)
    list_layers(hparams, hparams.encoder_layers, "enc.", false, weights.encoder_layers, list);
  const std::string_view prefix = !arch.t5_names ? "" : encodes ? "enc." : "dec.";
  list_layers(hparams, hparams.layers, prefix, arch.structure == Structure::encoder_decoder, weights.layers,
              list);
  return list.take();
}

std::vector<float> read_numbers(const Weight& weight) {
  QUIPU_CHECK(weight.role == WeightRole::vector);
  const std::size_t n = weight.shape.dim(0) * weight.shape.row_elements();
  std::vector<std::byte> bytes(row_bytes(weight.type, n));
  weight.storage->get_rows(0, 0, bytes);
  std::vector<float> numbers(n);
  decode_row(weight.type, bytes, numbers);
  return numbers;
}

bool is_of_unused_part(const Hparams& hparams, std::string_view tensor) {
  if (tensor.starts_with("v.") || tensor.starts_with("mm.")) return true;
  for (std::uint32_t i = 0; i < hparams.n_next_token_layers; ++i) {
    if (tensor.starts_with(fmt::format("blk.{}.", hparams.n_layers() + i))) return true;
  }
  return false;
}

}  // namespace quipu
