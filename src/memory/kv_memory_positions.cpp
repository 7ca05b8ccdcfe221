// Adding to positions and dividing them: in the books at once, in stored keys before the next run.
#include <limits>

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
  positions_changed_ = true;
}

PendingResult KvMemory::apply_pending(const std::function<bool()>& abort) {
  if (!turn_keys(abort)) return PendingResult::aborted;
  if (!positions_changed_) return PendingResult::done;
  void_preparation();
  {
    std::vector<std::vector<CellShift>> turns(parts_.size());
    Transaction transaction(*this);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i]->cells->settle()) return PendingResult::no_room;
      parts_[i]->cells->take_shifts(turns[i]);
    }
    transaction.finish();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i]->turns = std::move(turns[i]);
      parts_[i]->n_turned_layers = 0;
    }
  }
  positions_changed_ = false;
  return turn_keys(abort) ? PendingResult::done : PendingResult::aborted;
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
