// Running a model: batches in, logits and embeddings out, with a memory of past tokens for each sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quipu/batch.h"
#include "quipu/compression.h"
#include "quipu/model.h"
#include "quipu/observer.h"
#include "quipu/thread_pool.h"
#include "quipu/types.h"

namespace quipu {

/// What keys and values are stored as.
enum class CacheType { f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl };

/// Rotation parameters; an unset one is the model's. Linear: positions times the frequency scale. YaRN: Peng
/// et al., "YaRN: efficient context window extension of large language models", 2023.
struct RopeOptions {
  enum class Scaling { none, linear, yarn };
  std::optional<Scaling> scaling = std::nullopt;
  std::optional<float> base = std::nullopt;
  std::optional<float> frequency_scale = std::nullopt;
  std::optional<std::uint32_t> original_context = std::nullopt;
  std::optional<float> yarn_extrapolation = std::nullopt;
  std::optional<float> yarn_attention_factor = std::nullopt;
  std::optional<float> yarn_beta_fast = std::nullopt;
  std::optional<float> yarn_beta_slow = std::nullopt;
};

class Context;

struct ContextOptions {
  /// Tokens that the memory holds, rounded up to a multiple of 256; 0: the length the model was trained for.
  std::uint32_t n_ctx = 512;
  std::uint32_t n_batch = 2048;     ///< most tokens in one batch; 0: as n_ubatch
  std::uint32_t n_ubatch = 512;     ///< most tokens that are computed at once; 0: as n_batch
  std::uint32_t n_seq_max = 1;      ///< sequences; at most 256
  std::uint32_t n_outputs_max = 0;  ///< most tokens of a batch whose logits are wanted; 0: n_batch
  int n_threads = 0;                ///< for one token at a time; 0 and below: available_threads()
  int n_threads_batch = 0;          ///< for several tokens
  CacheType type_k = CacheType::f16;
  CacheType type_v = CacheType::f16;
  bool kv_unified = false;  ///< one capacity for all sequences; else n_ctx / n_seq_max for each
  bool swa_full =
      true;  ///< layers with a sliding window remember everything, so that any removal is possible
  RopeOptions rope;
  /// Outputs have embeddings; every token is an output then. Models without logits always give embeddings.
  bool embeddings = false;
  std::optional<Pooling> pooling = std::nullopt;  ///< of embeddings; unset: the model's, or none
  std::optional<bool> causal = std::nullopt;      ///< tokens see only what is before them; unset: the model's
  /// Asked before and during each run, by the thread that called decode; returning true stops the batch. Must
  /// not run a context that shares a thread pool with this one.
  std::function<bool()> abort;
  /// Use this context's memory, as for drafts: what one of the two computes, removes, changes or loads, both
  /// see. Either may be destroyed first; together they are used by one thread at a time. The model and all
  /// that decides about the memory (n_ctx, n_seq_max, types, rotation ...) must be the same, and n_ubatch no
  /// larger.
  Context* memory_of = nullptr;
};

enum class DecodeResult {
  ok,
  no_room,  ///< the memory cannot hold the batch; nothing was changed
  aborted,  ///< by the callback: what was computed is in memory (see max_position), there are no logits
};

/// What a context has done since it was made or since reset_counters().
struct Counters {
  double load_seconds = 0;  ///< from the context's making to its first run
  double prompt_seconds = 0;
  double generation_seconds = 0;
  std::uint64_t prompt_tokens = 0;      ///< submitted in batches of several tokens
  std::uint64_t generation_tokens = 0;  ///< submitted one at a time
  std::uint64_t plans_reused = 0;       ///< runs that needed no new plan
  std::uint64_t reallocations = 0;      ///< since the context was made; a reset keeps them
};

/// Bytes that a context takes, and its model.
struct MemoryUse {
  std::uint64_t model = 0;    ///< weights
  std::uint64_t context = 0;  ///< keys and values; 0 where they are another context's (memory_of)
  std::uint64_t compute = 0;  ///< intermediate results
  std::uint64_t outputs = 0;  ///< rows of logits and embeddings
};

/// What goes into a state.
struct SaveOptions {
  std::optional<SequenceId> sequence = std::nullopt;  ///< that alone; nothing: all that the context remembers
  std::span<const Token> tokens = {};                 ///< kept along, to know what the state stands for
  /// Only what removing tokens behind a point cannot bring back: of models with sliding windows the windowed
  /// layers. Much smaller; loading it takes a sequence back to where it was, if it only grew since.
  bool partial_only = false;
  /// Loading tells by itself whether a state is compressed.
  Compression compression = Compression::none;
};

/// A model at work. Used by one thread at a time; of contexts that share a model, each has its own. Results
/// do not depend on batch sizes, threads or other sequences, to the last bit. A context that was moved from
/// can only be assigned to or destroyed.
class Context {
 public:
  /// Error(invalid_argument) or Error(unsupported) naming the option and the value; Error(out_of_memory).
  /// Options that are adjusted rather than refused are logged.
  explicit Context(const Model& model, const ContextOptions& options = {});
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// Computes a batch. Positions must continue each sequence. A batch that is not acceptable is
  /// Error(invalid_argument) naming the token's place in the batch and the value; memory and logits stay as
  /// they were.
  DecodeResult decode(const Batch& batch);
  /// The same for tokens that continue sequence 0, with logits for the last.
  DecodeResult decode(std::span<const Token> tokens);
  /// Computes a batch at once, of at most n_ubatch tokens, each of which sees all of its sequence, before and
  /// behind it. Memory is neither looked at nor changed. Every token is an output. This is what encoders do
  /// (decode does the same there); the next decodes of encoder-decoder models look at what was encoded last.
  /// A token of several sequences counts, and is computed, once in each: their embeddings are those of each
  /// alone, the token's own row is that of its first. Else as decode.
  DecodeResult encode(const Batch& batch);
  /// The same for tokens of sequence 0.
  DecodeResult encode(std::span<const Token> tokens);

