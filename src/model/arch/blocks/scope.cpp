#include "model/arch/blocks/scope.h"

#include <fmt/format.h>

#include "graph/ops/elementwise.h"
#include "graph/ops/matmul.h"
#include "graph/ops/norm.h"
#include "graph/ops/rope.h"
#include "model/arch/blocks/position_bias.h"
#include "model/arch/forward.h"

namespace quipu {

GraphScope::GraphScope(const Hparams& model_hparams, const ModelWeights& model_weights,
                       const GraphOptions& graph_options, Graph& new_graph)
    : hparams(model_hparams),
      arch(*model_hparams.architecture),
      weights(model_weights),
      options(graph_options),
      graph(new_graph),
      tokens(graph.input("tokens", ElementType::i32, {Dim::tokens()})),
      embeddings(graph.input("embeddings", ElementType::f32, {Dim::tokens(), hparams.n_embd})),
      positions(graph.input("positions", ElementType::i32, {Dim::tokens()})),
      output_rows(graph.input("output_rows", ElementType::i32, {Dim::outputs()})) {}

Value GraphScope::weight(const Weight* weight) {
  return weight == nullptr ? Value() : graph.weight(*weight);
}

Value GraphScope::norm(Value x, const NormWeights& norm_weights) {
  if (!norm_weights.exists()) return x;
  const Value factors = weight(norm_weights.factors);
  const float eps = norm_weights.eps != 0 ? norm_weights.eps : hparams.norm_eps;
  if (!hparams.layer_norms) {
    const Value normed = rms_norm(x, factors, eps);
    return norm_weights.bias == nullptr ? normed : add(normed, weight(norm_weights.bias));
  }
  return layer_norm(x, factors, weight(norm_weights.bias), eps);
}

Value GraphScope::linear(Value x, const LinearWeights& linear_weights) {
  Value product = matmul(x, weight(linear_weights.matrix));
  if (linear_weights.scale != nullptr) product = scale(product, read_numbers(*linear_weights.scale).front());
  return linear_weights.bias == nullptr ? product : add(product, weight(linear_weights.bias));
}

Value GraphScope::angles(const LayerHparams& layer) {
  Value& angles = layer.local_rope ? local_angles_ : angles_;
  if (!angles.valid()) angles = rope_angles(positions, layer_rope(hparams, weights, layer, options.rope));
  return angles;
}

Value GraphScope::temperature() {
  if (!temperature_.valid()) {
    temperature_ = position_temperature(positions, {.scale = hparams.temperature_scale,
                                                    .length = hparams.temperature_length,
                                                    .offset = arch.attention.temperature.offset});
  }
  return temperature_;
}

bool LayerScope::is_parallel() const {
  const bool lacks_norm = model.arch.norm.feed_forward != Presence::required && !weights.ffn_norm.exists();
  return model.hparams.parallel_blocks || lacks_norm;
}

Value LayerScope::label(Value value, std::string_view name) {
  return model.graph.label(value, fmt::format("{}-{}", name, index));
}

Value LayerScope::norm(Value x, const NormWeights& norm_weights, std::string_view name) {
  return norm_weights.exists() ? label(model.norm(x, norm_weights), name) : x;
}

Value LayerScope::linear(Value x, const LinearWeights& linear_weights, std::string_view name) {
  return label(model.linear(x, linear_weights), name);
}

Value LayerScope::tempered(Value q) {
  if (model.hparams.temperature_scale == 0) return q;
  if (model.arch.attention.temperature.unrotated && hparams.rotates) return q;
  return label(multiply(q, model.temperature()), "Qcur_attn_temp_scaled");
}

Value LayerScope::scaled_residual(Value added) {
  const float factor = model.hparams.residual_scale;
  return factor == 1 ? added : scale(added, factor);
}

AttentionParams LayerScope::attention_params(const GraphOptions::LayerCache& cells) const {
  return {.cache = cells.storage,
          .layout = cells.layout,
          .scale = model.hparams.attention_scale,
          .soft_cap = model.hparams.score_soft_cap,
          .window = static_cast<std::int32_t>(hparams.window),
          .causal = model.options.causal,
          .symmetric_window = model.arch.attention.windows.symmetric,
          .chunked_window = model.arch.attention.windows.chunked,
          .bias = position_bias(model.hparams, *this)};
}

}  // namespace quipu
