// Room, and what a sliding window forgets to make some: only cells that no later token of their sequences can
// see, and only when their place is needed.
#include <algorithm>
#include <bit>

#include "memory/paged_cells.h"

namespace quipu {

// Makes room for one cell that all these sequences will share.
bool PagedCells::has_room(std::span<const std::int32_t> sequences) {
  if (!config_.per_sequence) {
    while (n_used_cells() >= config_.n_cells) {
      if (!forget_cell(sequences)) return false;
    }
    return true;
  }
  for (const std::int32_t s : sequences) {
    while (n_cells_of(s) >= config_.n_cells) {
      if (!forget_own_cell(s)) return false;
    }
  }
  return true;
}

bool PagedCells::holds_window(std::int32_t sequence) const {
  if (config_.window == 0) return true;
  const std::int32_t hidden = max_position(sequence) + 1 - config_.window;
  if (first_ == nullptr) return forgotten_position_[at(sequence)] <= std::max(hidden, -1);

  const PositionRange seen{std::max(hidden + 1, 0), INT32_MAX};
  for (std::size_t i = first_->n_entries(sequence); i-- > 0;) {
    const std::int32_t all = first_->entry(sequence, i);
    if (all < 0) continue;
    const Slots wanted = first_->slots_in(all, seen);
    const std::int32_t own = entry(sequence, i);
    if ((wanted & ~(own < 0 ? 0 : live_slots(own))) != 0) return false;
    if (wanted == 0 && first_->ordered_[at(sequence)] != 0) break;
  }
  return true;
}

// Highest position that no later token of the sequence sees; the tokens of this micro-batch are all later.
std::int32_t PagedCells::horizon(std::int32_t sequence) const {
  const bool written = sequence_written_[at(sequence)] == micro_batch_;
  const std::int32_t next = written ? position_before_batch_[at(sequence)] : max_position(sequence) + 1;
  return next - config_.window;
}

std::int32_t PagedCells::horizon_of_page(std::size_t index, std::int32_t page) const {
  std::int32_t lowest = INT32_MAX;
  for (std::int32_t s = 0, n_left = page_refs_[at(page)]; n_left > 0; ++s) {
    if (entry(s, index) != page) continue;
    lowest = std::min(lowest, horizon(s));
    --n_left;
  }
  return lowest;
}

// For a cell that is in several pages.
bool PagedCells::is_hidden_from_all(std::size_t index, std::int32_t slot, std::int32_t id) const {
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    const std::int32_t page = entry(s, index);
    if (page < 0 || ids_[cell(page, slot)] != id) continue;
    if (positions_[cell(page, slot)] > horizon(s)) return false;
  }
  return true;
}

// The sequence's lowest cell that it cannot see any more, nor, `from_all`, can any other that holds it.
std::optional<PagedCells::CellRef> PagedCells::find_hidden(std::int32_t sequence, bool from_all) const {
  const bool ordered = ordered_[at(sequence)] != 0;
  const std::int32_t own_horizon = horizon(sequence);
  std::optional<CellRef> lowest;
  for (std::size_t i = at(first_entry_[at(sequence)]); i < n_entries(sequence); ++i) {
    const std::int32_t page = entry(sequence, i);
    if (page < 0) continue;
    const bool shared = from_all && page_refs_[at(page)] > 1;
    const std::int32_t limit = shared ? horizon_of_page(i, page) : own_horizon;
    Slots live = live_slots(page);
    if (ordered && positions_[cell(page, std::countr_zero(live))] > own_horizon) break;
    for (; live != 0; live &= live - 1) {
      const std::int32_t slot = std::countr_zero(live);
      const std::int32_t position = positions_[cell(page, slot)];
      if (position > limit || (lowest && position >= lowest->position)) continue;
      const std::int32_t id = ids_[cell(page, slot)];
      if (from_all && id_refs_[at(id)] > 1 && !is_hidden_from_all(i, slot, id)) continue;
      lowest = CellRef{i, slot, id, position};
      if (ordered) return lowest;
    }
  }
  return lowest;
}

