// What every part of a saved state must be like, whoever it is for.
#include "memory/state_cells.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::int64_t kEndPosition = std::numeric_limits<std::int32_t>::max();

bool is_position(std::int64_t position) {
  return position >= 0 && position < kEndPosition;
}

void check_cells(const MemoryState::Part& part, std::size_t number) {
  for (const MemoryState::Cell& cell : part.cells) {
    if (is_position(cell.position) && is_position(std::int64_t{cell.position} - cell.shift)) continue;
    fail(ErrorCode::bad_file, "state: part {} has a cell of position {}, changed by {}", number,
         cell.position, cell.shift);
  }
}

void check_forgotten(const MemoryState::Sequence& sequence, std::size_t number, bool windowed) {
  const bool forgot = sequence.forgotten_high != -1;
  const bool right = forgot
                         ? windowed && is_position(sequence.forgotten_high) && sequence.forgotten_low >= 0 &&
                               sequence.forgotten_low <= sequence.forgotten_high &&
                               sequence.forgotten_end >= 0 && sequence.forgotten_end <= kEndRestoredPlace
                         : sequence.forgotten_end == 0 && sequence.forgotten_low == 0;
  if (right) return;
  fail(ErrorCode::bad_file, "state: part {} has forgotten positions {} to {} of sequence {}", number,
       sequence.forgotten_low, sequence.forgotten_high, sequence.id);
}

// Places ascend, cells are there, none is named twice by a sequence or by nobody.
void check_sequences(const MemoryState::Part& part, std::size_t number, bool windowed) {
  std::vector<std::uint32_t> last_owner(part.cells.size(), 0);  // index of the sequence + 1
  std::uint32_t owner = 0;
  std::int32_t last_id = -1;
  for (const MemoryState::Sequence& sequence : part.sequences) {
    ++owner;
    if (sequence.id <= last_id) {
      fail(ErrorCode::bad_file, "state: part {} has sequence {} after {}", number, sequence.id, last_id);
    }
    last_id = sequence.id;
    check_forgotten(sequence, number, windowed);
    std::int32_t last_place = -1;
    for (const MemoryState::Placed& placed : sequence.cells) {
      const bool right = placed.place > last_place && placed.place < kEndRestoredPlace &&
                         placed.cell < part.cells.size() && last_owner[placed.cell] != owner;
      if (!right) {
        fail(ErrorCode::bad_file, "state: part {} has cell {} in place {} of sequence {}, behind place {}",
             number, placed.cell, placed.place, sequence.id, last_place);
      }
      last_place = placed.place;
      last_owner[placed.cell] = owner;
    }
  }
  if (std::find(last_owner.begin(), last_owner.end(), 0U) != last_owner.end()) {
    fail(ErrorCode::bad_file, "state: part {} has a cell of no sequence", number);
  }
}

}  // namespace

void check_state_part(const MemoryState::Part& part, std::size_t number, bool windowed) {
  check_cells(part, number);
  check_sequences(part, number, windowed);
}

}  // namespace quipu
