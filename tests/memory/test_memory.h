// A KvMemory over storages that hold a tag in place of keys and values: tests decode batches, and see for
// each sequence which cells it has and whether their numbers are the right ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "graph/ops/rope.h"
#include "memory/kv_memory.h"
#include "quipu/error.h"

namespace quipu::test {

class TagStorage final : public KvStorage {
 public:
  struct Content {
    std::int32_t tag = 0;
    std::int32_t turned = 0;  // by how much its key was, in all
  };

  explicit TagStorage(std::size_t n_pages) : cells_(n_pages * kPagePlaces) {}

  void copy_page(std::int32_t from, std::int32_t to) override {
    for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) at(to, slot) = at(from, slot);
  }
  void copy_cell(std::int32_t from_page, std::int32_t from_slot, std::int32_t to_page,
                 std::int32_t to_slot) override {
    at(to_page, to_slot) = at(from_page, from_slot);
  }
  KvShape shape() const override { return {}; }
  std::size_t cell_bytes() const override { return sizeof(Content); }
  void get_cell(std::int32_t page, std::int32_t slot, std::span<std::byte> bytes) const override {
    std::memcpy(bytes.data(), &cells_.at(static_cast<std::size_t>(page * kPagePlaces + slot)), bytes.size());
  }
  void set_cell(std::int32_t page, std::int32_t slot, std::span<const std::byte> bytes) override {
    std::memcpy(&at(page, slot), bytes.data(), bytes.size());
  }
  void rotate_keys(std::span<const CellShift> shifts, const KeyRotation&) override {
    if (n_failures > 0 && n_failures-- == 1) throw Error(ErrorCode::out_of_memory, "made to fail");
    ++n_rotations;
    for (const CellShift& shift : shifts) at(shift.page, shift.slot).turned += shift.delta;
  }
  void clear() override { std::fill(cells_.begin(), cells_.end(), Content{}); }
  std::size_t bytes() const override { return cells_.size() * sizeof(Content); }

  Content& at(std::int32_t page, std::int32_t slot) {
    return cells_.at(static_cast<std::size_t>(page * kPagePlaces + slot));
  }

  int n_rotations = 0;
  int n_failures = 0;  // the n-th rotation from now fails

 private:
  std::vector<Content> cells_;
};

struct Cell {
  std::int32_t place;
  std::int32_t position;
  std::int32_t tag;
  bool operator==(const Cell&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Cell& cell) {
  return out << "place " << cell.place << " position " << cell.position << " tag " << cell.tag;
}

struct TestToken {
  std::int32_t position;
  std::vector<std::int32_t> sequences;
};

/// Tokens of one sequence at positions [first, first + n).
inline std::vector<TestToken> run_of(std::int32_t sequence, std::int32_t first, std::int32_t n) {
  std::vector<TestToken> tokens;
  for (std::int32_t i = 0; i < n; ++i) tokens.push_back({first + i, {sequence}});
  return tokens;
}

class TestMemory {
 public:
  explicit TestMemory(const KvMemoryParams& params, const std::vector<std::uint32_t>& windows = {0}) {
    std::vector<KvPart> parts;
    for (const std::uint32_t window : windows) {
      KvPart part{.config = kv_part_config(params, window), .storages = {}};
      auto storage = std::make_unique<TagStorage>(part.config.n_pages);
      storages_.push_back(storage.get());
      part.storages.push_back(std::move(storage));
      part.rotations.push_back(KeyRotation{.frequencies = {1.0}, .style = RopeStyle::halves});
      parts.push_back(std::move(part));
    }
    memory_ = std::make_unique<KvMemory>(params, std::move(parts));
    n_ubatch_ = params.n_ubatch;
  }

  KvMemory& operator*() { return *memory_; }
  KvMemory* operator->() { return memory_.get(); }

  /// Decodes a batch and gives its tokens the next tags. False if there is no room. With `fail_at`, the
  /// micro-batch of that number fails and is taken back.
  bool decode(const std::vector<TestToken>& tokens, int fail_at = -1) {
    if (prepare(tokens) != PrepareResult::ready) return false;
    const MemoryBatch batch = this->batch();
    micro_batch_sizes.clear();
    for (std::size_t i = 0; i < memory_->n_micro_batches(); ++i) {
      const auto micro_batch = memory_->micro_batch(i);
      const std::vector<std::uint32_t> indices(micro_batch.begin(), micro_batch.end());
      memory_->commit(batch);
      for (std::size_t part = 0; part < storages_.size(); ++part) write(part, indices);
      next_tag += static_cast<std::int32_t>(indices.size());
      micro_batch_sizes.push_back(indices.size());
      if (static_cast<int>(i) == fail_at) {
        memory_->step_back();
        return true;
      }
    }
    return true;
  }

  PrepareResult prepare(const std::vector<TestToken>& tokens, const std::function<bool()>& abort = {}) {
    positions_.clear();
    sequences_.clear();
    offsets_ = {0};
    for (const TestToken& token : tokens) {
      positions_.push_back(token.position);
      sequences_.insert(sequences_.end(), token.sequences.begin(), token.sequences.end());
      offsets_.push_back(static_cast<std::uint32_t>(sequences_.size()));
    }
    return memory_->prepare(batch(), n_ubatch_, abort);
  }

  /// Cells of a sequence in the order of places.
  std::vector<Cell> cells(std::int32_t sequence, std::size_t part = 0) {
    std::vector<Cell> result;
    const PagedCells& cells = memory_->cells(part);
    const auto table = cells.page_table(sequence);
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i] < 0) continue;
      for (std::int32_t slot = 0; slot < kPagePlaces; ++slot) {
        const std::int32_t position =
            cells.cell_positions()[static_cast<std::size_t>(table[i]) * kPagePlaces +
                                   static_cast<std::size_t>(slot)];
        if (position < 0) continue;
        const auto place = static_cast<std::int32_t>(i) * kPagePlaces + slot;
        result.push_back({place, position, storages_[part]->at(cells.data_page(table[i]), slot).tag});
      }
    }
    return result;
  }

  std::vector<std::int32_t> positions(std::int32_t sequence, std::size_t part = 0) {
    std::vector<std::int32_t> result;
    for (const Cell& cell : cells(sequence, part)) result.push_back(cell.position);
    return result;
  }
  std::vector<std::int32_t> tags(std::int32_t sequence, std::size_t part = 0) {
    std::vector<std::int32_t> result;
    for (const Cell& cell : cells(sequence, part)) result.push_back(cell.tag);
    return result;
  }
  std::vector<std::int32_t> places(std::int32_t sequence, std::size_t part = 0) {
    std::vector<std::int32_t> result;
    for (const Cell& cell : cells(sequence, part)) result.push_back(cell.place);
    return result;
  }

  /// By how much the keys were turned, in the order of places.
  std::vector<std::int32_t> turns(std::int32_t sequence, std::size_t part = 0) {
    std::vector<std::int32_t> result;
    const PagedCells& cells = memory_->cells(part);
    for (const Cell& cell : this->cells(sequence, part)) {
      const std::int32_t page = cells.data_page(cells.page_of(sequence, cell.place));
      result.push_back(storages_[part]->at(page, cell.place % kPagePlaces).turned);
    }
    return result;
  }
  TagStorage& storage(std::size_t part = 0) { return *storages_[part]; }

  /// A state with its data.
  struct Saved {
    MemoryState state;
    std::vector<std::vector<TagStorage::Content>> data;  // by part and cell
  };
  Saved save(const StateScope& scope = {}) {
    Saved saved{memory_->describe(scope), {}};
    for (std::size_t part = 0; part < saved.state.parts.size(); ++part) {
      auto& data = saved.data.emplace_back();
      for (const MemoryState::Cell& cell : saved.state.parts[part].cells) {
        data.push_back(storages_[part]->at(cell.page, cell.slot));
      }
    }
    return saved;
  }
  void restore(const Saved& saved, const StateScope& scope = {}) {
    memory_->restore(saved.state, scope,
                     [&](std::size_t part, std::size_t, std::size_t cell, std::span<std::byte> bytes) {
                       std::memcpy(bytes.data(), &saved.data[part][cell], bytes.size());
                     });
  }

  std::int32_t next_tag = 1;
  std::vector<std::size_t> micro_batch_sizes;  // of the last batch

 private:
  // What a run does: every token's cell is written where the layout says.
  void write(std::size_t part, const std::vector<std::uint32_t>& micro_batch) {
    const AttentionLayout& layout = *memory_->layouts()[part];
    ASSERT_EQ(layout.tokens.size(), micro_batch.size());
    for (std::size_t i = 0; i < layout.tokens.size(); ++i) {
      const AttentionLayout::Token& token = layout.tokens[i];
      const auto table = layout.page_tables[static_cast<std::size_t>(token.sequence)];
      const auto entry = static_cast<std::size_t>(token.place / kPagePlaces);
      ASSERT_LT(entry, table.size());
      const std::int32_t page = table[entry];
      ASSERT_GE(page, 0);
      const std::int32_t slot = token.place % kPagePlaces;
      EXPECT_EQ(layout.cell_positions[static_cast<std::size_t>(page * kPagePlaces + slot)], token.position);
      storages_[part]->at(page, slot) = {next_tag + static_cast<std::int32_t>(i), 0};
    }
  }

  MemoryBatch batch() const { return {positions_, offsets_, sequences_}; }

  std::vector<TagStorage*> storages_;
  std::unique_ptr<KvMemory> memory_;
  std::size_t n_ubatch_ = 0;
  // The batch that is prepared.
  std::vector<std::int32_t> positions_, sequences_;
  std::vector<std::uint32_t> offsets_;
};

/// first, first + 1, ..., last - 1
inline std::vector<std::int32_t> count(std::int32_t first, std::int32_t last) {
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = first; i < last; ++i) numbers.push_back(i);
  return numbers;
}

inline std::vector<std::int32_t> operator+(std::vector<std::int32_t> a, const std::vector<std::int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace quipu::test
