#include "context/encoded_text.h"

#include "memory/batch_memory.h"

namespace quipu {

EncodedText::EncodedText(const LoadedModel& model, const ResolvedParams& params, std::size_t layout)
    : encoder_(create_batch_memory(model, params, model.encoder_cache_specs())) {
  const std::size_t n_pages =
      batch_memory_pages({.n_sequences = params.n_seq_max, .n_ubatch = params.n_ubatch});
  storages_ = create_f32_storages(model, model.cross_cache_specs(), n_pages);
  for (const auto& storage : storages_) {
    written_.push_back({storage.get(), 0});
    read_.push_back({storage.get(), layout});
  }
  layout_.tokens.reserve(params.n_ubatch);
  layout_.page_tables.reserve(params.n_seq_max);
}

bool EncodedText::has(SequenceId sequence) const {
  if (!is_there_) return false;
  const AttentionLayout& encoded = *encoder_.memory->layouts()[0];
  return static_cast<std::size_t>(sequence) < encoded.page_tables.size() &&
         !encoded.page_tables[static_cast<std::size_t>(sequence)].empty();
}

const AttentionLayout* EncodedText::look(const MemoryBatch& batch,
                                         std::span<const std::uint32_t> micro_batch) {
  const AttentionLayout& encoded = *encoder_.memory->layouts()[0];
  layout_.page_tables = encoded.page_tables;
  layout_.cell_positions = encoded.cell_positions;
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

}  // namespace quipu
