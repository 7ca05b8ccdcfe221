#include "context/encoded_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "memory/batch_memory.h"
#include "memory/paged_cells.h"

namespace quipu {

EncodedText::EncodedText(const LoadedModel& model, const ResolvedParams& params, std::size_t layout)
    : encoder_(create_batch_memory(model, params, model.encoder_cache_specs())),
      page_tables_(params.n_seq_max) {
  const std::size_t n_pages =
      batch_memory_pages({.n_sequences = params.n_seq_max, .n_ubatch = params.n_ubatch});
  storages_ = create_f32_storages(model, model.cross_cache_specs(), n_pages);
  for (const auto& storage : storages_) {
    written_.push_back({storage.get(), 0});
    read_.push_back({storage.get(), layout});
  }
  positions_.assign(n_pages * kPagePlaces, -1);
  layout_.tokens.reserve(params.n_ubatch);
  layout_.page_tables.reserve(params.n_seq_max);
}

void EncodedText::begin() {
  for (auto& table : page_tables_) table.clear();
}

// The text's keys and values are where the encoder had its own.
void EncodedText::finish() {
  const AttentionLayout& encoded = *encoder_.memory->layouts()[0];
  QUIPU_CHECK(encoded.cell_positions.size() == positions_.size());
  PageTables tables;
  for (const auto& table : encoded.page_tables) tables.emplace_back(table.begin(), table.end());
  std::copy(encoded.cell_positions.begin(), encoded.cell_positions.end(), positions_.begin());
  page_tables_ = std::move(tables);
}

bool EncodedText::is_same(SequenceId a, SequenceId b) const {
  const auto& pages_a = page_tables_[static_cast<std::size_t>(a)];
  const auto& pages_b = page_tables_[static_cast<std::size_t>(b)];
  if (a == b || pages_a == pages_b) return true;
  if (pages_a.size() != pages_b.size()) return false;
  std::vector<std::byte> cell_a, cell_b;
  for (std::size_t i = 0; i < pages_a.size() * kPagePlaces; ++i) {
    const std::int32_t page_a = pages_a[i / kPagePlaces], page_b = pages_b[i / kPagePlaces];
    const auto slot = static_cast<std::int32_t>(i % kPagePlaces);
    const std::int32_t position = positions_[static_cast<std::size_t>(page_a * kPagePlaces + slot)];
    if (position != positions_[static_cast<std::size_t>(page_b * kPagePlaces + slot)]) return false;
    if (position < 0) break;
    for (const auto& storage : storages_) {
      cell_a.resize(storage->cell_bytes());
      cell_b.resize(storage->cell_bytes());
      storage->get_cell(page_a, slot, cell_a);
      storage->get_cell(page_b, slot, cell_b);
      if (cell_a != cell_b) return false;
    }
  }
  return true;
}

const AttentionLayout* EncodedText::look(const MemoryBatch& batch,
                                         std::span<const std::uint32_t> micro_batch) {
  layout_.page_tables.assign(page_tables_.begin(), page_tables_.end());
  layout_.cell_positions = positions_;
  layout_.tokens.clear();
  for (const std::uint32_t t : micro_batch) {
    layout_.tokens.push_back({batch.sequences_of(t)[0], batch.positions[t], 0});
  }
  return &layout_;
}

std::size_t EncodedText::bytes() const {
  std::size_t total = encoder_.memory->bytes();
  for (const auto& storage : storages_) total += storage->bytes();
  return total;
}

MemoryState::Part EncodedText::describe(const StateScope& scope) const {
  MemoryState::Part part;
  part.has_data = !scope.partial_only;
  for (std::size_t s = 0; part.has_data && s < page_tables_.size(); ++s) {
    const auto id = static_cast<SequenceId>(s);
    if (!has(id) || scope.sequence.value_or(id) != id) continue;
    MemoryState::Sequence text;
    text.id = id;
    for (const std::int32_t page : page_tables_[s]) {
      for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
        const std::int32_t position = positions_[static_cast<std::size_t>(page * kPagePlaces + slot)];
        if (position < 0) break;
        text.cells.push_back(
            {static_cast<std::int32_t>(text.cells.size()), static_cast<std::uint32_t>(part.cells.size())});
        part.cells.push_back({.position = position, .page = page, .slot = slot});
      }
    }
    part.sequences.push_back(std::move(text));
  }
  return part;
}

