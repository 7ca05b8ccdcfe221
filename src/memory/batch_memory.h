// The memory of encoders: cells live for one batch, so that attention finds the batch's keys and values in
// pages as always. Nothing is remembered. A token that names several sequences is computed once in each,
// since what it sees there differs.
#pragma once

#include <memory>
#include <vector>

#include "graph/storage.h"
#include "memory/memory.h"

namespace quipu {

struct BatchMemoryParams {
  std::size_t n_sequences = 1;
  std::size_t n_ubatch = 512;  ///< most tokens in a batch, counted once for each of their sequences
};

/// Pages for every sequence's tokens in pages of its own.
std::size_t batch_memory_pages(const BatchMemoryParams& params);

class BatchMemory final : public Memory {
 public:
  /// Storages of all layers, of batch_memory_pages() pages each. They share one layout.
  BatchMemory(const BatchMemoryParams& params, std::vector<std::unique_ptr<KvStorage>> storages);

  /// The batch is one micro-batch, tokens in their order, each as often as it names sequences. There is no
  /// room if that is more than `n_ubatch`.
  PrepareResult prepare(const MemoryBatch& batch, std::size_t n_ubatch,
                        const std::function<bool()>& abort = {}) override;
  std::size_t n_micro_batches() const override { return order_.empty() ? 0 : 1; }
  std::span<const std::uint32_t> micro_batch(std::size_t) const override { return order_; }
  void commit(const MemoryBatch& batch) override;
  void step_back() override { order_.clear(); }
  std::span<const AttentionLayout* const> layouts() const override { return {&layout_pointer_, 1}; }

  bool remove(std::int32_t, std::int32_t, std::int32_t) override { return true; }
  void copy(std::int32_t, std::int32_t, std::int32_t, std::int32_t) override {}
  bool can_shift() const override { return false; }
  void add(std::int32_t, std::int32_t, std::int32_t, std::int32_t) override;
  void divide(std::int32_t, std::int32_t, std::int32_t, std::int32_t) override;
  void keep(std::int32_t) override {}
  void clear(bool) override {}
  std::int32_t min_position(std::int32_t) const override { return -1; }
  std::int32_t max_position(std::int32_t) const override { return -1; }
  bool same_cells(std::span<const std::int32_t>) const override { return true; }
  std::size_t bytes() const override;

 private:
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::size_t max_tokens_;
  AttentionLayout layout_;
  const AttentionLayout* layout_pointer_ = &layout_;
  std::vector<std::int32_t> positions_;                 // of cells, [n_pages * 16]
  std::vector<std::vector<std::int32_t>> page_tables_;  // by sequence
  std::vector<std::int32_t> n_places_;                  // by sequence
  std::vector<std::uint32_t> order_;
};

}  // namespace quipu
