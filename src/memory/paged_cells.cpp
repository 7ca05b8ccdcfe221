#include "memory/paged_cells.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"

namespace quipu {
namespace {

// Places are numbered with 31 bits; a sequence that has used them up finds no room.
constexpr std::int32_t kEndPlace = INT32_MAX - kPagePlaces;

}  // namespace

PagedCells::PagedCells(const Config& config, const PagedCells* first)
    : config_(config),
      first_(first),
      positions_(journal_, config.n_pages * kPagePlaces, -1),
      ids_(journal_, config.n_pages * kPagePlaces, -1),
      shifts_(journal_, config.n_pages * kPagePlaces, 0),
      page_refs_(journal_, config.n_pages, 0),
      free_pages_(journal_, config.n_pages, 0),
      n_free_pages_(journal_, 1, 0),
      source_refs_(journal_, config.n_pages, 0),
      sources_(journal_, 0, -1),
      n_virtual_(journal_, 1, 0),
      free_virtual_(journal_, 0, -1),
      n_free_virtual_(journal_, 1, 0),
      id_refs_(journal_, config.n_pages * kPagePlaces, 0),
      n_ids_(journal_, 1, 0),
      free_ids_(journal_, config.n_pages * kPagePlaces, 0),
      n_free_ids_(journal_, 1, 0),
      n_cells_(journal_, config.n_sequences, 0),
      max_position_(journal_, config.n_sequences, -1),
      end_place_(journal_, config.n_sequences, 0),
      first_entry_(journal_, config.n_sequences, 0),
      ordered_(journal_, config.n_sequences, 1),
      forgotten_low_(journal_, config.n_sequences, 0),
      forgotten_position_(journal_, config.n_sequences, -1),
      forgotten_end_(journal_, config.n_sequences, 0),
      waiting_(journal_, config.n_sequences, 0),
      page_written_(config.n_pages, 0),
      sequence_written_(config.n_sequences, 0),
      position_before_batch_(config.n_sequences, 0) {
  for (std::size_t s = 0; s < config.n_sequences; ++s) {
    tables_.push_back(std::make_unique<JournaledArray>(journal_, 0, -1));
    tables_.back()->reserve(config.n_pages);
  }
  clear();
}

void PagedCells::clear() {
  journal_.forget();
  data_copies_.clear();
  const auto fill = [](JournaledArray& array, std::int32_t value) { array.reset(value); };
  fill(positions_, -1);
  fill(ids_, -1);
  fill(shifts_, 0);
  fill(page_refs_, 0);
  fill(source_refs_, 0);
  fill(n_virtual_, 0);
  fill(n_free_virtual_, 0);
  fill(id_refs_, 0);
  for (const auto& pages : tables_) fill(*pages, -1);
  fill(n_cells_, 0);
  fill(max_position_, -1);
  fill(end_place_, 0);
  fill(first_entry_, 0);
  fill(ordered_, 1);
  fill(forgotten_position_, -1);
  fill(forgotten_end_, 0);
  fill(waiting_, 0);
  free_pages_.count_down();
  free_ids_.count_down();
  fill(n_free_pages_, static_cast<std::int32_t>(free_pages_.size()));
  fill(n_ids_, static_cast<std::int32_t>(free_ids_.size()));
  fill(n_free_ids_, static_cast<std::int32_t>(free_ids_.size()));
  ++micro_batch_;
}

void PagedCells::begin() {
  journal_.forget();
  data_copies_.clear();
  ++micro_batch_;
}

void PagedCells::roll_back() noexcept {
  journal_.undo();
  data_copies_.clear();
}

std::int32_t PagedCells::next_place(std::int32_t sequence) const {
  return std::max(end_place_[at(sequence)], forgotten_end_[at(sequence)]);
}

bool PagedCells::must_wait(std::span<const std::int32_t> sequences, std::int32_t place) const {
  const std::size_t index = at(place / kPagePlaces);
  const std::int32_t page = entry(sequences[0], index);
  return page >= 0 && page_written_[at(page)] == micro_batch_ && !is_own_page(sequences, index);
}

bool PagedCells::append(std::span<const std::int32_t> sequences, std::int32_t position, std::int32_t place) {
  if (place >= kEndPlace) return false;
  for (const std::int32_t s : sequences) {
    if (sequence_written_[at(s)] == micro_batch_) continue;
    position_before_batch_[at(s)] = max_position(s) + 1;
    sequence_written_[at(s)] = micro_batch_;
  }
  if (!has_room(sequences)) return false;
  const std::int32_t page = writable_page(sequences, at(place / kPagePlaces), true);
  if (page < 0) return false;

  put_cell(page, place % kPagePlaces, take_id(), position, 0);
  page_written_[at(page)] = micro_batch_;
  for (const std::int32_t s : sequences) {
    n_cells_.set(at(s), n_cells_[at(s)] + 1);
    if (position <= max_position_[at(s)] && ordered_[at(s)] != 0) ordered_.set(at(s), 0);
    if (position > max_position_[at(s)]) max_position_.set(at(s), position);
    end_place_.set(at(s), place + 1);
  }
  return true;
}

void PagedCells::retract(std::span<const std::int32_t> sequences, std::int32_t place) {
  const std::size_t index = at(place / kPagePlaces);
  const std::int32_t page = entry(sequences[0], index);
  QUIPU_CHECK(page >= 0);
  drop_cell(page, place % kPagePlaces);
  const Slots live = live_slots(page);
  // Where the page was copied for this cell, the sequences can share again.
  const std::int32_t shared = live == 0 ? -1 : find_page(index, content(page, live), page);
  for (const std::int32_t s : sequences) {
    if (live == 0 || shared >= 0) point(s, index, shared);
    refresh(s);
  }
}

bool PagedCells::same_cells(std::span<const std::int32_t> sequences) const {
  const std::int32_t first = sequences[0];
  for (const std::int32_t other : sequences.subspan(1)) {
    if (end_place_[at(first)] != end_place_[at(other)] || max_position(first) != max_position(other)) {
      return false;
    }
    for (std::size_t i = 0; i < n_entries(first); ++i) {
      const std::int32_t a = entry(first, i);
      const std::int32_t b = entry(other, i);
      if (a == b) continue;
      if (a < 0 || b < 0 || !has_content(b, content(a, live_slots(a)))) return false;
    }
  }
  return true;
}

std::int32_t PagedCells::min_position(std::int32_t sequence) const {
  std::int32_t lowest = INT32_MAX;
  for (std::size_t i = at(first_entry_[at(sequence)]); i < n_entries(sequence); ++i) {
    const std::int32_t page = entry(sequence, i);
    if (page < 0) continue;
    for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
      const std::int32_t position = positions_[cell(page, slot)];
      if (position >= 0) lowest = std::min(lowest, position);
    }
    if (ordered_[at(sequence)] != 0) break;
  }
  // A window may have forgotten every cell; the sequence is not empty for that.
  return lowest == INT32_MAX ? max_position(sequence) : lowest;
}

