// What a model remembers of past tokens: one interface for every kind of memory. Two phases everywhere:
// prepare may refuse and changes nothing, commit cannot fail; so a memory made of several parts does all or
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "graph/ops/attention.h"
#include "graph/storage.h"
#include "memory/memory_state.h"

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

/// What became of preparing a batch.
enum class PrepareResult : std::uint8_t {
  ready,
  no_room,  ///< nothing is changed, and changes of positions still wait
  aborted,  ///< by the callback; keys that are not turned yet will be before anything else happens
};

class Memory {
 public:
  virtual ~Memory() = default;

  /// Divides a batch into micro-batches of at most `n_ubatch` tokens and makes sure that all of them will
  /// find room. Where positions of its sequences have changed, copies cells that are shared with others and
  /// turns keys; `abort` may be empty, and is asked before each layer. After an error that is done before
  /// anything else happens. Any later operation but commit voids what was prepared.
  virtual PrepareResult prepare(const MemoryBatch& batch, std::size_t n_ubatch,
                                const std::function<bool()>& abort = {}) = 0;
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
  /// False: add and divide change nothing here.
  virtual bool can_shift() const = 0;
  /// Adds to the positions of cells; one that falls below 0 is removed. What a sequence shares with others is
  /// left to them as it was. Reported at once; the stored keys are turned by the sum of all changes when the
  /// sequence runs next, and runs of other sequences do not touch them. Places stay, and cells of equal
  /// positions are in the order of places.
  /// Nothing is changed, and a line is logged, where can_shift is false, a position would have no successor,
  /// or a window has forgotten what would be seen.
  virtual void add(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t delta) = 0;
  /// Divides positions, rounding down. As add; and nothing is changed for a divisor below 1.
  virtual void divide(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t divisor) = 0;
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

  // State: parts with the storages of the layers that they serve. A memory without parts has none.
  virtual std::size_t n_parts() const { return 0; }
  virtual std::uint32_t window(std::size_t) const { return 0; }
  virtual std::span<const std::unique_ptr<KvStorage>> storages(std::size_t) const { return {}; }
  /// How the keys of a part's layer turn; null: they do not.
  virtual const KeyRotation* rotation(std::size_t, std::size_t) const { return nullptr; }
  /// What is there. Finishes turning keys where that was stopped in the middle.
  virtual MemoryState describe(const StateScope&) { return {}; }
  /// Replaces what the scope names by a state of as many parts. An error changes nothing: bad_file for what
  /// contradicts itself, invalid_argument for what does not fit to what is there, out_of_memory for lack of
  /// room.
  virtual void restore(const MemoryState&, const StateScope&, const CellSource&) {}

  /// Stored keys and values.
  virtual std::size_t bytes() const = 0;
};

}  // namespace quipu
