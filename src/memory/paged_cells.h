// The bookkeeping of one part of an attention-like memory: which cells there are, in which pages, and which
// sequences share them. No keys or values here, only the list of page and cell copies that an operation asks
// for.
//
// A cell is a token's keys and values; its place is its number in its sequence, given when appended and kept
// for life. A page has the 16 slots of places [16 i, 16 i + 16) and entry i of a sequence's table names it;
// all owners of a page see all its cells, so it is copied when a write or a removal would make them differ. A
// cell that is copied along with its page stays the same cell (it has a number), and counts once.
//
// Positions of shared cells change in a virtual page: one that has cells, but no data of its own until
// settle() finds it some. Its number lies behind those of real pages. What waits for a sequence (virtual
// pages, keys to be turned) is done when that sequence runs next, and no sooner, so that a run of another
// leaves no trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/storage.h"
#include "memory/journal.h"
#include "memory/memory_state.h"

namespace quipu {

inline constexpr std::int32_t kPagePlaces = 16;

/// Positions [begin, end).
struct PositionRange {
  std::int32_t begin = 0;
  std::int32_t end = INT32_MAX;

  bool contains(std::int32_t position) const { return position >= begin && position < end; }
};

/// Bounds as callers give them: negative ones are open.
inline PositionRange position_range(std::int32_t p0, std::int32_t p1) {
  return {p0 < 0 ? 0 : p0, p1 < 0 ? INT32_MAX : p1};
}

/// Numbers to copy from page to page: slot to slot, or the whole page where the slots are -1.
struct DataCopy {
  std::int32_t from_page;
  std::int32_t to_page;
  std::int32_t from_slot = -1;
  std::int32_t to_slot = -1;
};

/// What becomes of positions: (position + delta) / divisor.
struct PositionChange {
  std::int64_t delta = 0;
  std::int32_t divisor = 1;

  std::int64_t operator()(std::int32_t position) const {
    const std::int64_t moved = position + delta;
    return moved < 0 ? -1 : moved / divisor;
  }
};

/// A copied cell whose place in the target was taken: it gets another one.
struct CellMove {
  std::int32_t from_place;
  std::int32_t to_place;
};

class PagedCells {
 public:
  struct Config {
    std::size_t n_sequences = 1;
    std::size_t n_pages = 0;
    std::size_t n_cells = 0;    ///< room: distinct cells in all, or of each sequence
    bool per_sequence = false;  ///< how room is counted, nothing else
    std::int32_t window = 0;    ///< positions that a token sees, itself included; 0: all
  };

  /// `first`: the part that gives cells their places and knows all that have not been removed, if that is
  /// another.
  explicit PagedCells(const Config& config, const PagedCells* first = nullptr);

  // Changes come in transactions: begin, operations, then roll_back if one of them returned false, or else
  // the data copies, in order.
  void begin();
  void roll_back() noexcept;
  std::span<const DataCopy> data_copies() const { return data_copies_; }

  /// Tokens that are appended until the next call are computed together.
  void begin_micro_batch() { ++micro_batch_; }
  /// True if the token cannot be in this micro-batch: its page must be copied, but has cells that are yet to
  /// be computed.
  bool must_wait(std::span<const std::int32_t> sequences, std::int32_t place) const;
  /// Place of the next cell: behind the last one.
  std::int32_t next_place(std::int32_t sequence) const;
  /// One cell for all `sequences`, which hold the same cells; the first part comes last. False if there is no
  /// room.
  bool append(std::span<const std::int32_t> sequences, std::int32_t position, std::int32_t place);
  /// Takes back an append; the latest first.
  void retract(std::span<const std::int32_t> sequences, std::int32_t place);

  /// False: no page is left.
  bool remove(std::int32_t sequence, const PositionRange& range);
  void remove_everywhere(const PositionRange& range);
  /// Fills in which cells of the range would collide in the target, and where they go instead.
  void plan_moves(std::int32_t from, std::int32_t to, const PositionRange& range,
                  std::vector<CellMove>& moves) const;
  /// The target's cells in the range become the source's (different sequences). False: no page is left.
  bool copy(std::int32_t from, std::int32_t to, const PositionRange& range, std::span<const CellMove> moves);
  /// The sequence's cells in the range get other positions; those that fall below 0 are removed. Whoever else
  /// has them keeps them as they are. False: a position would be too high.
  bool change_positions(std::int32_t sequence, const PositionRange& range, const PositionChange& change);
  /// Does anything wait for the sequence's next run?
  bool is_waiting(std::int32_t sequence) const { return waiting_[at(sequence)] != 0; }
  /// Gives these sequences cells and pages of their own in place of those whose keys must be turned, but wait
  /// for a sequence that is not among these as well.
  void part_from_waiting(std::span<const std::int32_t> sequences);
  /// Finds pages for what these sequences have none for, forgetting what windows allow. False: there is no
  /// room.
  bool settle(std::span<const std::int32_t> sequences);
  /// Lists the cells of these sequences whose keys must be turned, once. Nothing waits for them any more.
  void take_shifts(std::span<const std::int32_t> sequences, std::vector<CellShift>& shifts);