std::int32_t PagedCells::max_position(std::int32_t sequence) const {
  if (first_ != nullptr) return first_->max_position(sequence);
  return std::max(max_position_[at(sequence)], forgotten_position_[at(sequence)]);
}

std::span<const std::int32_t> PagedCells::page_table(std::int32_t sequence) const {
  return std::span(tables_[at(sequence)]->values()).first(n_entries(sequence));
}

std::int32_t PagedCells::cell_at(std::int32_t sequence, std::int32_t place) const {
  const std::int32_t page = page_of(sequence, place);
  return page < 0 ? -1 : ids_[cell(page, place % kPagePlaces)];
}

PagedCells::Slots PagedCells::live_slots(std::int32_t page) const {
  return slots_in(page, {});
}

PagedCells::Slots PagedCells::slots_in(std::int32_t page, const PositionRange& range) const {
  const std::int32_t* positions = positions_.data() + cell(page, 0);
  Slots slots = 0;
  for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
    slots |= static_cast<Slots>(range.contains(positions[slot])) << slot;
  }
  return slots;
}

PagedCells::PageContent PagedCells::content(std::int32_t page, Slots slots) const {
  PageContent result;
  for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
    const bool wanted = (slots >> slot & 1) != 0;
    result.ids[at(slot)] = wanted ? ids_[cell(page, slot)] : -1;
    result.positions[at(slot)] = wanted ? positions_[cell(page, slot)] : -1;
    result.shifts[at(slot)] = wanted ? shifts_[cell(page, slot)] : 0;
  }
  return result;
}

