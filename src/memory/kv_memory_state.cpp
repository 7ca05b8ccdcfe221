// Saving and restoring keys and values: everything is checked before anything is changed.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "memory/kv_memory.h"
#include "memory/state_cells.h"

namespace quipu {
namespace {

// What a windowed part holds, the first part knows.
void check_agreement(const MemoryState& state, std::size_t number) {
  const MemoryState::Part &first = state.parts[0], &part = state.parts[number];
  for (const MemoryState::Sequence& sequence : part.sequences) {
    const auto known = std::find_if(first.sequences.begin(), first.sequences.end(),
                                    [&](const auto& other) { return other.id == sequence.id; });
    if (known == first.sequences.end()) {
      fail(ErrorCode::bad_file, "state: part {} has sequence {}, which part 0 has not", number, sequence.id);
    }
    auto other = known->cells.begin();
    for (const MemoryState::Placed& placed : sequence.cells) {
      while (other != known->cells.end() && other->place < placed.place) ++other;
      const bool agrees = other != known->cells.end() && other->place == placed.place &&
                          first.cells[other->cell].position == part.cells[placed.cell].position;
      if (agrees || known->forgotten_high >= 0) continue;
      fail(ErrorCode::bad_file, "state: parts 0 and {} differ in place {} of sequence {}", number,
           placed.place, sequence.id);
    }
  }
}

}  // namespace

MemoryState KvMemory::describe(const StateScope& scope) {
  if (scope.sequence) check_sequence(*scope.sequence);
  begin_operation();
  MemoryState state;
  for (const auto& part : parts_) {
    state.parts.push_back(part->cells->describe(scope.sequence));
    state.parts.back().has_data = !scope.partial_only || part->cells->config().window != 0;
  }
  return state;
}

void KvMemory::restore(const MemoryState& state, const StateScope& scope, const CellSource& source) {
  if (scope.sequence) check_sequence(*scope.sequence);
  if (state.parts.size() != parts_.size()) {
    fail(ErrorCode::bad_file, "state: memory of {} parts instead of {}", state.parts.size(), parts_.size());
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const bool windowed = window(i) != 0;
    check_state_part(state.parts[i], i, windowed);
    if (i > 0) check_agreement(state, i);
    if (state.parts[i].has_data != (!scope.partial_only || windowed)) {
      fail(ErrorCode::bad_file, "state: part {} is {} data", i, state.parts[i].has_data ? "with" : "without");
    }
    if (scope.sequence && state.parts[i].sequences.size() > 1) {
      fail(ErrorCode::bad_file, "state: part {} has {} sequences instead of one", i,
           state.parts[i].sequences.size());
    }
    for (const MemoryState::Sequence& sequence : state.parts[i].sequences) {
      if (!scope.sequence) check_sequence(sequence.id);
    }
  }

  begin_operation();
  std::vector<std::int32_t> restored;
  for (std::int32_t s = 0; static_cast<std::size_t>(s) < n_sequences_; ++s) {
    if (!scope.sequence || *scope.sequence == s) restored.push_back(s);
  }
  std::vector<std::vector<std::int32_t>> ids(parts_.size());
  Transaction transaction(*this);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    PagedCells& cells = *parts_[i]->cells;
    if (!state.parts[i].has_data) {
      for (const std::int32_t s : restored) trim(s, state.parts[i], scope.sequence.has_value());
      continue;
    }
    for (const std::int32_t s : restored) QUIPU_CHECK(cells.remove(s, {}));
    ids[i] = cells.restore(state.parts[i], scope.sequence);
  }
  for (const auto& part : parts_) {
    if (!part->cells->settle(restored)) fail(ErrorCode::out_of_memory, "state: its cells find no room");
  }
  for (std::int32_t s = 0; static_cast<std::size_t>(s) < n_sequences_; ++s) {
    if (holds_windows(s)) continue;
    fail(ErrorCode::bad_file, "state: sequence {} lacks cells that its window sees", s);
  }
  // The last that may fail: what comes after writes into pages that nobody else sees, or over what is gone.
  std::vector<std::vector<CellWrite>> writes(parts_.size());
  std::size_t most_bytes = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (state.parts[i].has_data) writes[i] = writes_of(i, restored, ids[i]);
    for (const auto& storage : parts_[i]->storages) most_bytes = std::max(most_bytes, storage->cell_bytes());
  }
  std::vector<std::byte> bytes(most_bytes);
  transaction.finish();
  for (std::size_t i = 0; i < parts_.size(); ++i) write_cells(i, writes[i], source, bytes);
}

