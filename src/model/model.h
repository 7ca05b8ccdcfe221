// A loaded model: hyper-parameters, vocabulary, weights on a device, and the graph that its architecture
// builds. Immutable once loaded and shared by many contexts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device.h"
#include "gguf/reader.h"
#include "graph/graph.h"
#include "model/hparams.h"
#include "model/weights.h"
#include "vocab/vocab.h"

namespace quipu {

struct ModelLoadOptions {
  bool use_mmap = true;
  /// Called with the share loaded so far, 0 to 1; returning false stops the load with
  /// Error(invalid_argument).
  std::function<bool(float)> progress;
};

/// What one layer keeps of past tokens.
struct LayerCacheSpec {
  std::size_t n_kv_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;
  std::uint32_t window = 0;  ///< sliding window in positions; 0: sees everything
};

/// What a context decides about a graph.
struct GraphOptions {
  struct LayerCache {
    KvStorage* storage;
    std::size_t layout;  ///< ordinal of the AttentionLayout that serves this layer
  };
  std::span<const LayerCache> caches;  ///< one for each layer
  RopeOverrides rope;                  ///< the context's rotation parameters; unset ones are the model's
  bool causal = true;
};

/// Ordinals of the inputs and outputs of a model's graph, for RunArguments.
struct ModelGraph {
  enum Input : std::size_t { tokens, embeddings, positions, output_rows, n_inputs };
  enum Output : std::size_t { logits, n_outputs };
  std::unique_ptr<Graph> graph;
};

class LoadedModel {
 public:
  static std::shared_ptr<const LoadedModel> load(const std::filesystem::path& path,
                                                 const ModelLoadOptions& options = {});
  /// From a file in memory; the bytes are not needed afterwards.
  static std::shared_ptr<const LoadedModel> load(std::span<const std::byte> bytes, const std::string& origin,
                                                 const ModelLoadOptions& options = {});

  const Hparams& hparams() const { return hparams_; }
  const gguf::Metadata& metadata() const { return metadata_; }
  const Vocab& vocab() const { return vocab_; }
  Device& device() const { return *device_; }
  /// By layer.
  std::vector<LayerCacheSpec> cache_specs() const;
  /// The forward pass: tokens or embeddings to logits of the output rows.
  ModelGraph build_graph(const GraphOptions& options) const;

  std::uint64_t n_params() const { return n_params_; }
  std::uint64_t file_bytes() const { return file_bytes_; }  ///< tensor data in the file
  std::uint64_t device_bytes() const;                       ///< what the weights take in memory

  const Weight* find_weight(std::string_view name) const;

 private:
  friend class ModelLoader;
  LoadedModel(gguf::Metadata metadata, Hparams hparams, Vocab vocab);

  gguf::Metadata metadata_;
  Hparams hparams_;
  Vocab vocab_;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<WeightStorage>> storages_;
  std::vector<std::unique_ptr<Weight>> weight_list_;
  ModelWeights weights_;             // by role, pointing into weight_list_
  std::vector<float> rope_factors_;  // rope_freqs.weight, which graphs need as numbers
  std::uint64_t n_params_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace quipu
