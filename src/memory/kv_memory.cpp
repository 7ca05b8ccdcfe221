#include "memory/kv_memory.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"

namespace quipu {
namespace {

constexpr std::size_t kWindowRounding = 256;

}  // namespace

PagedCells::Config kv_part_config(const KvMemoryParams& params, std::uint32_t window) {
  constexpr auto kMaxCells = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  const std::size_t sharing = params.unified ? params.n_sequences : 1;
  std::size_t n_cells = params.n_cells;
  if (window != 0) {
    const std::size_t needed = std::size_t{window} * sharing + params.n_ubatch;
    n_cells = std::min(n_cells, round_up(needed, kWindowRounding));
  }
  const auto total = checked_mul(n_cells, params.unified ? std::size_t{1} : params.n_sequences);
  const std::size_t spare = 2 * params.n_sequences;
  if (!total || *total > kMaxCells - kPagePlaces * (spare + 1)) {
    fail(ErrorCode::invalid_argument, "a memory of {} cells is too large", n_cells);
  }
  return {
      .n_sequences = params.n_sequences,
      .n_pages = ceil_div(*total, std::size_t{kPagePlaces}) + spare,
      .n_cells = n_cells,
      .per_sequence = !params.unified,
      .window = static_cast<std::int32_t>(std::min(std::size_t{window}, kMaxCells)),
  };
}

KvMemory::KvMemory(const KvMemoryParams& params, std::vector<KvPart> parts)
    : n_sequences_(params.n_sequences), can_shift_(params.can_shift) {
  QUIPU_CHECK(!parts.empty());
  for (KvPart& part : parts) {
    auto made = std::make_unique<Part>();
    made->cells =
        std::make_unique<PagedCells>(part.config, parts_.empty() ? nullptr : parts_[0]->cells.get());
    made->storages = std::move(part.storages);
    made->rotations = std::move(part.rotations);
    made->rotations.resize(made->storages.size());
    made->layout.tokens.reserve(params.n_ubatch);
    made->layout.page_tables.resize(n_sequences_);
    layout_list_.push_back(&made->layout);
    parts_.push_back(std::move(made));
  }
}

bool KvMemory::append(std::span<const std::int32_t> sequences, std::int32_t position, std::int32_t place) {
  return std::all_of(parts_.rbegin(), parts_.rend(),
                     [&](const auto& part) { return part->cells->append(sequences, position, place); });
}

// Appends the whole batch, in order, noting where micro-batches end.
bool KvMemory::append_all(const MemoryBatch& batch, std::size_t n_ubatch) {
  std::size_t n_in_micro_batch = 0;
  for (std::size_t t = 0; t < batch.n_tokens(); ++t) {
    const auto sequences = batch.sequences_of(t);
    const std::int32_t place = parts_.front()->cells->next_place(sequences[0]);
    const bool cut = n_in_micro_batch == n_ubatch ||
                     std::any_of(parts_.begin(), parts_.end(),
                                 [&](const auto& part) { return part->cells->must_wait(sequences, place); });
    if (cut || t == 0) {
      if (cut) ends_.push_back(t);
      n_in_micro_batch = 0;
      for (const auto& part : parts_) part->cells->begin_micro_batch();
    }
    if (!append(sequences, batch.positions[t], place)) return false;
    ++n_in_micro_batch;
  }
  ends_.push_back(batch.n_tokens());
  return true;
}

PrepareResult KvMemory::prepare(const MemoryBatch& batch, std::size_t n_ubatch,
                                const std::function<bool()>& abort) {
  QUIPU_CHECK(batch.n_tokens() > 0 && n_ubatch > 0);
  void_preparation();
  if (!turn_keys(abort)) return PrepareResult::aborted;
  list_sequences(batch);
  const bool waits = is_waiting();
  if (waits && abort && abort()) return PrepareResult::aborted;
  {
    const Transaction trial(*this);  // taken back at the end
    if ((waits && !settle()) || !append_all(batch, n_ubatch)) {
      ends_.clear();
      return PrepareResult::no_room;
    }
  }
  order_.resize(batch.n_tokens());
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  if (waits) {
    decide_turns();
    if (!turn_keys(abort)) return PrepareResult::aborted;
  }
  return PrepareResult::ready;
}

void KvMemory::list_sequences(const MemoryBatch& batch) {
  batch_sequences_.assign(batch.sequences.begin(), batch.sequences.end());
  std::sort(batch_sequences_.begin(), batch_sequences_.end());
  batch_sequences_.erase(std::unique(batch_sequences_.begin(), batch_sequences_.end()),
                         batch_sequences_.end());
}

// Keys that are turned in some layers only must be turned in all before anything else changes.
void KvMemory::begin_operation() {
  void_preparation();
  turn_keys({});
}

void KvMemory::void_preparation() {
  ends_.clear();
  n_committed_ = 0;
  appended_.clear();
  appended_sequences_.clear();
}

std::span<const std::uint32_t> KvMemory::micro_batch(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::span(order_).subspan(begin, ends_[index] - begin);
}

void KvMemory::commit(const MemoryBatch& batch) {
  QUIPU_CHECK(n_committed_ < ends_.size() && ends_.back() == batch.n_tokens());
  appended_.clear();
  appended_sequences_.clear();
  for (const auto& part : parts_) part->layout.tokens.clear();

  Transaction transaction(*this);
  for (const std::uint32_t t : micro_batch(n_committed_)) {
    const auto sequences = batch.sequences_of(t);
    const std::int32_t place = parts_.front()->cells->next_place(sequences[0]);
    QUIPU_CHECK(append(sequences, batch.positions[t], place));
    for (const auto& part : parts_) {
      part->layout.tokens.push_back({sequences[0], batch.positions[t], place});
    }
    appended_sequences_.insert(appended_sequences_.end(), sequences.begin(), sequences.end());
    appended_.push_back({place, static_cast<std::uint32_t>(appended_sequences_.size())});
  }
  transaction.finish();
  ++n_committed_;

  for (const auto& part : parts_) {
    part->layout.cell_positions = part->cells->cell_positions();
    for (std::size_t s = 0; s < n_sequences_; ++s) {
      part->layout.page_tables[s] = part->cells->page_table(static_cast<std::int32_t>(s));
    }
  }
}

void KvMemory::step_back() {
  Transaction transaction(*this);
  for (std::size_t i = appended_.size(); i-- > 0;) {
    const std::size_t begin = i == 0 ? 0 : appended_[i - 1].sequences_end;
    const auto sequences = std::span(appended_sequences_).subspan(begin, appended_[i].sequences_end - begin);
    for (const auto& part : parts_) part->cells->retract(sequences, appended_[i].place);
  }
  transaction.finish();
  void_preparation();
}

void KvMemory::copy_data() {
  for (const auto& part : parts_) {
    for (const DataCopy& copy : part->cells->data_copies()) {
      for (const auto& storage : part->storages) {
        if (copy.from_slot < 0) {
          storage->copy_page(copy.from_page, copy.to_page);
        } else {
          storage->copy_cell(copy.from_page, copy.from_slot, copy.to_page, copy.to_slot);
        }
      }
    }
  }
}

void KvMemory::check_sequence(std::int32_t sequence) const {
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= n_sequences_) {
    fail(ErrorCode::invalid_argument, "sequence {} is not in [0, {})", sequence, n_sequences_);
  }
}

