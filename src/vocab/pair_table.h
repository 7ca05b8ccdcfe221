// Which two symbols merge, at which rank, into what: an open-addressing hash table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vocab/merge.h"

namespace quipu::vocab {

class PairTable {
 public:
  /// Room for `n` pairs; to be called once, before add().
  void reserve(std::size_t n) { slots_.assign(std::bit_ceil(2 * n + 2), Slot{}); }

  /// The first merge of a pair stays.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    std::size_t i = place_of(key);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i].key == kEmpty) slots_[i] = {key, merge};
  }

  /// Symbols are not negative. A merge with id -1 where there is none.
  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t i = place_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].merge;
      if (slots_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) | static_cast<std::uint32_t>(right);
  }
  std::size_t place_of(std::uint64_t key) const {
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
    return static_cast<std::size_t>(mixed ^ (mixed >> 32)) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half full
};

}  // namespace quipu::vocab
