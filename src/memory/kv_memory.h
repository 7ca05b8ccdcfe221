// Keys and values of past tokens, in pages shared by sequences. One part, or several with windows of
// different lengths: the first part gives the cells their places, the others hold those that their window has
// not forgotten.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/storage.h"
#include "memory/memory.h"
#include "memory/paged_cells.h"

namespace quipu {

struct KvMemoryParams {
  std::size_t n_sequences = 1;
  std::size_t n_cells = 0;     ///< room of all sequences if unified, else of each
  bool unified = true;         ///< how room is counted
  std::size_t n_ubatch = 512;  ///< most tokens in a micro-batch
  bool can_shift = true;       ///< positions of cells may change
};

/// The size of a part. `window`: positions that its layers see, 0 for all. Windowed parts have room for the
/// window of each sequence and a micro-batch, rounded up to 256 cells, and never for more than a full part.
/// Pages: one for each 16 cells and two for each sequence. Error(invalid_argument) if cells cannot be
/// numbered with 31 bits.
PagedCells::Config kv_part_config(const KvMemoryParams& params, std::uint32_t window);

struct KvPart {
  PagedCells::Config config;
  std::vector<std::unique_ptr<KvStorage>> storages;  ///< of the layers that it serves, each of config.n_pages
  /// How each layer's keys turn with their positions; nothing for those that do not. Missing: none does.
  std::vector<std::optional<KeyRotation>> rotations = {};
};

class KvMemory final : public Memory {
 public:
  /// At least one part; a part that sees everything comes first, longer windows before shorter ones.
  KvMemory(const KvMemoryParams& params, std::vector<KvPart> parts);

  PrepareResult prepare(const MemoryBatch& batch, std::size_t n_ubatch,
                        const std::function<bool()>& abort = {}) override;
  std::size_t n_micro_batches() const override { return ends_.size(); }
  std::span<const std::uint32_t> micro_batch(std::size_t index) const override;
  void commit(const MemoryBatch& batch) override;
  void step_back() override;
  /// One for each part.
  std::span<const AttentionLayout* const> layouts() const override { return layout_list_; }

  bool remove(std::int32_t sequence, std::int32_t p0, std::int32_t p1) override;
  void copy(std::int32_t from, std::int32_t to, std::int32_t p0, std::int32_t p1) override;
  bool can_shift() const override { return can_shift_; }
  void add(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t delta) override;
  void divide(std::int32_t sequence, std::int32_t p0, std::int32_t p1, std::int32_t divisor) override;
  void keep(std::int32_t sequence) override;
  void clear(bool data) override;
  std::int32_t min_position(std::int32_t sequence) const override;
  std::int32_t max_position(std::int32_t sequence) const override;
  bool same_cells(std::span<const std::int32_t> sequences) const override;
  std::size_t n_parts() const override { return parts_.size(); }
  std::uint32_t window(std::size_t part) const override {
    return static_cast<std::uint32_t>(parts_[part]->cells->config().window);
  }
  std::span<const std::unique_ptr<KvStorage>> storages(std::size_t part) const override {
    return parts_[part]->storages;
  }
  const KeyRotation* rotation(std::size_t part, std::size_t layer) const override {
    const auto& rotation = parts_[part]->rotations[layer];
    return rotation ? &*rotation : nullptr;
  }
  MemoryState describe(const StateScope& scope) override;
  void restore(const MemoryState& state, const StateScope& scope, const CellSource& source) override;
  std::size_t bytes() const override;

  /// For tests and figures.
  const PagedCells& cells(std::size_t part) const { return *parts_[part]->cells; }

 private:
  struct Part {
    std::unique_ptr<PagedCells> cells;
    std::vector<std::unique_ptr<KvStorage>> storages;
    std::vector<std::optional<KeyRotation>> rotations;
    std::vector<CellShift> turns;  // of keys, decided but not yet done in every layer
    std::size_t n_turned_layers = 0;
    AttentionLayout layout;
  };
  // Of a restored cell.
  struct CellWrite {
    std::int32_t page;
    std::int32_t slot;
    std::size_t cell;
    auto operator<=>(const CellWrite&) const = default;
  };
  // All parts change together or not at all.
  class Transaction {
   public:
    explicit Transaction(KvMemory& memory) : memory_(memory) {
      for (const auto& part : memory_.parts_) part->cells->begin();
    }
    ~Transaction() {
      if (done_) return;
      for (const auto& part : memory_.parts_) part->cells->roll_back();
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void finish() {
      memory_.copy_data();
      done_ = true;
    }

   private:
    KvMemory& memory_;
    bool done_ = false;
  };

  void check_sequence(std::int32_t sequence) const;
  bool append(std::span<const std::int32_t> sequences, std::int32_t position, std::int32_t place);
  bool append_all(const MemoryBatch& batch, std::size_t n_ubatch);
  bool holds_windows(std::int32_t sequence) const;
  void copy_data();
  void begin_operation();
  void void_preparation();
  void change_positions(std::string_view what, std::int32_t sequence, const PositionRange& range,
                        const PositionChange& change);
  void trim(std::int32_t sequence, const MemoryState::Part& state, bool under_any_id);
  std::vector<CellWrite> writes_of(std::size_t part, std::span<const std::int32_t> sequences,
                                   std::span<const std::int32_t> ids) const;
  void write_cells(std::size_t part, std::span<const CellWrite> writes, const CellSource& source,
                   std::span<std::byte> bytes);
  void list_sequences(const MemoryBatch& batch);
  bool is_waiting() const;
  bool settle();
  void decide_turns();
  bool turn_keys(const std::function<bool()>& abort);

  std::size_t n_sequences_;
  bool can_shift_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<const AttentionLayout*> layout_list_;

  std::vector<std::int32_t> batch_sequences_;  // of the batch that is prepared, each once
  std::vector<std::uint32_t> order_;           // batch indices in the order of computation
  std::vector<std::size_t> ends_;              // of the micro-batches in order_
  std::size_t n_committed_ = 0;                // of the prepared micro-batches

  // What the last commit appended, for step_back.
  struct Appended {
    std::int32_t place;
    std::uint32_t sequences_end;
  };
  std::vector<Appended> appended_;
  std::vector<std::int32_t> appended_sequences_;

  std::vector<CellMove> moves_;
};

}  // namespace quipu