  /// The cells of one sequence, or of all.
  MemoryState::Part describe(std::optional<std::int32_t> sequence) const;
  /// Sequences that are empty get cells, which must be in order; `target` is the id of a single one, if it is
  /// another. Gives the numbers of the new cells. They have no data yet, and no pages before settle().
  std::vector<std::int32_t> restore(const MemoryState::Part& state, std::optional<std::int32_t> target);
  /// Everything empty, as when new. No transaction.
  void clear();

  /// True unless the window has forgotten cells that the sequence's next position would see.
  bool holds_window(std::int32_t sequence) const;
  bool same_cells(std::span<const std::int32_t> sequences) const;
  std::int32_t min_position(std::int32_t sequence) const;
  std::int32_t max_position(std::int32_t sequence) const;

  /// Page numbers by place / 16, -1 where missing, up to the sequence's last cell.
  std::span<const std::int32_t> page_table(std::int32_t sequence) const;
  std::int32_t page_of(std::int32_t sequence, std::int32_t place) const {
    return entry(sequence, static_cast<std::size_t>(place / kPagePlaces));
  }
  /// [page * 16 + slot], -1 where empty.
  std::span<const std::int32_t> cell_positions() const { return positions_.values(); }
  /// Number of the cell at a place of a sequence, the same for all that share it; -1: none.
  std::int32_t cell_at(std::int32_t sequence, std::int32_t place) const;

  /// The real page that has a page's data; -1: none.
  std::int32_t data_page(std::int32_t page) const {
    return is_virtual(page) ? sources_[at(page) - config_.n_pages] : page;
  }

  const Config& config() const { return config_; }
  std::size_t n_used_cells() const { return static_cast<std::size_t>(n_ids_[0] - n_free_ids_[0]); }
  std::size_t n_free_pages() const { return static_cast<std::size_t>(n_free_pages_[0]); }
  std::size_t n_cells_of(std::int32_t sequence) const {
    return static_cast<std::size_t>(n_cells_[at(sequence)]);
  }

 private:
  using Slots = std::uint32_t;                                    // a bit for each slot
  using NewIds = std::unordered_map<std::int32_t, std::int32_t>;  // by a cell's number, -1: not yet
  struct PageContent {
    std::array<std::int32_t, kPagePlaces> ids;
    std::array<std::int32_t, kPagePlaces> positions;
    std::array<std::int32_t, kPagePlaces> shifts;
  };
  struct CellRef {
    std::size_t index;  // of the page in the sequence's table
    std::int32_t slot;
    std::int32_t id;
    std::int32_t position;
  };

  static std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }
  static std::size_t cell(std::int32_t page, std::int32_t slot) { return at(page) * kPagePlaces + at(slot); }
  bool is_virtual(std::int32_t page) const { return at(page) >= config_.n_pages; }
  /// Data may be written to it without being seen by others than its owners.
  bool has_own_data(std::int32_t page) const { return !is_virtual(page) && source_refs_[at(page)] == 0; }
  std::size_t n_sequences() const { return config_.n_sequences; }
  JournaledArray& table(std::size_t sequence) { return *tables_[sequence]; }
  std::int32_t entry(std::int32_t sequence, std::size_t index) const {
    const JournaledArray& pages = *tables_[at(sequence)];
    return index < pages.size() ? pages[index] : -1;
  }
  std::size_t n_entries(std::int32_t sequence) const {
    return at((end_place_[at(sequence)] + kPagePlaces - 1) / kPagePlaces);
  }

