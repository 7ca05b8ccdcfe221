// Adding to positions and dividing them: in the books at once, in stored keys before the sequence's next run.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "memory/kv_memory.h"

namespace quipu {

void KvMemory::add(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t delta) {
  change_positions("adding to", sequence, position_range(p0, p1), {.delta = delta});
}

void KvMemory::divide(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t divisor) {
  if (divisor < 1) {
    log_warning("dividing positions of sequence {} by {} has no meaning and changes nothing", sequence,
                divisor);
    return;
  }
  change_positions("dividing", sequence, position_range(p0, p1), {.divisor = divisor});
}

void KvMemory::change_positions(std::string_view what, std::int32_t sequence, const PositionRange& range,
                                const PositionChange& change) {
  check_sequence(sequence);
  if (!can_shift_) {
    log_warning("{} positions of sequence {} is impossible with this model and changes nothing", what,
                sequence);
    return;
  }
  begin_operation();
  if (range.begin >= range.end) return;
  Transaction transaction(*this);
  for (const auto& part : parts_) {
    if (part->cells->change_positions(sequence, range, change)) continue;
    log_warning("{} positions of sequence {} would lead past {} and changes nothing", what, sequence,
                std::numeric_limits<std::int32_t>::max() - 1);
    return;
  }
  if (!holds_windows(sequence)) {
    log_warning(
        "{} positions of sequence {} changes nothing: the sliding window has forgotten what would be seen",
        what, sequence);
    return;
  }
  transaction.finish();
}

// Have positions of the batch's sequences changed?
bool KvMemory::is_waiting() const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) {
    return std::any_of(batch_sequences_.begin(), batch_sequences_.end(),
                       [&](std::int32_t s) { return part->cells->is_waiting(s); });
  });
}

// Gives the batch's sequences cells of their own where needed. False: there is no room.
bool KvMemory::settle() {
  return std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) {
    part->cells->part_from_waiting(batch_sequences_);
    return part->cells->settle(batch_sequences_);
  });
}

// From here on the changes are done with, as far as the books go; keys must follow.
void KvMemory::decide_turns() {
  std::vector<std::vector<CellShift>> turns(parts_.size());
  Transaction transaction(*this);
  QUIPU_CHECK(settle());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i]->cells->take_shifts(batch_sequences_, turns[i]);
  }
  transaction.finish();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i]->turns = std::move(turns[i]);
    parts_[i]->n_turned_layers = 0;
  }
}

// Goes on where it was stopped. False: stopped again.
bool KvMemory::turn_keys(const std::function<bool()>& abort) {
  for (const auto& part : parts_) {
    if (part->turns.empty()) continue;
    for (std::size_t& layer = part->n_turned_layers; layer < part->storages.size(); ++layer) {
      if (abort && abort()) return false;
      if (part->rotations[layer]) part->storages[layer]->rotate_keys(part->turns, *part->rotations[layer]);
    }
    part->turns.clear();
  }
  return true;
}

}  // namespace quipu
