#include "memory/batch_memory.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "memory/paged_cells.h"

namespace quipu {

std::size_t batch_memory_pages(const BatchMemoryParams& params) {
  return ceil_div(params.n_ubatch, std::size_t{kPagePlaces}) + std::min(params.n_sequences, params.n_ubatch);
}

BatchMemory::BatchMemory(const BatchMemoryParams& params, std::vector<std::unique_ptr<KvStorage>> storages)
    : storages_(std::move(storages)),
      max_tokens_(params.n_ubatch),
      positions_(batch_memory_pages(params) * kPagePlaces, -1),
      page_tables_(params.n_sequences),
      n_places_(params.n_sequences, 0) {
  layout_.tokens.reserve(params.n_ubatch);
  layout_.page_tables.resize(params.n_sequences);
  layout_.cell_positions = positions_;
  order_.reserve(params.n_ubatch);
}

PrepareResult BatchMemory::prepare(const MemoryBatch& batch, std::size_t n_ubatch,
                                   const std::function<bool()>&) {
  order_.clear();
  if (batch.sequences.size() > std::min(n_ubatch, max_tokens_)) return PrepareResult::no_room;
  // The tables grow here, as a commit cannot fail.
  std::fill(n_places_.begin(), n_places_.end(), 0);
  for (const std::int32_t sequence : batch.sequences) {
    QUIPU_CHECK(static_cast<std::size_t>(sequence) < n_places_.size());
    ++n_places_[static_cast<std::size_t>(sequence)];
  }
  for (std::size_t s = 0; s < page_tables_.size(); ++s) {
    page_tables_[s].reserve(static_cast<std::size_t>(ceil_div(n_places_[s], kPagePlaces)));
  }
  for (std::size_t t = 0; t < batch.n_tokens(); ++t) {
    order_.insert(order_.end(), batch.sequences_of(t).size(), static_cast<std::uint32_t>(t));
  }
  return PrepareResult::ready;
}

void BatchMemory::commit(const MemoryBatch& batch) {
  QUIPU_CHECK(order_.size() == batch.sequences.size());
  std::fill(positions_.begin(), positions_.end(), -1);
  std::fill(n_places_.begin(), n_places_.end(), 0);
  for (auto& table : page_tables_) table.clear();
  layout_.tokens.clear();
  std::int32_t n_pages = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::int32_t sequence = batch.sequences[i];
    const std::int32_t position = batch.positions[order_[i]];
    auto& table = page_tables_[static_cast<std::size_t>(sequence)];
    const std::int32_t place = n_places_[static_cast<std::size_t>(sequence)]++;
    if (place % kPagePlaces == 0) table.push_back(n_pages++);
    positions_[static_cast<std::size_t>(table.back() * kPagePlaces + place % kPagePlaces)] = position;
    layout_.tokens.push_back({sequence, position, place});
  }
  for (std::size_t s = 0; s < page_tables_.size(); ++s) layout_.page_tables[s] = page_tables_[s];
}

void BatchMemory::add(std::int32_t sequence, std::int32_t, std::int32_t, std::int32_t) {
  log_warning("adding to positions of sequence {} changes nothing: the model has no memory", sequence);
}

void BatchMemory::divide(std::int32_t sequence, std::int32_t, std::int32_t, std::int32_t) {
  log_warning("dividing positions of sequence {} changes nothing: the model has no memory", sequence);
}

std::size_t BatchMemory::bytes() const {
  return std::accumulate(storages_.begin(), storages_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& storage) { return sum + storage->bytes(); });
}

}  // namespace quipu
