#include "context/batch.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace quipu {
namespace {

void check_length(const char* what, std::size_t length, std::size_t n_tokens) {
  if (length != 0 && length != n_tokens) {
    fail(ErrorCode::invalid_argument, "batch of {} tokens has {} {}", n_tokens, length, what);
  }
}

}  // namespace

void CheckedBatch::assign(const BatchView& view, const BatchLimits& limits, const Memory& memory) {
  check_sizes(view, limits);
  check_tokens(limits);
  take_sequences(view, limits);
  take_positions(view, limits, memory);
  if (limits.is_whole && !limits.once_per_sequence) check_parting();
  take_outputs(limits);
}

void CheckedBatch::take_outputs(const BatchLimits& limits) {
  all_outputs_ = limits.all_outputs;
  once_per_sequence_ = limits.once_per_sequence;
  output_indices_.clear();
  n_rows_ = 0;
  for (std::size_t t = 0; t < n_tokens_; ++t) {
    if (!is_output(t)) continue;
    output_indices_.push_back(static_cast<std::uint32_t>(t));
    n_rows_ += once_per_sequence_ ? sequences_of(t).size() : 1;
  }
  if (output_indices_.size() > limits.n_outputs) {
    fail(ErrorCode::invalid_argument, "batch asks for {} outputs; n_outputs_max is {}",
         output_indices_.size(), limits.n_outputs);
  }
}

void CheckedBatch::check_sizes(const BatchView& view, const BatchLimits& limits) {
  tokens_ = view.tokens;
  embeddings_ = view.embeddings;
  embedding_width_ = view.embedding_width;
  output_flags_ = view.outputs;
  if (!embeddings_.empty() && embedding_width_ != limits.n_embd) {
    fail(ErrorCode::invalid_argument, "embeddings of the batch are {} wide; the model's are {}",
         embedding_width_, limits.n_embd);
  }
  n_tokens_ = tokens_.empty() && limits.n_embd > 0 ? embeddings_.size() / limits.n_embd : tokens_.size();
  if (n_tokens_ == 0) fail(ErrorCode::invalid_argument, "batch has no tokens");
  if (n_tokens_ > limits.n_batch) {
    fail(ErrorCode::invalid_argument, "batch has {} tokens; n_batch is {}", n_tokens_, limits.n_batch);
  }
  if (limits.is_whole && n_tokens_ > limits.n_ubatch) {
    fail(ErrorCode::invalid_argument,
         "batch has {} tokens, which attention that is not causal must compute at once; n_ubatch is {}",
         n_tokens_, limits.n_ubatch);
  }
  if (!embeddings_.empty() && embeddings_.size() != n_tokens_ * embedding_width_) {
    fail(ErrorCode::invalid_argument, "batch of {} tokens has {} numbers as embeddings; {} are needed",
         n_tokens_, embeddings_.size(), n_tokens_ * embedding_width_);
  }
  check_length("positions", view.positions.size(), n_tokens_);
  check_length("lists of sequences", view.sequence_ends.size(), n_tokens_);
  check_length("output flags", view.outputs.size(), n_tokens_);
}

void CheckedBatch::check_tokens(const BatchLimits& limits) {
  has_embeddings_ = false;
  for (std::size_t t = 0; t < n_tokens_; ++t) {
    const Token id = token(t);
    if (id == kNoToken && !embeddings_.empty()) {
      has_embeddings_ = true;
    } else if (id < 0 || static_cast<std::size_t>(id) >= limits.n_vocab) {
      fail(ErrorCode::invalid_argument, "token {} of the batch has id {}, which is not in [0, {})", t, id,
           limits.n_vocab);
    }
  }
}