bool PagedCells::has_content(std::int32_t page, const PageContent& content) const {
  return std::equal(content.ids.begin(), content.ids.end(), ids_.data() + cell(page, 0));
}

std::int32_t PagedCells::find_page(std::size_t index, const PageContent& content, std::int32_t except) const {
  for (std::size_t s = 0; s < n_sequences(); ++s) {
    const std::int32_t page = entry(static_cast<std::int32_t>(s), index);
    if (page >= 0 && page != except && has_content(page, content)) return page;
  }
  return -1;
}

void PagedCells::fill_page(std::int32_t page, const PageContent& content) {
  for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
    if (content.ids[at(slot)] >= 0) {
      put_cell(page, slot, content.ids[at(slot)], content.positions[at(slot)], content.shifts[at(slot)]);
    }
  }
}

void PagedCells::put_cell(std::int32_t page, std::int32_t slot, std::int32_t id, std::int32_t position,
                          std::int32_t shift) {
  ids_.set(cell(page, slot), id);
  positions_.set(cell(page, slot), position);
  if (shifts_[cell(page, slot)] != shift) shifts_.set(cell(page, slot), shift);
  id_refs_.set(at(id), id_refs_[at(id)] + 1);
}

void PagedCells::drop_cell(std::int32_t page, std::int32_t slot) {
  const std::int32_t id = ids_[cell(page, slot)];
  ids_.set(cell(page, slot), -1);
  positions_.set(cell(page, slot), -1);
  if (shifts_[cell(page, slot)] != 0) shifts_.set(cell(page, slot), 0);
  id_refs_.set(at(id), id_refs_[at(id)] - 1);
  if (id_refs_[at(id)] != 0) return;
  free_ids_.set(at(n_free_ids_[0]), id);
  n_free_ids_.set(0, n_free_ids_[0] + 1);
}

std::int32_t PagedCells::take_page() {
  const std::int32_t n_free = n_free_pages_[0] - 1;
  if (n_free < 0) return -1;
  n_free_pages_.set(0, n_free);
  return free_pages_[at(n_free)];
}

// The number of a new cell. There are more cells than room for them until positions' changes are settled.
std::int32_t PagedCells::take_id() {
  const std::int32_t n_free = n_free_ids_[0] - 1;
  if (n_free >= 0) {
    n_free_ids_.set(0, n_free);
    return free_ids_[at(n_free)];
  }
  const std::int32_t id = n_ids_[0];
  QUIPU_CHECK(id < INT32_MAX);
  id_refs_.grow(at(id) + 1, 0);
  free_ids_.grow(at(id) + 1, 0);
  n_ids_.set(0, id + 1);
  return id;
}

void PagedCells::release(std::int32_t page) {
  page_refs_.set(at(page), page_refs_[at(page)] - 1);
  if (page_refs_[at(page)] != 0) return;
  for (Slots live = live_slots(page); live != 0; live &= live - 1) drop_cell(page, std::countr_zero(live));
  if (is_virtual(page)) return release_virtual(page);
  if (source_refs_[at(page)] != 0) return;
  free_pages_.set(at(n_free_pages_[0]), page);
  n_free_pages_.set(0, n_free_pages_[0] + 1);
}

