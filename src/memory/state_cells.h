// Parts of saved states beside those of the memory, and what every part must be like.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "graph/storage.h"
#include "memory/memory_state.h"

namespace quipu {

/// Cells that a state has as one more part: what a decoder sees of its encoder.
class StateCells {
 public:
  virtual ~StateCells() = default;

  virtual std::span<const std::unique_ptr<KvStorage>> storages() const = 0;
  /// Without data where the scope is partial, as trimming leaves these cells alone.
  virtual MemoryState::Part describe(const StateScope& scope) const = 0;
  /// Refuses as Memory::restore does, and changes nothing yet. `number`: of the part.
  virtual void prepare_restore(const MemoryState::Part& part, std::size_t number,
                               const StateScope& scope) = 0;
  /// What was prepared takes the place of what is there. Cannot fail.
  virtual void commit_restore(const CellSource& source) = 0;
};

/// Error(bad_file) for a part that contradicts itself: positions and places are possible, a sequence's places
/// ascend, and its cells are there, none of them twice; every cell has a sequence.
void check_state_part(const MemoryState::Part& part, std::size_t number, bool windowed);

}  // namespace quipu
