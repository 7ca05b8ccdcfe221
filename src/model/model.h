// A loaded model: hyper-parameters, vocabulary, weights on a device, and the graph that its architecture
// builds. Immutable once loaded and shared by many contexts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
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
  std::function<bool(float)> progress{};
  /// Everything but the weights' numbers: for asking what a model and its contexts would take, which then
  /// take next to nothing.
  bool without_data = false;
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
  std::span<const LayerCache> caches{};  ///< one for each of cache_specs()
  /// Encoder-decoder models: one for each decoder layer. The encoder's graph stores what the decoder's reads;
  /// cells are the encoder's tokens. For the decoder's graph the layout says of each of its tokens which
  /// sequence it looks at; position and place count for nothing.
  std::span<const LayerCache> cross_caches{};
  RopeOverrides rope{};  ///< the context's rotation parameters; unset ones are the model's
  bool causal = true;
  bool all_experts = false;  ///< mixtures use every expert, so that a run touches all weights
  bool logits = true;       ///< ignored where the model has no head
  bool embeddings = false;  ///< the normed output of the last layer
};

/// A forward pass, with the ordinals of its inputs and outputs for RunArguments.
struct ModelGraph {
  enum Input : std::size_t { tokens, embeddings, positions, output_rows, n_inputs };
  std::unique_ptr<Graph> graph;
  std::optional<std::size_t> logits_output{};      ///< [n_outputs, n_vocab]
  std::optional<std::size_t> embeddings_output{};  ///< [n_outputs, n_embd_out]
};

/// From pooled embeddings, the one input [n_outputs, n_embd], to scores, the one output [n_outputs,
/// n_classes].
struct RankGraph {
  std::unique_ptr<Graph> graph;
  Pooling pooling;  ///< how the embeddings are pooled: first, last or mean
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
  /// False: loaded without data, so that nothing can be computed.
  bool has_data() const { return has_data_; }

  /// The model has an encoder whose output a decoder attends to, or that is all there is of such a model.
  bool has_encoder() const;
  bool has_decoder() const;  ///< false for an encoder that has lost its decoder
  bool has_memory() const;   ///< past tokens are kept; else a text is seen at once, in one micro-batch
  bool has_logits() const;
  bool has_rank_head() const;
  /// Elements of an embedding; with rank pooling there are hparams().n_classes scores instead.
  std::uint32_t n_embd_out() const;
  /// Positions from here on have no embedding; nothing where any position will do.
  std::optional<std::uint32_t> position_limit() const;

  /// What each attention to past tokens keeps, in the order of the computation: of the decoder, or of the
  /// only layers. Encoders keep it for as long as a run takes.
  std::vector<LayerCacheSpec> cache_specs() const;
  /// The same for the encoder of an encoder-decoder model, and what its decoder's layers keep of the
  /// encoder's output; both empty for others.
  std::vector<LayerCacheSpec> encoder_cache_specs() const;
  std::vector<LayerCacheSpec> cross_cache_specs() const;

  /// Whether positions of kept tokens may change.
  bool can_shift() const;
  /// How keys of the numbered one of cache_specs() turn with their position; nothing where they don't.
  std::optional<KeyRotation> key_rotation(std::size_t cache, const RopeOverrides& overrides) const;

  /// The forward pass: tokens or embeddings to what the options ask for of the output rows. Of
  /// encoder-decoder models the decoder.
  ModelGraph build_graph(const GraphOptions& options) const;
  /// Of encoder-decoder models the encoder: fills options.cross_caches, and gives embeddings if asked for.
  ModelGraph build_encoder_graph(const GraphOptions& options) const;
  /// Requires has_rank_head().
  RankGraph build_rank_head() const;

  std::uint64_t n_params() const { return n_params_; }
  std::uint64_t file_bytes() const { return file_bytes_; }  ///< tensor data in the file
  std::uint64_t device_bytes() const;                       ///< what the weights take in memory

  const Weight* find_weight(std::string_view name) const;

 private:
  friend class ModelLoader;
  LoadedModel(gguf::Metadata metadata, Hparams hparams, Vocab vocab, Backing backing);

  gguf::Metadata metadata_;
  Hparams hparams_;
  Vocab vocab_;
  bool has_data_;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<WeightStorage>> storages_;
  std::vector<std::unique_ptr<Weight>> weight_list_;
  ModelWeights weights_;  // by role, pointing into weight_list_
  std::uint64_t n_params_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace quipu
