// What the block builders work in: the graph that is being built and what all of its layers share
// (GraphScope), and one layer of it (LayerScope), with the small pieces that every block is made of.
#pragma once

#include <optional>
#include <string_view>

#include "graph/graph.h"
#include "graph/ops/attention.h"
#include "model/arch/architecture.h"
#include "model/model.h"
#include "model/weights.h"

namespace quipu {

/// The graph and what its layers share.
class GraphScope {
 public:
  GraphScope(const Hparams& hparams, const ModelWeights& weights, const GraphOptions& options, Graph& graph);

  const Hparams& hparams;
  const Architecture& arch;
  const ModelWeights& weights;
  const GraphOptions& options;
  Graph& graph;
  const Value tokens, embeddings, positions, output_rows;  ///< as ModelGraph::Input

  Value embedded;  ///< what the first layer sees, for layers that add it again

  /// Absent for null.
  Value weight(const Weight* weight);
  /// The architecture's kind of norm; x itself where the model has none.
  Value norm(Value x, const NormWeights& weights);
  /// x times the matrix and its scale, plus the bias, where there are these.
  Value linear(Value x, const LinearWeights& weights);
  /// Sines and cosines for a layer; computed once for all layers that rotate alike.
  Value angles(const LayerHparams& layer);
  /// [n_tokens, 1]
  Value temperature();

 private:
  Value angles_, local_angles_, temperature_;
};

/// One layer.
class LayerScope {
 public:
  LayerScope(GraphScope& scope, const LayerHparams& layer_hparams, const LayerWeights& layer_weights,
             std::size_t layer_index)
      : model(scope), hparams(layer_hparams), weights(layer_weights), index(layer_index) {}

  GraphScope& model;
  const LayerHparams& hparams;
  const LayerWeights& weights;
  const std::size_t index;
  std::size_t cache = 0;    ///< which of options.caches is its own, where it attends to itself
  bool is_encoder = false;  ///< relative positions reach both ways

  /// Attention and the feed-forward layer both see the layer's input.
  bool is_parallel() const;

  /// Names a value after the layer: "ffn_out-3".
  Value label(Value value, std::string_view name);
  Value norm(Value x, const NormWeights& norm_weights, std::string_view name);
  Value linear(Value x, const LinearWeights& linear_weights, std::string_view name);

  /// Queries times the temperature of their position, where the layer has one.
  Value tempered(Value q);
  /// What a block adds, times the model's factor.
  Value scaled_residual(Value added);

  /// What the layer's attention to itself needs to know, but for its scale.
  AttentionParams attention_params(const GraphOptions::LayerCache& cells) const;
};

}  // namespace quipu