// Makes a page (-1: none) entry `index` of a sequence's table.
void PagedCells::point(std::int32_t sequence, std::size_t index, std::int32_t page) {
  const std::int32_t old = entry(sequence, index);
  if (old == page) return;
  JournaledArray& pages = table(at(sequence));
  pages.grow(index + 1, -1);
  pages.set(index, page);
  if (page >= 0 && is_virtual(page)) waiting_.set(at(sequence), 1);
  if (page >= 0) page_refs_.set(at(page), page_refs_[at(page)] + 1);
  if (old >= 0) release(old);

  std::size_t first = at(first_entry_[at(sequence)]);
  if (page >= 0) first = std::min(first, index);
  while (page < 0 && first < pages.size() && pages[first] < 0) ++first;
  first_entry_.set(at(sequence), static_cast<std::int32_t>(first == pages.size() ? 0 : first));
}

// A page with some of the cells of `source`: one that a sequence has already, or a copy. -1: neither can be
// had.
std::int32_t PagedCells::share_or_copy_page(std::size_t index, std::int32_t source, Slots slots,
                                            bool may_copy) {
  const PageContent wanted = content(source, slots);
  const std::int32_t equal = find_page(index, wanted);
  if (equal >= 0 || !may_copy) return equal;
  const std::int32_t page = take_page();
  if (page < 0) return -1;
  fill_page(page, wanted);
  data_copies_.push_back({data_page(source), page});
  return page;
}

// True if nobody but these sequences owns the first one's page, so that a cell may be added to it.
bool PagedCells::is_own_page(std::span<const std::int32_t> sequences, std::size_t index) const {
  const std::int32_t page = entry(sequences[0], index);
  const auto owners = std::count_if(sequences.begin(), sequences.end(),
                                    [&](std::int32_t s) { return entry(s, index) == page; });
  return page >= 0 && page_refs_[at(page)] == owners && has_own_data(page);
}

// The page that all these sequences will share and may write to. -1: none is left.
std::int32_t PagedCells::writable_page(std::span<const std::int32_t> sequences, std::size_t index,
                                       bool may_forget) {
  std::int32_t page = entry(sequences[0], index);
  if (!is_own_page(sequences, index)) {
    std::int32_t fresh = take_page();
    while (fresh < 0 && may_forget && forget_page(sequences)) fresh = take_page();
    if (fresh < 0) return -1;
    page = entry(sequences[0], index);  // it may just have been forgotten
    if (page >= 0) {
      fill_page(fresh, content(page, live_slots(page)));
      data_copies_.push_back({data_page(page), fresh});
    }
    page = fresh;
  }
  for (const std::int32_t s : sequences) point(s, index, page);
  return page;
}

// Counts anew what is known of a sequence.
void PagedCells::refresh(std::int32_t sequence) {
  std::int32_t n_cells = 0, highest = -1, end = 0;
  bool ordered = true;
  const JournaledArray& pages = table(at(sequence));
  for (std::size_t i = at(first_entry_[at(sequence)]); i < pages.size(); ++i) {
    if (pages[i] < 0) continue;
    for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
      const std::int32_t position = positions_[cell(pages[i], slot)];
      if (position < 0) continue;
      ++n_cells;
      ordered = ordered && position > highest;
      highest = std::max(highest, position);
      end = static_cast<std::int32_t>(i) * kPagePlaces + slot + 1;
    }
  }
  n_cells_.set(at(sequence), n_cells);
  max_position_.set(at(sequence), highest);
  end_place_.set(at(sequence), end);
  ordered_.set(at(sequence), ordered ? 1 : 0);
}

// As refresh, after cells were taken away and n_cells_ was kept right; looks at the last cell only if it can.
void PagedCells::refresh_end(std::int32_t sequence) {
  if (ordered_[at(sequence)] == 0) return refresh(sequence);
  for (std::size_t i = n_entries(sequence); i-- > 0;) {
    const std::int32_t page = entry(sequence, i);
    const Slots live = page < 0 ? 0 : live_slots(page);
    if (live == 0) continue;
    const auto slot = static_cast<std::int32_t>(std::bit_width(live)) - 1;
    max_position_.set(at(sequence), positions_[cell(page, slot)]);
    end_place_.set(at(sequence), static_cast<std::int32_t>(i) * kPagePlaces + slot + 1);
    return;
  }
  max_position_.set(at(sequence), -1);
  end_place_.set(at(sequence), 0);
}

}  // namespace quipu
