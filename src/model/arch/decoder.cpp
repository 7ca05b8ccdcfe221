#include "model/arch/decoder.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "graph/ops/attention.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/embedding.h"
#include "graph/ops/experts.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"
#include "model/arch/architecture.h"
#include "model/rope_frequencies.h"

namespace quipu {
namespace {

class DecoderBuilder {
 public:
  DecoderBuilder(const Hparams& hparams, const ModelWeights& weights, std::span<const float> rope_factors,
                 const GraphOptions& options, Graph& graph)
      : hparams_(hparams),
        arch_(*hparams.architecture),
        weights_(weights),
        rope_factors_(rope_factors),
        options_(options),
        graph_(graph) {}

  void build() {
    const Value tokens = graph_.input("tokens", ElementType::i32, {Dim::tokens()});
    const Value embeddings = graph_.input("embeddings", ElementType::f32, {Dim::tokens(), hparams_.n_embd});
    positions_ = graph_.input("positions", ElementType::i32, {Dim::tokens()});
    const Value output_rows = graph_.input("output_rows", ElementType::i32, {Dim::outputs()});

    Value x = embed(weight(weights_.token_embd), tokens, embeddings);
    if (hparams_.embedding_scale != 1) x = scale(x, hparams_.embedding_scale);
    for (layer_ = 0; layer_ < hparams_.n_layers(); ++layer_) {
      x = add(x, post_norm(attention_block(norm(x, w().attn_norm, "attn_norm")), w().attn_post_norm,
                           "attn_post_norm"));
      label(x, "ffn_inp");
      const bool is_last = layer_ + 1 == hparams_.n_layers();
      if (is_last) x = select_rows(x, output_rows);
      x = add(x,
              post_norm(feed_forward(norm(x, w().ffn_norm, "ffn_norm")), w().ffn_post_norm, "ffn_post_norm"));
      label(x, "l_out");
    }
    x = graph_.label(rms_norm(x, weight(weights_.output_norm), hparams_.rms_eps), "result_norm");
    graph_.output(graph_.label(head(x), "result_output"));
  }

 private:
  Value attention_block(Value x) {
    const LayerHparams& layer = hparams_.layers[layer_];
    const auto heads = [](Value v, std::size_t n, std::size_t dim) {
      return view(v, {v.shape().rows(), n, dim});
    };
    Value q = label(linear(x, w().attn_q, w().attn_q_bias), "Qcur");
    Value k = label(linear(x, w().attn_k, w().attn_k_bias), "Kcur");
    Value v = label(linear(x, w().attn_v, w().attn_v_bias), "Vcur");
    q = heads(q, layer.n_heads, hparams_.k_dim);
    k = heads(k, layer.n_kv_heads, hparams_.k_dim);
    v = heads(v, layer.n_kv_heads, hparams_.v_dim);
    if (arch_.qk_norm) {
      q = norm(q, w().attn_q_norm, "Qcur_normed");
      k = norm(k, w().attn_k_norm, "Kcur_normed");
    }
    const Value angles = layer_angles();
    q = label(rope(q, angles, arch_.rope), "Qcur_rope");
    k = label(rope(k, angles, arch_.rope), "Kcur_rope");
    const GraphOptions::LayerCache& cache = options_.caches[layer_];
    const Value attended = attention(q, k, v,
                                     {.cache = cache.storage,
                                      .layout = cache.layout,
                                      .scale = hparams_.attention_scale,
                                      .window = static_cast<std::int32_t>(layer.window),
                                      .causal = options_.causal});
    return label(linear(label(attended, "kqv_out"), w().attn_output, w().attn_output_bias), "attn_out");
  }

  Value feed_forward(Value x) {
    if (hparams_.experts.n_experts > 0) return expert_feed_forward(x);
    const Value gate = label(linear(x, w().ffn_gate, w().ffn_gate_bias), "ffn_gate");
    const Value up = label(linear(x, w().ffn_up, w().ffn_up_bias), "ffn_up");
    return label(linear(gated(arch_.activation, gate, up), w().ffn_down, w().ffn_down_bias), "ffn_out");
  }

  Value expert_feed_forward(Value x) {
    const Value logits = label(matmul(x, weight(w().ffn_router)), "ffn_moe_logits");
    const Value routes = label(route(logits, {.n_used = hparams_.experts.n_used,
                                              .gating = arch_.experts.gating,
                                              .normalize = arch_.experts.normalize_weights,
                                              .scale = hparams_.experts.weight_scale}),
                               "ffn_moe_routes");
    const ExpertWeights expert_weights{.gate = weight(w().ffn_gate_experts),
                                       .up = weight(w().ffn_up_experts),
                                       .down = weight(w().ffn_down_experts)};
    return label(experts(x, routes, expert_weights, arch_.activation), "ffn_moe_out");
  }

  Value head(Value x) {
    const Weight* matrix = weights_.output != nullptr ? weights_.output : weights_.token_embd;
    Value logits = linear(x, matrix, weights_.output_bias);
    if (hparams_.final_soft_cap != 0) logits = soft_cap(logits, hparams_.final_soft_cap);
    return logits;
  }

  /// Angles are computed once for all layers that rotate alike.
  Value layer_angles() {
    const bool local = hparams_.layers[layer_].local_rope;
    Value& angles = local ? local_angles_ : angles_;
    if (!angles.valid()) {
      angles = rope_angles(positions_, local ? rope_frequencies(hparams_.local_rope, {}, {})
                                             : rope_frequencies(hparams_.rope, options_.rope, rope_factors_));
    }
    return angles;
  }

  Value norm(Value x, const Weight* factors, std::string_view name) {
    return label(rms_norm(x, weight(factors), hparams_.rms_eps), name);
  }
  Value post_norm(Value x, const Weight* factors, std::string_view name) {
    return factors == nullptr ? x : norm(x, factors, name);
  }
  Value linear(Value x, const Weight* matrix, const Weight* bias) {
    const Value product = matmul(x, weight(matrix));
    return bias == nullptr ? product : add(product, weight(bias));
  }
  Value weight(const Weight* weight) { return weight == nullptr ? Value() : graph_.weight(*weight); }
  Value label(Value value, std::string_view name) {
    return graph_.label(value, fmt::format("{}-{}", name, layer_));
  }
  const LayerWeights& w() const { return weights_.layers[layer_]; }

  const Hparams& hparams_;
  const Architecture& arch_;
  const ModelWeights& weights_;
  std::span<const float> rope_factors_;
  const GraphOptions& options_;
  Graph& graph_;
  Value positions_, angles_, local_angles_;
  std::size_t layer_ = 0;
};

}  // namespace

ModelGraph build_decoder(const Hparams& hparams, const ModelWeights& weights,
                         std::span<const float> rope_factors, const GraphOptions& options) {
  QUIPU_CHECK(options.caches.size() == hparams.n_layers());
  ModelGraph result{std::make_unique<Graph>()};
  DecoderBuilder(hparams, weights, rope_factors, options, *result.graph).build();
  return result;
}

}  // namespace quipu
