// What a caller submits, and the form in which it is known to be right: a batch is checked as a whole before
// anything changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/memory.h"
#include "quipu/types.h"

namespace quipu {

/// A flat batch. An empty array is a missing one.
struct BatchView {
  std::span<const Token> tokens = {};        ///< [n_tokens]; kNoToken where the embedding counts
  std::span<const float> embeddings = {};    ///< [n_tokens, embedding_width]
  std::size_t embedding_width = 0;           ///< must be the model's
  std::span<const Position> positions = {};  ///< [n_tokens]; missing: each sequence continues
  /// [n_tokens] where a token's end in `sequences`; missing: all are of sequence 0
  std::span<const std::size_t> sequence_ends = {};
  std::span<const SequenceId> sequences = {};
  std::span<const char> outputs = {};  ///< [n_tokens]; missing: the last token only
};

/// What a context allows.
struct BatchLimits {
  std::size_t n_vocab = 0;
  std::size_t n_embd = 0;
  std::size_t n_sequences = 1;
  std::size_t n_batch = 0;
  std::size_t n_outputs = 0;
  bool unified = false;                              ///< a token may name several sequences
  bool all_outputs = false;                          ///< every token is an output, whatever its flag
  bool is_whole = false;                             ///< not causal: the batch is computed at once
  bool once_per_sequence = false;                    ///< a token is computed once in each of its sequences
  std::size_t n_ubatch = 0;                          ///< most tokens that are computed at once
  std::optional<std::uint32_t> position_limit = {};  ///< positions from here on have no embedding
};

/// A batch that fits its context. Reused, so that steady generation does not allocate.
class CheckedBatch {
 public:
  /// Error(invalid_argument) names the token's index and the value. The view must stay while this is used.
  void assign(const BatchView& view, const BatchLimits& limits, const Memory& memory);

  std::size_t n_tokens() const { return n_tokens_; }
  /// Batch indices of the tokens that are outputs, ascending.
  std::span<const std::uint32_t> outputs() const { return output_indices_; }
  Token token(std::size_t t) const { return tokens_.empty() ? kNoToken : tokens_[t]; }
  std::span<const float> embedding(std::size_t t) const {
    return embeddings_.subspan(t * embedding_width_, embedding_width_);
  }
  Position position(std::size_t t) const { return positions_[t]; }
  bool is_output(std::size_t t) const {
    if (all_outputs_) return true;
    return output_flags_.empty() ? t + 1 == n_tokens_ : output_flags_[t] != 0;
  }
  std::span<const SequenceId> sequences_of(std::size_t t) const { return memory_batch().sequences_of(t); }
  bool has_embeddings() const { return has_embeddings_; }
  bool is_once_per_sequence() const { return once_per_sequence_; }
  /// Rows that all outputs take.
  std::size_t n_rows() const { return n_rows_; }
  MemoryBatch memory_batch() const { return {positions_, sequence_offsets_, sequences_}; }

 private:
  void check_sizes(const BatchView& view, const BatchLimits& limits);
  void check_tokens(const BatchLimits& limits);
  void take_sequences(const BatchView& view, const BatchLimits& limits);
  void take_positions(const BatchView& view, const BatchLimits& limits, const Memory& memory);
  void check_togetherness(std::size_t t, std::span<const SequenceId> sequences, const Memory& memory);
  void check_parting() const;
  void take_outputs(const BatchLimits& limits);

  std::size_t n_tokens_ = 0;
  bool has_embeddings_ = false;
  bool all_outputs_ = false;
  bool once_per_sequence_ = false;
  std::size_t n_rows_ = 0;
  std::span<const Token> tokens_;
  std::span<const float> embeddings_;
  std::size_t embedding_width_ = 0;
  std::span<const char> output_flags_;
  std::vector<std::uint32_t> output_indices_;
  std::vector<Position> positions_;
  std::vector<std::uint32_t> sequence_offsets_;
  std::vector<SequenceId> sequences_;

  // By sequence: the position that continues it, and the last token of the batch that it took part in,
  // plus 1.
  std::vector<std::int64_t> next_;
  std::vector<std::size_t> last_token_;
};

}  // namespace quipu