// The sequence as it was when it had only these cells.
void KvMemory::trim(std::int32_t sequence, const MemoryState::Part& state, bool under_any_id) {
  PagedCells& cells = *parts_[0]->cells;
  const MemoryState::Part now = cells.describe(sequence);
  const auto saved = std::find_if(state.sequences.begin(), state.sequences.end(),
                                  [&](const auto& other) { return under_any_id || other.id == sequence; });
  std::size_t n_saved = 0;
  std::int32_t highest = -1;
  if (saved != state.sequences.end()) {
    n_saved = saved->cells.size();
    const std::size_t n_now = now.sequences.empty() ? 0 : now.sequences[0].cells.size();
    for (std::size_t i = 0; i < n_saved; ++i) {
      const std::int32_t position = state.cells[saved->cells[i].cell].position;
      highest = std::max(highest, position);
      if (i < n_now && now.sequences[0].cells[i].place == saved->cells[i].place &&
          now.cells[now.sequences[0].cells[i].cell].position == position) {
        continue;
      }
      fail(ErrorCode::invalid_argument,
           "state: sequence {} has not the cell of position {} that the partial state builds on", sequence,
           position);
    }
  }
  if (!cells.remove(sequence, {highest + 1, INT32_MAX})) {
    fail(ErrorCode::out_of_memory, "state: no page is left to trim sequence {}", sequence);
  }
  if (cells.n_cells_of(sequence) != n_saved) {
    fail(ErrorCode::invalid_argument, "state: sequence {} has changed in more than tokens behind position {}",
         sequence, highest);
  }
}

// Where the data of new cells go: everywhere that their numbers are found.
std::vector<KvMemory::CellWrite> KvMemory::writes_of(std::size_t part,
                                                     std::span<const std::int32_t> sequences,
                                                     std::span<const std::int32_t> ids) const {
  const PagedCells& cells = *parts_[part]->cells;
  std::unordered_map<std::int32_t, std::size_t> cell_of;  // by number
  for (std::size_t i = 0; i < ids.size(); ++i) cell_of[ids[i]] = i;
  std::vector<CellWrite> writes;
  for (const std::int32_t s : sequences) {
    const auto table = cells.page_table(s);
    for (std::size_t i = 0; i < table.size(); ++i) {
      for (std::int32_t slot = 0; table[i] >= 0 && slot < kPagePlaces; ++slot) {
        const auto found = cell_of.find(cells.cell_at(s, static_cast<std::int32_t>(i) * kPagePlaces + slot));
        if (found != cell_of.end()) writes.push_back({table[i], slot, found->second});
      }
    }
  }
  std::sort(writes.begin(), writes.end());
  writes.erase(std::unique(writes.begin(), writes.end()), writes.end());
  return writes;
}

// `bytes` has room for a cell of any layer.
void KvMemory::write_cells(std::size_t part, std::span<const CellWrite> writes, const CellSource& source,
                           std::span<std::byte> bytes) {
  for (std::size_t layer = 0; layer < parts_[part]->storages.size(); ++layer) {
    KvStorage& storage = *parts_[part]->storages[layer];
    const auto cell = bytes.first(storage.cell_bytes());
    for (const CellWrite& write : writes) {
      source(part, layer, write.cell, cell);
      storage.set_cell(write.page, write.slot, cell);
    }
  }
}

}  // namespace quipu