void CheckedBatch::take_sequences(const BatchView& view, const BatchLimits& limits) {
  sequences_.clear();
  sequence_offsets_.assign(1, 0);
  std::size_t begin = 0;
  for (std::size_t t = 0; t < n_tokens_; ++t) {
    const std::size_t end = view.sequence_ends.empty() ? 0 : view.sequence_ends[t];
    if (view.sequence_ends.empty()) {
      sequences_.push_back(0);
    } else if (end < begin || end > view.sequences.size()) {
      fail(ErrorCode::invalid_argument, "token {} of the batch: its sequences end at {}, not in [{}, {}]", t,
           end, begin, view.sequences.size());
    } else if (end == begin) {
      fail(ErrorCode::invalid_argument, "token {} of the batch names no sequence", t);
    }
    for (; begin < end; ++begin) {
      const SequenceId sequence = view.sequences[begin];
      if (sequence < 0 || static_cast<std::size_t>(sequence) >= limits.n_sequences) {
        fail(ErrorCode::invalid_argument, "token {} of the batch names sequence {}, which is not in [0, {})",
             t, sequence, limits.n_sequences);
      }
      const auto own = std::span(sequences_).subspan(sequence_offsets_.back());
      if (std::find(own.begin(), own.end(), sequence) == own.end()) sequences_.push_back(sequence);
    }
    const std::size_t n_named = sequences_.size() - sequence_offsets_.back();
    if (n_named > 1 && !limits.unified) {
      fail(ErrorCode::invalid_argument, "token {} of the batch names {} sequences, which needs kv_unified", t,
           n_named);
    }
    sequence_offsets_.push_back(static_cast<std::uint32_t>(sequences_.size()));
  }
  if (limits.once_per_sequence && sequences_.size() > limits.n_ubatch) {
    fail(ErrorCode::invalid_argument,
         "batch has {} tokens, counted once for each of their sequences, to compute at once; n_ubatch is {}",
         sequences_.size(), limits.n_ubatch);
  }
}

// Positions continue every sequence; an empty one may begin anywhere.
void CheckedBatch::take_positions(const BatchView& view, const BatchLimits& limits, const Memory& memory) {
  constexpr std::int64_t kUnknown = -2;
  next_.assign(limits.n_sequences, kUnknown);
  last_token_.assign(limits.n_sequences, 0);
  positions_.resize(n_tokens_);
  for (std::size_t t = 0; t < n_tokens_; ++t) {
    const auto sequences =
        std::span(sequences_).subspan(sequence_offsets_[t], sequence_offsets_[t + 1] - sequence_offsets_[t]);
    for (const SequenceId s : sequences) {
      std::int64_t& next = next_[static_cast<std::size_t>(s)];
      if (next == kUnknown) next = std::int64_t{memory.max_position(s)} + 1;
    }
    check_togetherness(t, sequences, memory);

    const std::int64_t next = next_[static_cast<std::size_t>(sequences[0])];
    const std::int64_t position = view.positions.empty() ? next : view.positions[t];
    const bool free_start = next == 0 && position >= 0;
    // The highest position would have no successor.
    if ((position != next && !free_start) || position >= std::numeric_limits<Position>::max()) {
      fail(ErrorCode::invalid_argument,
           "token {} of the batch has position {}, but sequence {} continues at {}", t, position,
           sequences[0], next);
    }
    if (limits.position_limit && position >= *limits.position_limit) {
      fail(ErrorCode::invalid_argument,
           "token {} of the batch has position {}, but the model has no positions from {} on", t, position,
           *limits.position_limit);
    }
    positions_[t] = static_cast<Position>(position);
    for (const SequenceId s : sequences) {
      next_[static_cast<std::size_t>(s)] = position + 1;
      last_token_[static_cast<std::size_t>(s)] = t + 1;
    }
  }
}

// Sequences that a token joins must hold the very same cells: from before the batch, if none of them took
// part in it yet; else they must have gone together since.
void CheckedBatch::check_togetherness(std::size_t t, std::span<const SequenceId> sequences,
                                      const Memory& memory) {
  if (sequences.size() == 1) return;
  const std::size_t last = last_token_[static_cast<std::size_t>(sequences[0])];
  const bool together = std::all_of(sequences.begin(), sequences.end(), [&](SequenceId s) {
    return last_token_[static_cast<std::size_t>(s)] == last;
  });
  if (!together || (last == 0 && !memory.same_cells(sequences))) {
    fail(ErrorCode::invalid_argument,
         "token {} of the batch names sequences {} to {}, which do not hold the same cells", t,
         sequences.front(), sequences.back());
  }
}

// Where a token sees what comes after it, sequences that share it must not part in the batch: it would have
// several results.
void CheckedBatch::check_parting() const {
  for (std::size_t t = 0; t < n_tokens_; ++t) {
    const auto sequences = sequences_of(t);
    const std::size_t last = last_token_[static_cast<std::size_t>(sequences[0])];
    for (const SequenceId s : sequences) {
      if (last_token_[static_cast<std::size_t>(s)] == last) continue;
      fail(ErrorCode::invalid_argument,
           "token {} of the batch names sequences {} and {}, which part later in it: it cannot see both with "
           "attention that is not causal",
           t, sequences[0], s);
    }
  }
}

}  // namespace quipu
