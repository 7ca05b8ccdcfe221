// What a model remembers of past tokens: one interface for every kind of memory. Two phases everywhere:
// prepare may refuse and changes nothing, commit cannot fail; so a memory made of several parts does all or
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/ops/attention.h"

namespace quipu {

/// Sequence number that means every sequence, where an operation allows it.
inline constexpr std::int32_t kAnySequence = -1;

/// The tokens of a checked batch as a memory sees them: positions, and for each token its sequences (at least
/// one, none twice).
struct MemoryBatch {
  std::span<const std::int32_t> positions;  ///< [n_tokens], each in [0, INT32_MAX)
  std::span<const std::uint32_t>
      sequence_offsets;  ///< [n_tokens + 1]: token t has sequences [offsets[t], offsets[t+1])
  std::span<const std::int32_t> sequences;

  std::size_t n_tokens() const { return positions.size(); }
  std::span<const std::int32_t> sequences_of(std::size_t token) const {
    return sequences.subspan(sequence_offsets[token], sequence_offsets[token + 1] - sequence_offsets[token]);
  }
};

class Memory {
 public:
  virtual ~Memory() = default;

  /// Divides a batch into micro-batches of at most `n_ubatch` tokens and makes sure that all of them will
  /// find room. False if there is none; nothing is changed either way. Any later operation but commit voids
  /// it.
  virtual bool prepare(const MemoryBatch& batch, std::size_t n_ubatch) = 0;
  virtual std::size_t n_micro_batches() const = 0;
  /// Batch indices of the tokens of a prepared micro-batch, in the order in which they are computed.
  virtual std::span<const std::uint32_t> micro_batch(std::size_t index) const = 0;
  /// Gives the tokens of the next prepared micro-batch their cells and fills in the layouts. Cannot fail.
  /// `batch` is the prepared one.
  virtual void commit(const MemoryBatch& batch) = 0;
  /// Takes back what the last commit appended, for every sequence of its tokens, and gives up what was
  /// prepared after it.
  virtual void step_back() = 0;
  /// The layouts of the last commit, by AttentionParams::layout.
  virtual std::span<const AttentionLayout* const> layouts() const = 0;

  // Sequence operations: positions [p0, p1), a negative bound meaning open. A sequence number out of range is
  // Error(invalid_argument).

  /// False, and nothing changed, where this part of the sequence cannot be removed. `sequence` may be
  /// kAnySequence.
  virtual bool remove(std::int32_t sequence, std::int32_t p0, std::int32_t p1) = 0;
  /// The target's cells in the range are replaced by the source's. Nothing is changed by an error:
  /// Error(unsupported) where a sliding window has forgotten what the target would need,
  /// Error(out_of_memory) where no page is left to make the sequences differ.
  virtual void copy(std::int32_t from, std::int32_t to, std::int32_t p0, std::int32_t p1) = 0;
  /// Removes every other sequence.
  virtual void keep(std::int32_t sequence) = 0;
  /// Empties the memory; with `data`, the stored numbers become zero too.
  virtual void clear(bool data) = 0;
  /// Lowest position that is still held in every part of the memory; -1: none.
  virtual std::int32_t min_position(std::int32_t sequence) const = 0;
  /// -1: none.
  virtual std::int32_t max_position(std::int32_t sequence) const = 0;
  /// True if the sequences hold the very same cells (or are all empty), so that one token may join them all.
  virtual bool same_cells(std::span<const std::int32_t> sequences) const = 0;

  /// Stored keys and values.
  virtual std::size_t bytes() const = 0;
};

}  // namespace quipu
