// Models: files that are looked into, and models that run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quipu/metadata.h"
#include "quipu/sampler.h"
#include "quipu/tokenizer.h"

namespace quipu {

/// What a model file lacks to run.
struct ModelFileCheck {
  /// One line each, which names the file, the key or tensor, what is expected and what is found. A fault in
  /// the metadata hides those of the tensors, which are expected by what the metadata says. Empty: it runs.
  std::vector<std::string> problems;
  /// Names of tensors that would not be used.
  std::vector<std::string> unused_tensors;
};

/// A GGUF file, whole or split (named by its first shard), opened to see what is in it; nothing is loaded.
/// Files of architectures that Quipu cannot run open as well. A shared handle: cheap to copy.
class ModelFile {
 public:
  /// Error(io), Error(bad_file) or Error(unsupported) in one line that names the file, the key or tensor, and
  /// the fault. A file cut short is found here.
  static ModelFile open(const std::filesystem::path& path);
  /// The small model that is part of the library.
  static ModelFile built_in();

  /// The path as it was given, or a name in angle brackets for the built-in model.
  std::string name() const;
  Metadata metadata() const;
  /// In the file's order.
  std::vector<TensorDescription> tensors() const;
  /// Loads the tokenizer alone. Error(bad_file) or Error(unsupported) as for Model::load.
  Tokenizer tokenizer() const;
  /// Everything that Model::load would refuse, but for the numbers in tensors. Nothing is loaded.
  ModelFileCheck check() const;

  /// The value of `general.architecture`, or empty.
  std::string architecture() const;
  std::uint32_t version() const;
  std::uint32_t alignment() const;
  std::size_t n_shards() const;
  std::uint64_t file_bytes() const;
  std::uint64_t tensor_bytes() const;
  /// Elements of all tensors.
  std::uint64_t n_params() const;

 private:
  friend struct ApiAccess;
  struct Impl;
  explicit ModelFile(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

struct ModelOptions {
  bool use_mmap = true;  ///< read through the page cache instead of by read calls
  /// Called now and then from the loading thread with the fraction done, in [0, 1]. Returning false stops
  /// loading with Error(invalid_argument) "... cancelled".
  std::function<bool(float)> progress;
  /// Everything but the weights' numbers, to ask what the model and its contexts would take.
  bool without_data = false;
};

/// A model ready to run. A shared handle: cheap to copy, immutable, used by any number of contexts and
/// threads.
class Model {
 public:
  /// Error(io), Error(bad_file) or Error(unsupported) as for ModelFile::open, also for what the architecture
  /// needs and the file lacks; Error(out_of_memory).
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});
  /// The small model that is part of the library: tells short stories and answers small questions.
  static Model built_in(const ModelOptions& options = {});

  std::string name() const;
  std::string architecture() const;
  Metadata metadata() const;
  Tokenizer tokenizer() const;

  std::uint32_t n_vocab() const;
  /// Longest text that it was trained on, in tokens; 0 if the file does not say.
  std::uint32_t n_ctx_train() const;
  std::uint32_t n_embd() const;
  /// Whole texts are read at once, by Context::encode.
  bool has_encoder() const;
  /// False for encoders, which give embeddings only.
  bool has_decoder() const;
  /// Of encoder-decoder models: what decoding begins with; the beginning of a text where the file does not
  /// say.
  std::optional<Token> decoder_start_token() const;
  std::uint32_t n_layers() const;
  std::uint64_t n_params() const;
  /// Bytes of its weights as the file stores them.
  std::uint64_t bytes() const;

  /// The usual options with what the file recommends: `general.sampling.` temp, top_k, top_p, min_p,
  /// xtc_probability, xtc_threshold, penalty_last_n, penalty_repeat, mirostat, mirostat_tau, mirostat_eta and
  /// sequence (the order).
  SamplingOptions recommended_sampling() const;

 private:
  friend struct ApiAccess;
  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace quipu