  // Pages and cells (paged_cells.cpp).
  Slots live_slots(std::int32_t page) const;
  Slots slots_in(std::int32_t page, const PositionRange& range) const;
  PageContent content(std::int32_t page, Slots slots) const;
  bool has_content(std::int32_t page, const PageContent& content) const;
  std::int32_t find_page(std::size_t index, const PageContent& content, std::int32_t except = -1) const;
  void fill_page(std::int32_t page, const PageContent& content);
  void put_cell(std::int32_t page, std::int32_t slot, std::int32_t id, std::int32_t position,
                std::int32_t shift);
  void drop_cell(std::int32_t page, std::int32_t slot);
  std::int32_t take_page();
  std::int32_t take_id();
  void point(std::int32_t sequence, std::size_t index, std::int32_t page);
  void release(std::int32_t page);
  std::int32_t share_or_copy_page(std::size_t index, std::int32_t source, Slots slots, bool may_copy);
  bool is_own_page(std::span<const std::int32_t> sequences, std::size_t index) const;
  std::int32_t writable_page(std::span<const std::int32_t> sequences, std::size_t index, bool may_forget);
  void refresh(std::int32_t sequence);
  void refresh_end(std::int32_t sequence);

  // Removing and copying (paged_cells_edit.cpp).
  bool copy_page_range(std::int32_t from, std::int32_t to, std::size_t index, const PositionRange& range,
                       Slots moved);
  bool move_cells(std::int32_t from, std::int32_t to, std::span<const CellMove> moves);
  void drop_forgotten(std::int32_t sequence, const PositionRange& range);

  // Changes of positions (paged_cells_shift.cpp).
  std::int32_t make_virtual_page(std::int32_t source);
  void release_virtual(std::int32_t page);
  void change_cell(std::int32_t page, std::int32_t slot, std::int64_t position);
  void change_forgotten(std::int32_t sequence, const PositionRange& range, const PositionChange& change);
  Slots shifted_slots(std::int32_t page) const;
  NewIds waiting_ids_of_others(std::span<const std::int32_t> sequences) const;
  void renumber(std::int32_t page, Slots slots, NewIds& new_ids);
  bool make_room(std::span<const std::int32_t> sequences);
  bool make_real(std::int32_t sequence, std::size_t index);

  // Sliding windows (paged_cells_window.cpp).
  bool has_room(std::span<const std::int32_t> sequences);
  std::int32_t horizon(std::int32_t sequence) const;
  std::int32_t horizon_of_page(std::size_t index, std::int32_t page) const;
  bool is_hidden_from_all(std::size_t index, std::int32_t slot, std::int32_t id) const;
  std::optional<CellRef> find_hidden(std::int32_t sequence, bool from_all) const;
  bool forget_cell(std::span<const std::int32_t> sequences);
  bool forget_own_cell(std::int32_t sequence);
  void forget_everywhere(const CellRef& cell);
  bool forget_page(std::span<const std::int32_t> sequences);
  bool forget_page_of(std::int32_t sequence);
  void note_forgotten(std::int32_t sequence, std::size_t index, std::int32_t page, Slots slots);

  Config config_;
  const PagedCells* first_;
  Journal journal_;
  std::vector<DataCopy> data_copies_;

  // By page, virtual ones last.
  JournaledArray positions_;  // [16]
  JournaledArray ids_;        // [16] the cell's number, -1 where empty
  JournaledArray shifts_;     // [16] by how much the position has changed since the key was turned
  JournaledArray page_refs_;  // sequences whose table names it
  JournaledArray free_pages_, n_free_pages_;

  JournaledArray source_refs_;  // [n_pages] virtual pages that have their data there
  JournaledArray sources_;      // by virtual page: where its data are, -1: nowhere yet
  JournaledArray n_virtual_;
  JournaledArray free_virtual_, n_free_virtual_;

  JournaledArray id_refs_;  // pages that hold the cell of this number
  JournaledArray n_ids_;
  JournaledArray free_ids_, n_free_ids_;
  std::vector<std::unique_ptr<JournaledArray>> tables_;

  // [n_sequences]
  JournaledArray n_cells_;
  JournaledArray max_position_;        // of the held cells, -1: none
  JournaledArray end_place_;           // last held place + 1
  JournaledArray first_entry_;         // no page before this entry of the table
  JournaledArray ordered_;             // 1: positions ascend with places
  JournaledArray forgotten_low_;       // lowest position that the window forgot; for the first part
  JournaledArray forgotten_position_;  // highest, -1: none
  JournaledArray forgotten_end_;       // highest forgotten place + 1
  JournaledArray waiting_;             // 1: it may have virtual pages or keys to be turned

  std::uint64_t micro_batch_ = 1;                    // number of the current one
  std::vector<std::uint64_t> page_written_;          // [n_pages] in which micro-batch
  std::vector<std::uint64_t> sequence_written_;      // [n_sequences] likewise
  std::vector<std::int32_t> position_before_batch_;  // [n_sequences] next position when that began
};

}  // namespace quipu
