// What the context of an encoder-decoder model keeps of the batch that it encoded last: for each layer of the
// decoder the keys and values that cross-attention reads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "context/memory_setup.h"
#include "context/params.h"
#include "memory/memory.h"
#include "memory/state_cells.h"
#include "model/model.h"

namespace quipu {

class EncodedText final : public StateCells {
 public:
  /// `layout`: ordinal of the layout through which the decoder sees it.
  EncodedText(const LoadedModel& model, const ResolvedParams& params, std::size_t layout);

  /// The encoder's own memory, which lives for a batch.
  Memory& encoder_memory() { return *encoder_.memory; }
  std::span<const GraphOptions::LayerCache> encoder_caches() const { return encoder_.caches; }
  /// As the encoder writes them, and as the decoder reads them.
  std::span<const GraphOptions::LayerCache> written_caches() const { return written_; }
  std::span<const GraphOptions::LayerCache> read_caches() const { return read_; }

  /// The encoder is at work (nothing is encoded), or has done it.
  void begin();
  void finish();
  /// Is there text of this sequence?
  bool has(SequenceId sequence) const { return !page_tables_[static_cast<std::size_t>(sequence)].empty(); }
  /// Does the decoder see the very same numbers for both?
  bool is_same(SequenceId a, SequenceId b) const;

  /// Which text the tokens of a micro-batch of the decoder look at.
  const AttentionLayout* look(const MemoryBatch& batch, std::span<const std::uint32_t> micro_batch);
  std::size_t bytes() const;

  // State. A sequence's text is saved and restored with it.
  std::span<const std::unique_ptr<KvStorage>> storages() const override { return storages_; }
  MemoryState::Part describe(const StateScope& scope) const override;
  void prepare_restore(const MemoryState::Part& part, std::size_t number, const StateScope& scope) override;
  void commit_restore(const CellSource& source) override;

 private:
  using PageTables = std::vector<std::vector<std::int32_t>>;  // by sequence
  // What restoring will make of it.
  struct Restored {
    struct Write {
      std::int32_t page, slot;
      std::size_t cell;
    };
    std::size_t part = 0;
    PageTables page_tables = {};
    std::vector<std::int32_t> positions = {};
    std::vector<Write> writes = {};
    std::vector<std::byte> bytes = {};  // of a cell in any layer
  };

  void check(const MemoryState::Part& part, std::size_t number, const StateScope& scope) const;
  void place(Restored& restored, const MemoryState::Part& part, const MemoryState::Sequence& text,
             std::size_t sequence) const;

  MemorySetup encoder_;
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::vector<GraphOptions::LayerCache> written_, read_;
  PageTables page_tables_;               // empty: nothing is encoded
  std::vector<std::int32_t> positions_;  // of cells, [n_pages * 16]; -1: there is none
  std::optional<Restored> prepared_;
  AttentionLayout layout_;
};

}  // namespace quipu
