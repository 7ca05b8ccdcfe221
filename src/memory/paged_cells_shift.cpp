// Changes of positions: in the books at once, in virtual pages where cells are shared; data are copied and
// keys turned when that is settled before the sequence's next run.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "memory/paged_cells.h"

namespace quipu {

bool PagedCells::change_positions(std::int32_t sequence, const PositionRange& range,
                                  const PositionChange& change) {
  for (std::size_t i = at(first_entry_[at(sequence)]); i < n_entries(sequence); ++i) {
    std::int32_t page = entry(sequence, i);
    if (page < 0) continue;
    Slots changed = 0;
    for (Slots rest = slots_in(page, range); rest != 0; rest &= rest - 1) {
      const std::int32_t slot = std::countr_zero(rest);
      const std::int32_t position = positions_[cell(page, slot)];
      if (change(position) >= INT32_MAX) return false;
      if (change(position) != position) changed |= Slots{1} << slot;
    }
    if (changed == 0) continue;
    waiting_.set(at(sequence), 1);
    if (page_refs_[at(page)] > 1) {
      page = make_virtual_page(page);
      point(sequence, i, page);
    }
    for (; changed != 0; changed &= changed - 1) {
      const std::int32_t slot = std::countr_zero(changed);
      change_cell(page, slot, change(positions_[cell(page, slot)]));
    }
    if (live_slots(page) == 0) point(sequence, i, -1);
  }
  refresh(sequence);
  change_forgotten(sequence, range, change);
  return true;
}

// A page with the cells of another, whose data it has not yet.
std::int32_t PagedCells::make_virtual_page(std::int32_t source) {
  std::int32_t number = n_free_virtual_[0] - 1;
  if (number >= 0) {
    n_free_virtual_.set(0, number);
    number = free_virtual_[at(number)];
  } else {
    number = n_virtual_[0];
    const std::size_t n_pages = config_.n_pages + at(number) + 1;
    QUIPU_CHECK(n_pages < INT32_MAX);
    positions_.grow(n_pages * kPagePlaces, -1);
    ids_.grow(n_pages * kPagePlaces, -1);
    shifts_.grow(n_pages * kPagePlaces, 0);
    page_refs_.grow(n_pages, 0);
    sources_.grow(at(number) + 1, -1);
    free_virtual_.grow(at(number) + 1, -1);
    n_virtual_.set(0, number + 1);
  }
  const std::int32_t data = source < 0 ? -1 : data_page(source);
  const auto page = static_cast<std::int32_t>(config_.n_pages) + number;
  sources_.set(at(number), data);
  if (data >= 0) source_refs_.set(at(data), source_refs_[at(data)] + 1);
  if (source >= 0) fill_page(page, content(source, live_slots(source)));
  return page;
}

// Its cells are gone already.
void PagedCells::release_virtual(std::int32_t page) {
  const std::int32_t source = data_page(page);
  free_virtual_.set(at(n_free_virtual_[0]), page - static_cast<std::int32_t>(config_.n_pages));
  n_free_virtual_.set(0, n_free_virtual_[0] + 1);
  if (source < 0) return;
  source_refs_.set(at(source), source_refs_[at(source)] - 1);
  if (source_refs_[at(source)] != 0 || page_refs_[at(source)] != 0) return;
  free_pages_.set(at(n_free_pages_[0]), source);
  n_free_pages_.set(0, n_free_pages_[0] + 1);
}

// The cell of a page with one owner. Where it is in other pages too, this becomes another cell.
void PagedCells::change_cell(std::int32_t page, std::int32_t slot, std::int64_t position) {
  const std::size_t c = cell(page, slot);
  const std::int32_t id = ids_[c];
  const auto shift = static_cast<std::int32_t>(shifts_[c] + position - positions_[c]);
  if (position < 0 || id_refs_[at(id)] > 1) drop_cell(page, slot);
  if (position < 0) return;
  if (ids_[c] < 0) return put_cell(page, slot, take_id(), static_cast<std::int32_t>(position), shift);
  positions_.set(c, static_cast<std::int32_t>(position));
  shifts_.set(c, shift);
}

// What a window forgot changes like the rest; it is known by its lowest and highest position.
void PagedCells::change_forgotten(std::int32_t sequence, const PositionRange& range,
                                  const PositionChange& change) {
  const std::size_t s = at(sequence);
  const std::int32_t low = forgotten_low_[s], high = forgotten_position_[s];
  if (high < 0) return;
  std::int64_t new_low = INT32_MAX, new_high = -1;
  const auto include = [&](std::int64_t first, std::int64_t last) {
    if (first > last || last < 0) return;
    new_low = std::min(new_low, std::max<std::int64_t>(first, 0));
    new_high = std::max(new_high, last);
  };
  include(low, std::min(high, range.begin - 1));
  include(std::max(low, range.end), high);
  const std::int32_t first = std::max(low, range.begin), last = std::min(high, range.end - 1);
  if (first <= last) include(change(first), change(last));
  forgotten_position_.set(s, static_cast<std::int32_t>(std::min<std::int64_t>(new_high, INT32_MAX - 1)));
  if (new_high < 0) {
    forgotten_end_.set(s, 0);
  } else {
    forgotten_low_.set(s, static_cast<std::int32_t>(new_low));
  }
}

void PagedCells::part_from_waiting(std::span<const std::int32_t> sequences) {
  NewIds new_ids = waiting_ids_of_others(sequences);
  for (const std::int32_t s : sequences) {
    for (std::size_t i = 0; is_waiting(s) && i < n_entries(s); ++i) {
      std::int32_t page = entry(s, i);
      const Slots shifted = page < 0 ? 0 : shifted_slots(page);
      if (shifted == 0) continue;
      const auto owners = std::count_if(sequences.begin(), sequences.end(),
                                        [&](std::int32_t other) { return entry(other, i) == page; });
      const bool data_are_needed = !is_virtual(page) && source_refs_[at(page)] != 0;
      if (page_refs_[at(page)] > owners || data_are_needed) {
        const std::int32_t own = make_virtual_page(page);
        for (const std::int32_t other : sequences) {
          if (entry(other, i) == page) point(other, i, own);
        }
        page = own;
      }
      renumber(page, shifted, new_ids);
    }
  }
}

// The cells that wait for other sequences; none has a new number yet.
PagedCells::NewIds PagedCells::waiting_ids_of_others(std::span<const std::int32_t> sequences) const {
  NewIds ids;
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    if (!is_waiting(s) || std::find(sequences.begin(), sequences.end(), s) != sequences.end()) continue;
    for (std::size_t i = 0; i < n_entries(s); ++i) {
      const std::int32_t page = entry(s, i);
      for (Slots rest = page < 0 ? 0 : shifted_slots(page); rest != 0; rest &= rest - 1) {
        ids[ids_[cell(page, std::countr_zero(rest))]] = -1;
      }
    }
  }
  return ids;
}

