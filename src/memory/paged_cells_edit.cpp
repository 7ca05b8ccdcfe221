// Removing positions from sequences and copying them between sequences.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "memory/paged_cells.h"

namespace quipu {

bool PagedCells::remove(std::int32_t sequence, const PositionRange& range) {
  std::int32_t n_removed = 0;
  for (std::size_t i = n_entries(sequence); i-- > at(first_entry_[at(sequence)]);) {
    const std::int32_t page = entry(sequence, i);
    if (page < 0) continue;
    const Slots live = live_slots(page);
    const Slots out = slots_in(page, range);
    if (out == 0) {
      const bool below = positions_[cell(page, std::countr_zero(live))] < range.begin;
      if (below && ordered_[at(sequence)] != 0) break;
      continue;
    }
    n_removed += std::popcount(out);
    if (out == live) {
      point(sequence, i, -1);
      continue;
    }
    const std::int32_t other = share_or_copy_page(i, page, live & ~out, page_refs_[at(page)] > 1);
    if (other >= 0) {
      point(sequence, i, other);
    } else if (page_refs_[at(page)] == 1) {
      for (Slots rest = out; rest != 0; rest &= rest - 1) drop_cell(page, std::countr_zero(rest));
    } else {
      return false;
    }
  }
  n_cells_.set(at(sequence), n_cells_[at(sequence)] - n_removed);
  refresh_end(sequence);
  drop_forgotten(sequence, range);
  return true;
}

void PagedCells::remove_everywhere(const PositionRange& range) {
  const std::size_t n_pages = config_.n_pages + at(n_virtual_[0]);
  for (std::int32_t page = 0; at(page) < n_pages; ++page) {
    for (Slots out = slots_in(page, range); out != 0; out &= out - 1) drop_cell(page, std::countr_zero(out));
  }
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    for (std::size_t i = n_entries(s); i-- > 0;) {
      const std::int32_t page = entry(s, i);
      if (page >= 0 && live_slots(page) == 0) point(s, i, -1);
    }
    refresh(s);
    drop_forgotten(s, range);
  }
}

// Of what the window forgot, the positions of the range are not the sequence's any more. What it forgot is
// known by the lowest and the highest position; cells are forgotten from the lowest up.
void PagedCells::drop_forgotten(std::int32_t sequence, const PositionRange& range) {
  const std::size_t s = at(sequence);
  if (forgotten_position_[s] < 0) return;
  if (range.contains(forgotten_position_[s])) forgotten_position_.set(s, std::max(range.begin, 0) - 1);
  if (range.contains(forgotten_low_[s])) forgotten_low_.set(s, range.end);
  if (forgotten_low_[s] <= forgotten_position_[s]) return;
  forgotten_position_.set(s, -1);
  forgotten_end_.set(s, 0);
}

void PagedCells::plan_moves(std::int32_t from, std::int32_t to, const PositionRange& range,
                            std::vector<CellMove>& moves) const {
  moves.clear();
  std::int32_t end = 0;  // of the target, once the cells that can keep their places are there
  for (std::size_t i = 0; i < std::max(n_entries(from), n_entries(to)); ++i) {
    const std::int32_t source = entry(from, i);
    const std::int32_t target = entry(to, i);
    const Slots taken = target < 0 ? 0 : live_slots(target) & ~slots_in(target, range);
    const Slots wanted = source < 0 ? 0 : slots_in(source, range);
    const auto first_place = static_cast<std::int32_t>(i) * kPagePlaces;
    for (Slots rest = wanted & taken; rest != 0; rest &= rest - 1) {
      moves.push_back({first_place + std::countr_zero(rest), -1});
    }
    const Slots held = wanted | taken;
    if (held != 0) end = first_place + static_cast<std::int32_t>(std::bit_width(held));
  }
  end = std::max(end, forgotten_end_[at(to)]);
  for (CellMove& move : moves) move.to_place = end++;
}

