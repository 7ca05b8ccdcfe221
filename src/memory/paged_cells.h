// The bookkeeping of one part of an attention-like memory: which cells there are, in which pages, and which
// sequences share them. No keys or values here, only the list of page and cell copies that an operation asks
// for.
//
// A cell is a token's keys and values; its place is its number in its sequence, given when appended and kept
// for life. A page has the 16 slots of places [16 i, 16 i + 16) and entry i of a sequence's table names it;
// all owners of a page see all its cells, so it is copied when a write or a removal would make them differ. A
// cell that is copied along with its page stays the same cell (it has a number), and counts once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/journal.h"

namespace quipu {

inline constexpr std::int32_t kPagePlaces = 16;

/// Positions [begin, end).
struct PositionRange {
  std::int32_t begin = 0;
  std::int32_t end = INT32_MAX;

  bool contains(std::int32_t position) const { return position >= begin && position < end; }
};

/// Numbers to copy from page to page: slot to slot, or the whole page where the slots are -1.
struct DataCopy {
  std::int32_t from_page;
  std::int32_t to_page;
  std::int32_t from_slot = -1;
  std::int32_t to_slot = -1;
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

  const Config& config() const { return config_; }
  std::size_t n_used_cells() const { return id_refs_.size() - static_cast<std::size_t>(n_free_ids_[0]); }
  std::size_t n_free_pages() const { return static_cast<std::size_t>(n_free_pages_[0]); }
  std::size_t n_cells_of(std::int32_t sequence) const {
    return static_cast<std::size_t>(n_cells_[at(sequence)]);
  }

 private:
  using Slots = std::uint32_t;  // a bit for each slot
  struct PageContent {
    std::array<std::int32_t, kPagePlaces> ids;
    std::array<std::int32_t, kPagePlaces> positions;
  };
  struct CellRef {
    std::size_t index;  // of the page in the sequence's table
    std::int32_t slot;
    std::int32_t id;
    std::int32_t position;
  };

  static std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }
  static std::size_t cell(std::int32_t page, std::int32_t slot) { return at(page * kPagePlaces + slot); }
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
  void put_cell(std::int32_t page, std::int32_t slot, std::int32_t id, std::int32_t position);
  void drop_cell(std::int32_t page, std::int32_t slot);
  std::int32_t take_page();
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

  JournaledArray positions_;  // [n_pages * 16]
  JournaledArray ids_;        // [n_pages * 16], the cell's number, -1 where empty
  JournaledArray page_refs_;  // [n_pages] sequences whose table names it
  JournaledArray id_refs_;    // [n_pages * 16] pages that hold the cell of this number
  JournaledArray free_pages_, n_free_pages_;
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

  std::uint64_t micro_batch_ = 1;                    // number of the current one
  std::vector<std::uint64_t> page_written_;          // [n_pages] in which micro-batch
  std::vector<std::uint64_t> sequence_written_;      // [n_sequences] likewise
  std::vector<std::int32_t> position_before_batch_;  // [n_sequences] next position when that began
};

}  // namespace quipu