// Those of the page's slots that are listed become other cells, the same ones wherever they are met.
void PagedCells::renumber(std::int32_t page, Slots slots, NewIds& new_ids) {
  for (; slots != 0; slots &= slots - 1) {
    const std::int32_t slot = std::countr_zero(slots);
    const auto listed = new_ids.find(ids_[cell(page, slot)]);
    if (listed == new_ids.end()) continue;
    if (listed->second < 0) listed->second = take_id();
    const std::int32_t position = positions_[cell(page, slot)], shift = shifts_[cell(page, slot)];
    drop_cell(page, slot);
    put_cell(page, slot, listed->second, position, shift);
  }
}

bool PagedCells::settle(std::span<const std::int32_t> sequences) {
  if (!make_room(sequences)) return false;
  for (const std::int32_t s : sequences) {
    for (std::size_t i = 0; is_waiting(s) && i < n_entries(s); ++i) {
      if (entry(s, i) >= 0 && is_virtual(entry(s, i)) && !make_real(s, i)) return false;
    }
  }
  return true;
}

void PagedCells::take_shifts(std::span<const std::int32_t> sequences, std::vector<CellShift>& shifts) {
  for (const std::int32_t s : sequences) {
    for (std::size_t i = 0; is_waiting(s) && i < n_entries(s); ++i) {
      const std::int32_t page = entry(s, i);
      for (Slots rest = page < 0 ? 0 : shifted_slots(page); rest != 0; rest &= rest - 1) {
        const std::int32_t slot = std::countr_zero(rest);
        shifts.push_back({page, slot, shifts_[cell(page, slot)]});
        shifts_.set(cell(page, slot), 0);
      }
    }
    waiting_.set(at(s), 0);
  }
}

// Of its cells, those whose keys must be turned.
PagedCells::Slots PagedCells::shifted_slots(std::int32_t page) const {
  Slots slots = 0;
  for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
    slots |= static_cast<Slots>(shifts_[cell(page, slot)] != 0) << slot;
  }
  return slots;
}

// No more cells than there is room for, which windows may help with.
bool PagedCells::make_room(std::span<const std::int32_t> sequences) {
  if (!config_.per_sequence) {
    while (n_used_cells() > config_.n_cells) {
      if (!forget_cell({})) return false;
    }
    return true;
  }
  for (const std::int32_t s : sequences) {
    while (n_cells_of(s) > config_.n_cells) {
      if (!forget_own_cell(s)) return false;
    }
  }
  return true;
}

bool PagedCells::make_real(std::int32_t sequence, std::size_t index) {
  std::int32_t page = entry(sequence, index);
  const auto has_source_alone = [&](std::int32_t source) {
    return source >= 0 && page_refs_[at(source)] == 0 && source_refs_[at(source)] == 1;
  };
  std::int32_t real = has_source_alone(data_page(page)) ? data_page(page) : take_page();
  while (real < 0) {
    if (!forget_page({})) return false;
    page = entry(sequence, index);
    if (page < 0) return true;  // it was this one
    real = has_source_alone(data_page(page)) ? data_page(page) : take_page();
  }
  fill_page(real, content(page, live_slots(page)));
  if (data_page(page) >= 0 && data_page(page) != real) data_copies_.push_back({data_page(page), real});
  for (std::int32_t s = 0, n_left = page_refs_[at(page)]; n_left > 0; ++s) {
    if (entry(s, index) != page) continue;
    point(s, index, real);
    --n_left;
  }
  return true;
}

}  // namespace quipu