// Every token is in one text, and texts have no holes.
void EncodedText::check(const MemoryState::Part& part, std::size_t number, const StateScope& scope) const {
  if (part.has_data == scope.partial_only) {
    fail(ErrorCode::bad_file, "state: part {} is {} data", number, part.has_data ? "with" : "without");
  }
  check_state_part(part, number, false);
  std::size_t n_placed = 0;
  for (const MemoryState::Sequence& text : part.sequences) {
    if (text.cells.empty() || text.cells.back().place != static_cast<std::int32_t>(text.cells.size()) - 1) {
      fail(ErrorCode::bad_file, "state: part {} has a text of sequence {} with holes", number, text.id);
    }
    n_placed += text.cells.size();
    if (scope.sequence || static_cast<std::size_t>(text.id) < page_tables_.size()) continue;
    fail(ErrorCode::invalid_argument, "sequence {} is not in [0, {})", text.id, page_tables_.size());
  }
  const bool turned = std::any_of(part.cells.begin(), part.cells.end(),
                                  [](const MemoryState::Cell& cell) { return cell.shift != 0; });
  if (n_placed != part.cells.size() || turned || (scope.sequence && part.sequences.size() > 1) ||
      (!part.has_data && n_placed != 0)) {
    fail(ErrorCode::bad_file, "state: part {} is no encoded text", number);
  }
}

void EncodedText::prepare_restore(const MemoryState::Part& part, std::size_t number,
                                  const StateScope& scope) {
  prepared_.reset();
  check(part, number, scope);
  if (!part.has_data) return;
  Restored restored{.part = number, .page_tables = page_tables_, .positions = positions_};
  for (std::size_t s = 0; s < page_tables_.size(); ++s) {
    if (!scope.sequence || static_cast<std::size_t>(*scope.sequence) == s) restored.page_tables[s].clear();
  }
  for (const MemoryState::Sequence& text : part.sequences) {
    place(restored, part, text, static_cast<std::size_t>(scope.sequence.value_or(text.id)));
  }
  for (const auto& storage : storages_) {
    restored.bytes.resize(std::max(restored.bytes.size(), storage->cell_bytes()));
  }
  prepared_ = std::move(restored);
}

// Gives a text pages that no other has.
void EncodedText::place(Restored& restored, const MemoryState::Part& part, const MemoryState::Sequence& text,
                        std::size_t sequence) const {
  std::vector<bool> taken(positions_.size() / kPagePlaces, false);
  for (const auto& table : restored.page_tables) {
    for (const std::int32_t page : table) taken[static_cast<std::size_t>(page)] = true;
  }
  auto& table = restored.page_tables[sequence];
  for (const MemoryState::Placed& placed : text.cells) {
    const std::int32_t slot = placed.place % kPagePlaces;
    if (slot == 0) {
      const auto free = std::find(taken.begin(), taken.end(), false);
      if (free == taken.end()) {
        fail(ErrorCode::out_of_memory, "state: an encoded text of {} tokens finds no room",
             text.cells.size());
      }
      *free = true;
      table.push_back(static_cast<std::int32_t>(free - taken.begin()));
      std::fill_n(restored.positions.begin() + std::ptrdiff_t{table.back()} * kPagePlaces, kPagePlaces, -1);
    }
    const std::int32_t page = table.back();
    restored.positions[static_cast<std::size_t>(page * kPagePlaces + slot)] =
        part.cells[placed.cell].position;
    restored.writes.push_back({page, slot, placed.cell});
  }
}

void EncodedText::commit_restore(const CellSource& source) {
  if (!prepared_) return;
  page_tables_.swap(prepared_->page_tables);
  positions_.swap(prepared_->positions);
  for (std::size_t layer = 0; layer < storages_.size(); ++layer) {
    const auto cell = std::span(prepared_->bytes).first(storages_[layer]->cell_bytes());
    for (const Restored::Write& write : prepared_->writes) {
      source(prepared_->part, layer, write.cell, cell);
      storages_[layer]->set_cell(write.page, write.slot, cell);
    }
  }
  prepared_.reset();
}

}  // namespace quipu