// One cell fewer: of these sequences if possible, else the one that is farthest behind its window.
bool PagedCells::forget_cell(std::span<const std::int32_t> sequences) {
  if (config_.window == 0) return false;
  for (const std::int32_t s : sequences) {
    if (const auto hidden = find_hidden(s, true)) {
      forget_everywhere(*hidden);
      return true;
    }
  }
  std::optional<CellRef> farthest;
  std::int32_t distance = -1;
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    const auto hidden = find_hidden(s, true);
    if (!hidden || horizon(s) - hidden->position <= distance) continue;
    distance = horizon(s) - hidden->position;
    farthest = hidden;
  }
  if (!farthest) return false;
  forget_everywhere(*farthest);
  return true;
}

// One cell of this sequence fewer, whoever else holds it.
bool PagedCells::forget_own_cell(std::int32_t sequence) {
  if (config_.window == 0) return false;
  const auto hidden = find_hidden(sequence, false);
  if (!hidden) return false;
  const std::int32_t page = entry(sequence, hidden->index);
  const Slots live = live_slots(page);
  Slots out = Slots{1} << hidden->slot;
  std::int32_t rest = -1;
  if (page_refs_[at(page)] > 1 && live != out) {
    rest = share_or_copy_page(hidden->index, page, live & ~out, true);
    if (rest < 0) {  // no page left for a difference: the page as a whole, if it is hidden
      out = live;
      if (slots_in(page, {0, horizon(sequence) + 1}) != live) return false;
    }
  }
  note_forgotten(sequence, hidden->index, page, out);
  if (rest < 0 && live != out) {
    drop_cell(page, hidden->slot);
  } else {
    point(sequence, hidden->index, rest);
  }
  refresh_end(sequence);
  return true;
}

// The cell leaves every sequence and page that holds it.
void PagedCells::forget_everywhere(const CellRef& hidden) {
  const Slots slots = Slots{1} << hidden.slot;
  const std::int32_t place = static_cast<std::int32_t>(hidden.index) * kPagePlaces + hidden.slot;
  const auto holds = [&](std::int32_t page) {
    return page >= 0 && ids_[cell(page, hidden.slot)] == hidden.id;
  };
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    const std::int32_t page = entry(s, hidden.index);
    if (holds(page)) note_forgotten(s, hidden.index, page, slots);
  }
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    const std::int32_t page = entry(s, hidden.index);
    if (holds(page)) drop_cell(page, hidden.slot);
  }
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    const std::int32_t page = entry(s, hidden.index);
    if (page >= 0 && live_slots(page) == 0) point(s, hidden.index, -1);
    // Only where places and positions are in different orders can it have been the last in one way only.
    if (end_place_[at(s)] == place + 1 || max_position_[at(s)] == hidden.position) refresh_end(s);
  }
}

// One page fewer: of these sequences if possible, else of any.
bool PagedCells::forget_page(std::span<const std::int32_t> sequences) {
  if (config_.window == 0) return false;
  for (const std::int32_t s : sequences) {
    if (forget_page_of(s)) return true;
  }
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    if (forget_page_of(s)) return true;
  }
  return false;
}

bool PagedCells::forget_page_of(std::int32_t sequence) {
  for (std::size_t i = at(first_entry_[at(sequence)]); i < n_entries(sequence); ++i) {
    const std::int32_t page = entry(sequence, i);
    if (page < 0) continue;
    const Slots live = live_slots(page);
    if (slots_in(page, {0, horizon_of_page(i, page) + 1}) != live) continue;
    for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
      if (entry(s, i) != page) continue;
      note_forgotten(s, i, page, live);
      point(s, i, -1);
      refresh_end(s);
    }
    return true;
  }
  return false;
}

// Keeps count of what a sequence is about to lose.
void PagedCells::note_forgotten(std::int32_t sequence, std::size_t index, std::int32_t page, Slots slots) {
  const std::size_t s = at(sequence);
  n_cells_.set(s, n_cells_[s] - std::popcount(slots));
  for (; slots != 0; slots &= slots - 1) {
    const std::int32_t slot = std::countr_zero(slots);
    const std::int32_t place = static_cast<std::int32_t>(index) * kPagePlaces + slot;
    const std::int32_t position = positions_[cell(page, slot)];
    const bool first = forgotten_position_[s] < 0;
    forgotten_low_.set(s, first ? position : std::min(position, forgotten_low_[s]));
    forgotten_position_.set(s, std::max(position, forgotten_position_[s]));
    forgotten_end_.set(s, std::max(forgotten_end_[s], place + 1));
  }
}

}  // namespace quipu