bool KvMemory::remove(std::int32_t sequence, std::int32_t p0, std::int32_t p1) {
  if (sequence != kAnySequence) check_sequence(sequence);
  begin_operation();
  const PositionRange range = position_range(p0, p1);
  if (range.begin >= range.end) return true;
  Transaction transaction(*this);
  for (const auto& part : parts_) {
    if (sequence == kAnySequence) {
      part->cells->remove_everywhere(range);
    } else if (!part->cells->remove(sequence, range)) {
      return false;
    }
  }
  for (std::size_t s = 0; s < n_sequences_; ++s) {
    const auto touched = static_cast<std::int32_t>(s);
    if ((sequence == kAnySequence || sequence == touched) && !holds_windows(touched)) return false;
  }
  transaction.finish();
  return true;
}

// Is all that the sequence's next position sees still there?
bool KvMemory::holds_windows(std::int32_t sequence) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->cells->holds_window(sequence); });
}

void KvMemory::copy(std::int32_t from, std::int32_t to, std::int32_t p0, std::int32_t p1) {
  check_sequence(from);
  check_sequence(to);
  begin_operation();
  const PositionRange range = position_range(p0, p1);
  if (from == to || range.begin >= range.end) return;
  Transaction transaction(*this);
  parts_.front()->cells->plan_moves(from, to, range, moves_);
  for (const auto& part : parts_) {
    if (!part->cells->copy(from, to, range, moves_)) {
      fail(ErrorCode::out_of_memory,
           "no page is left to copy positions [{}, {}) of sequence {} to sequence {}", p0, p1, from, to);
    }
  }
  if (!holds_windows(to)) {
    fail(ErrorCode::unsupported,
         "the sliding window has forgotten what sequence {} would need after a copy of positions [{}, {}) of "
         "sequence {}",
         to, p0, p1, from);
  }
  transaction.finish();
}

void KvMemory::keep(std::int32_t sequence) {
  check_sequence(sequence);
  begin_operation();
  Transaction transaction(*this);
  for (const auto& part : parts_) {
    for (std::size_t s = 0; s < n_sequences_; ++s) {
      const auto other = static_cast<std::int32_t>(s);
      if (other != sequence) QUIPU_CHECK(part->cells->remove(other, {}));
    }
  }
  transaction.finish();
}

void KvMemory::clear(bool data) {
  void_preparation();
  for (const auto& part : parts_) {
    part->cells->clear();
    part->turns.clear();
    for (const auto& storage : part->storages) {
      if (data) storage->clear();
    }
  }
}

std::int32_t KvMemory::min_position(std::int32_t sequence) const {
  check_sequence(sequence);
  std::int32_t highest = -1;
  for (const auto& part : parts_) highest = std::max(highest, part->cells->min_position(sequence));
  return highest;
}

std::int32_t KvMemory::max_position(std::int32_t sequence) const {
  check_sequence(sequence);
  return parts_.front()->cells->max_position(sequence);
}

bool KvMemory::same_cells(std::span<const std::int32_t> sequences) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->cells->same_cells(sequences); });
}

std::size_t KvMemory::bytes() const {
  std::size_t total = 0;
  for (const auto& part : parts_) {
    for (const auto& storage : part->storages) total += storage->bytes();
  }
  return total;
}

}  // namespace quipu