bool PagedCells::copy(std::int32_t from, std::int32_t to, const PositionRange& range,
                      std::span<const CellMove> moves) {
  QUIPU_CHECK(from != to);
  std::span<const CellMove> rest = moves;
  const std::size_t n = std::max(n_entries(from), n_entries(to));
  for (std::size_t i = 0; i < n; ++i) {
    Slots moved = 0;
    while (!rest.empty() && at(rest.front().from_place / kPagePlaces) == i) {
      moved |= Slots{1} << (rest.front().from_place % kPagePlaces);
      rest = rest.subspan(1);
    }
    if (!copy_page_range(from, to, i, range, moved)) return false;
  }
  if (!move_cells(from, to, moves)) return false;
  if (is_waiting(from)) waiting_.set(at(to), 1);
  refresh(to);

  drop_forgotten(to, range);
  const std::int32_t low = std::max(forgotten_low_[at(from)], range.begin);
  const std::int32_t high = std::min(forgotten_position_[at(from)], range.end - 1);
  if (high < low) return true;
  const bool first = forgotten_position_[at(to)] < 0;
  forgotten_low_.set(at(to), first ? low : std::min(low, forgotten_low_[at(to)]));
  forgotten_position_.set(at(to), std::max(high, forgotten_position_[at(to)]));
  forgotten_end_.set(at(to), std::max(forgotten_end_[at(from)], forgotten_end_[at(to)]));
  return true;
}

// Entry `index` of the target: its own cells outside the range, and the source's inside, but for `moved`
// ones.
bool PagedCells::copy_page_range(std::int32_t from, std::int32_t to, std::size_t index,
                                 const PositionRange& range, Slots moved) {
  const std::int32_t source = entry(from, index);
  const std::int32_t target = entry(to, index);
  if (source == target && moved == 0) return true;
  const Slots keep = target < 0 ? 0 : live_slots(target) & ~slots_in(target, range);
  const Slots take = source < 0 ? 0 : slots_in(source, range) & ~moved;
  if (keep == 0 && take == 0) {
    point(to, index, -1);
    return true;
  }

  PageContent wanted;
  for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
    const std::int32_t page = (keep >> slot & 1) != 0 ? target : (take >> slot & 1) != 0 ? source : -1;
    wanted.ids[at(slot)] = page < 0 ? -1 : ids_[cell(page, slot)];
    wanted.positions[at(slot)] = page < 0 ? -1 : positions_[cell(page, slot)];
    wanted.shifts[at(slot)] = page < 0 ? 0 : shifts_[cell(page, slot)];
  }
  if (target >= 0 && has_content(target, wanted)) return true;
  std::int32_t page = find_page(index, wanted);
  if (page >= 0) {
    point(to, index, page);
    return true;
  }

  Slots missing = take;
  if (keep != 0 && page_refs_[at(target)] == 1 && has_own_data(target)) {
    page = target;
    for (Slots out = live_slots(page) & ~keep; out != 0; out &= out - 1) {
      drop_cell(page, std::countr_zero(out));
    }
  } else {
    page = take_page();
    if (page < 0) return false;
    const std::int32_t base = keep != 0 ? target : source;
    fill_page(page, content(base, keep != 0 ? keep : take));
    data_copies_.push_back({data_page(base), page});
    if (keep == 0) missing = 0;
  }
  for (; missing != 0; missing &= missing - 1) {
    const std::int32_t slot = std::countr_zero(missing);
    put_cell(page, slot, ids_[cell(source, slot)], positions_[cell(source, slot)],
             shifts_[cell(source, slot)]);
    data_copies_.push_back({data_page(source), page, slot, slot});
  }
  point(to, index, page);
  return true;
}

bool PagedCells::move_cells(std::int32_t from, std::int32_t to, std::span<const CellMove> moves) {
  for (const CellMove& move : moves) {
    const std::int32_t source = page_of(from, move.from_place);
    const std::int32_t from_slot = move.from_place % kPagePlaces;
    if (source < 0 || ids_[cell(source, from_slot)] < 0) continue;  // forgotten by the window
    const std::int32_t to_slot = move.to_place % kPagePlaces;
    const std::int32_t page = writable_page(std::span(&to, 1), at(move.to_place / kPagePlaces), false);
    if (page < 0) return false;
    put_cell(page, to_slot, ids_[cell(source, from_slot)], positions_[cell(source, from_slot)],
             shifts_[cell(source, from_slot)]);
    data_copies_.push_back({data_page(source), page, from_slot, to_slot});
  }
  return true;
}

}  // namespace quipu