  /// Logits of the last batch for one of its tokens, [n_vocab]; valid until the next batch. A negative index
  /// counts from the last output. Error(invalid_argument) for a token that was no output.
  std::span<const float> logits(std::ptrdiff_t batch_index) const;
  /// Likewise its embedding, [n_embd_out], if embeddings are on and not pooled.
  std::span<const float> embedding(std::ptrdiff_t batch_index) const;
  /// The pooled embedding of what the last batch had of a sequence, [n_embd_out]; with Pooling::rank its
  /// scores. Not normalized. Error(invalid_argument) if there is none.
  std::span<const float> sequence_embedding(SequenceId sequence) const;
  std::size_t n_embd_out() const;
  Pooling pooling() const;

  // The memory. Positions [p0, p1); a negative bound is open. A sequence outside [0, n_seq_max) is
  // Error(invalid_argument).

  /// False, and nothing changed, where a partial removal is impossible. Sequence -1 means all.
  bool remove(SequenceId sequence, Position p0 = -1, Position p1 = -1);
  /// `to` shares what `from` holds in the range, replacing what it had there. Error(unsupported) where a
  /// sliding window has forgotten what `to` would need; Error(out_of_memory). Nothing is changed then.
  void copy(SequenceId from, SequenceId to, Position p0 = -1, Position p1 = -1);
  /// Removes all other sequences.
  void keep(SequenceId sequence);
  /// Adds to positions; tokens that fall below 0 are removed. Other sequences stay as they are. Nothing is
  /// changed, and a line is logged, where can_shift() is false or a position would be too high.
  void add(SequenceId sequence, Position p0, Position p1, Position delta);
  /// Divides positions, rounding down; as add, and nothing is changed for a divisor below 1.
  void divide(SequenceId sequence, Position p0, Position p1, Position divisor);
  bool can_shift() const;
  /// With `data`, the stored numbers become zero too.
  void clear(bool data = false);
  /// Lowest and highest position of a sequence in memory, -1 if there is none.
  Position min_position(SequenceId sequence) const;
  Position max_position(SequenceId sequence) const;

  // State: what the memory holds, in a format of our own with checksums. It fits the same model with the same
  // rotation and cache types, in any layout and size that has room for it. Loading checks everything first:
  // an error (bad_file names what is wrong) leaves the context as it was.

  std::vector<std::byte> save(const SaveOptions& options = {}) const;
  /// Bytes that save would give now.
  std::size_t state_bytes(const SaveOptions& options = {}) const;
  /// A whole context's state replaces all that is there; one sequence's becomes `sequence`, whatever its
  /// number was. Gives the tokens that were kept along.
  std::vector<Token> load(std::span<const std::byte> state,
                          std::optional<SequenceId> sequence = std::nullopt);
  /// The same in files, which are replaced as a whole or not at all. Error(io).
  void save_file(const std::filesystem::path& path, const SaveOptions& options = {}) const;
  std::vector<Token> load_file(const std::filesystem::path& path,
                               std::optional<SequenceId> sequence = std::nullopt);
  /// Only the tokens that were kept along.
  static std::vector<Token> saved_tokens(std::span<const std::byte> state);
  static std::vector<Token> saved_tokens(const std::filesystem::path& path);

  /// As adjusted.
  std::uint32_t n_ctx() const;
  /// Room of one sequence.
  std::uint32_t n_ctx_per_sequence() const;
  std::uint32_t n_batch() const;
  std::uint32_t n_ubatch() const;
  std::uint32_t n_seq_max() const;
  const Model& model() const;

  // Switches, from the next batch on. The first use of a setting may take a moment to prepare for it.

  /// As at creation: 0 and below is available_threads().
  void set_threads(int n_threads, int n_threads_batch);
  /// Runs use the threads of `pool`, and of `batch_pool`, if given, where they compute several tokens: as
  /// many of them as n_threads and n_threads_batch say. The context keeps the pools for as long as it uses
  /// them.
  void attach(const ThreadPool& pool);
  void attach(const ThreadPool& pool, const ThreadPool& batch_pool);
  /// The context has threads of its own again, as it had at first. Error(out_of_memory) changes nothing.
  void detach();
  void set_embeddings(bool on);
  void set_causal(bool causal);
  /// While on, mixtures of experts use all experts, so that one run brings all weights into memory; what it
  /// computes means nothing: clear() afterwards.
  void set_warm_up(bool on);
  void set_abort(std::function<bool()> abort);
  /// Shows every node of the computation; null: to nobody. The context keeps it while it is set.
  void set_observer(std::shared_ptr<Observer> observer);

  MemoryUse memory_use() const;
  Counters counters() const;
  void reset_counters();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu
