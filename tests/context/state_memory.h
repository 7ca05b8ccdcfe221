// A memory with storages of the real device, filled with numbers that mean nothing: for tests of saved
// states.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backend/device.h"
#include "context/state/state.h"
#include "graph/ops/rope.h"
#include "memory/kv_memory.h"
#include "quant/quant.h"
#include "quipu/error.h"

namespace quipu::test {

struct StateSetup {
  std::size_t n_sequences = 3;
  std::size_t n_cells = 256;
  bool unified = true;
  std::uint32_t window = 0;  ///< of a second part; 0: there is none
  ElementType type_k = ElementType::f16;
  ElementType type_v = ElementType::f16;
};

class StateMemory {
 public:
  explicit StateMemory(const StateSetup& setup = {}) {
    const KvMemoryParams params{
        .n_sequences = setup.n_sequences, .n_cells = setup.n_cells, .unified = setup.unified, .n_ubatch = 32};
    std::vector<KvPart> parts;
    for (const std::uint32_t window : {0U, setup.window}) {
      if (window == 0 && !parts.empty()) continue;
      KvPart part{.config = kv_part_config(params, window), .storages = {}};
      for (int layer = 0; layer < 2; ++layer) {
        part.storages.push_back(
            device().create_kv({setup.type_k, setup.type_v, 2, 32, 32}, part.config.n_pages));
        part.rotations.push_back(KeyRotation{.frequencies = {0.5, 0.25}, .style = RopeStyle::halves});
      }
      parts.push_back(std::move(part));
    }
    memory_ = std::make_unique<KvMemory>(params, std::move(parts));
    access = {.memory = memory_.get(), .facts = {{"model", "a model of nothing"}}};
  }

  KvMemory* operator->() { return memory_.get(); }

  /// Tokens that follow each other, of several sequences at once. False without room.
  bool decode(const std::vector<std::int32_t>& sequences, std::int32_t n) {
    std::vector<std::int32_t> positions, all;
    std::vector<std::uint32_t> offsets{0};
    const std::int32_t first = memory_->max_position(sequences[0]) + 1;
    for (std::int32_t i = 0; i < n; ++i) {
      positions.push_back(first + i);
      all.insert(all.end(), sequences.begin(), sequences.end());
      offsets.push_back(static_cast<std::uint32_t>(all.size()));
    }
    const MemoryBatch batch{positions, offsets, all};
    if (memory_->prepare(batch, 32) != PrepareResult::ready) return false;
    for (std::size_t i = 0; i < memory_->n_micro_batches(); ++i) {
      memory_->commit(batch);
      for (std::size_t part = 0; part < memory_->n_parts(); ++part) fill(part);
    }
    return true;
  }

  /// All that a sequence has: by part and place, position, pending shift and bytes of each layer.
  using Content = std::map<std::tuple<std::size_t, std::int32_t>, std::vector<std::byte>>;
  Content content(std::int32_t sequence) {
    Content result;
    const MemoryState state = memory_->describe({.sequence = sequence});
    for (std::size_t part = 0; part < state.parts.size(); ++part) {
      for (const auto& saved : state.parts[part].sequences) {
        for (const auto& placed : saved.cells) {
          const auto& cell = state.parts[part].cells[placed.cell];
          auto& bytes = result[{part, placed.place}];
          for (const std::int32_t number : {cell.position, cell.shift}) {
            const auto raw = std::as_bytes(std::span(&number, 1));
            bytes.insert(bytes.end(), raw.begin(), raw.end());
          }
          for (const auto& storage : memory_->storages(part)) {
            std::vector<std::byte> row(storage->cell_bytes());
            storage->get_cell(cell.page, cell.slot, row);
            bytes.insert(bytes.end(), row.begin(), row.end());
          }
        }
      }
    }
    return result;
  }
  std::vector<Content> contents() {
    std::vector<Content> all;
    for (std::size_t s = 0; s < memory_->cells(0).config().n_sequences; ++s) {
      all.push_back(content(static_cast<std::int32_t>(s)));
    }
    return all;
  }

  std::vector<std::byte> save(const StateScope& scope = {}, const std::vector<Token>& tokens = {}) {
    std::vector<std::byte> bytes(state_bytes(access, scope, tokens.size()));
    EXPECT_EQ(save_state(access, scope, tokens, bytes), bytes.size());
    return bytes;
  }
  /// The error's message; empty without one.
  std::string load(std::span<const std::byte> bytes, std::optional<std::int32_t> sequence = {}) {
    try {
      load_state(access, sequence, bytes);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  StateAccess access;

 private:
  static Device& device() {
    static const std::unique_ptr<Device> cpu = create_cpu_device();
    return *cpu;
  }

  void fill(std::size_t part) {
    const AttentionLayout& layout = *memory_->layouts()[part];
    for (const AttentionLayout::Token& token : layout.tokens) {
      const std::int32_t page = layout.page_tables[static_cast<std::size_t>(token.sequence)]
                                                  [static_cast<std::size_t>(token.place / kPagePlaces)];
      for (const auto& storage : memory_->storages(part)) {
        const KvShape shape = storage->shape();
        std::vector<float> keys(shape.n_kv_heads * shape.k_dim), values(shape.n_kv_heads * shape.v_dim);
        for (float& x : keys) x = std::sin(static_cast<float>(++counter_));
        for (float& x : values) x = std::cos(static_cast<float>(++counter_));
        std::vector<std::byte> bytes(storage->cell_bytes());
        const std::size_t key_bytes = row_bytes(shape.k_type, keys.size());
        encode_row(shape.k_type, keys, std::span(bytes).first(key_bytes));
        encode_row(shape.v_type, values, std::span(bytes).subspan(key_bytes));
        storage->set_cell(page, token.place % kPagePlaces, bytes);
      }
    }
  }

  std::unique_ptr<KvMemory> memory_;
  std::int32_t counter_ = 0;
};

/// Two sequences that share their beginning, with a hole and a place that was moved.
inline void fill(StateMemory& memory) {
  memory.decode({0}, 40);
  memory->copy(0, 1, -1, -1);
  memory.decode({0}, 21);
  memory.decode({1}, 5);
  memory->remove(1, 3, 7);
  memory->add(0, 50, -1, 9);
}

}  // namespace quipu::test
