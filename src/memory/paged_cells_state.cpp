// The cells as saved states know them.
#include <bit>

#include "base/error.h"
#include "memory/paged_cells.h"

namespace quipu {

MemoryState::Part PagedCells::describe(std::optional<std::int32_t> sequence) const {
  MemoryState::Part part;
  std::vector<std::int32_t> index_of(id_refs_.size(), -1);  // by the cell's number
  for (std::int32_t s = 0; at(s) < n_sequences(); ++s) {
    if (sequence && *sequence != s) continue;
    MemoryState::Sequence saved{.id = s,
                                .forgotten_low = forgotten_position_[at(s)] < 0 ? 0 : forgotten_low_[at(s)],
                                .forgotten_high = forgotten_position_[at(s)],
                                .forgotten_end = forgotten_end_[at(s)],
                                .cells = {}};
    for (std::size_t i = 0; i < n_entries(s); ++i) {
      const std::int32_t page = entry(s, i);
      if (page < 0) continue;
      for (Slots live = live_slots(page); live != 0; live &= live - 1) {
        const std::int32_t slot = std::countr_zero(live);
        std::int32_t& index = index_of[at(ids_[cell(page, slot)])];
        if (index < 0) {
          index = static_cast<std::int32_t>(part.cells.size());
          part.cells.push_back(
              {positions_[cell(page, slot)], shifts_[cell(page, slot)], data_page(page), slot});
        }
        saved.cells.push_back(
            {static_cast<std::int32_t>(i) * kPagePlaces + slot, static_cast<std::uint32_t>(index)});
      }
    }
    if (!saved.cells.empty() || saved.forgotten_high >= 0) part.sequences.push_back(std::move(saved));
  }
  return part;
}

std::vector<std::int32_t> PagedCells::restore(const MemoryState::Part& state,
                                              std::optional<std::int32_t> target) {
  std::vector<std::int32_t> ids;
  ids.reserve(state.cells.size());
  while (ids.size() < state.cells.size()) ids.push_back(take_id());

  for (const MemoryState::Sequence& sequence : state.sequences) {
    const std::int32_t s = target.value_or(sequence.id);
    QUIPU_CHECK(n_entries(s) == 0);
    for (auto placed = sequence.cells.begin(); placed != sequence.cells.end();) {
      const std::size_t index = at(placed->place / kPagePlaces);
      PageContent wanted;
      wanted.ids.fill(-1);
      wanted.positions.fill(-1);
      wanted.shifts.fill(0);
      for (; placed != sequence.cells.end() && at(placed->place / kPagePlaces) == index; ++placed) {
        const std::size_t slot = at(placed->place % kPagePlaces);
        wanted.ids[slot] = ids[placed->cell];
        wanted.positions[slot] = state.cells[placed->cell].position;
        wanted.shifts[slot] = state.cells[placed->cell].shift;
      }
      std::int32_t page = find_page(index, wanted);
      if (page < 0) {
        page = make_virtual_page(-1);
        fill_page(page, wanted);
      }
      point(s, index, page);
    }
    refresh(s);
    forgotten_low_.set(at(s), sequence.forgotten_low);
    forgotten_position_.set(at(s), sequence.forgotten_high);
    forgotten_end_.set(at(s), sequence.forgotten_end);
  }
  return ids;
}

}  // namespace quipu
