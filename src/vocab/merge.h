// Merging neighbours in the order of their rank, the leftmost first among equals: what SPM and BPE share.
// n symbols take O(n log n), whatever they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace quipu::vocab {

inline constexpr std::uint32_t kNoSymbol = std::numeric_limits<std::uint32_t>::max();

/// A stretch of text that counts as one, in a doubly linked list.
struct Symbol {
  std::uint32_t previous = kNoSymbol;
  std::uint32_t next = kNoSymbol;
  std::uint32_t begin = 0;
  std::uint32_t length = 0;  ///< in bytes; 0 for one that went into its left neighbour
  std::int32_t id = -1;      ///< whatever the vocabulary knows it by
};

/// What two neighbours become.
struct Merge {
  std::uint32_t rank = 0;  ///< lower goes first
  std::int32_t id = -1;    ///< -1: they don't merge
};

/// The memory that merging needs, kept between calls.
struct MergeScratch {
  struct Candidate {
    std::uint64_t order;  // rank, then the left symbol's number
    std::uint32_t right;
    std::uint32_t length;  // of both together; another one now means that it is out of date
    std::int32_t id;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

/// Merges scratch.symbols until nothing merges any more; read the result from symbol 0 along `next`.
/// `find(const Symbol& left, const Symbol& right)` gives their Merge.
template <typename Find>
void merge_symbols(MergeScratch& scratch, const Find& find) {
  auto& [symbols, heap] = scratch;
  const auto later = [](const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
    return a.order > b.order;
  };
  const auto consider = [&](std::uint32_t left, std::uint32_t right) {
    if (left == kNoSymbol || right == kNoSymbol) return false;
    const Merge merge = find(symbols[left], symbols[right]);
    if (merge.id < 0) return false;
    heap.push_back({(std::uint64_t{merge.rank} << 32) | left, right,
                    symbols[left].length + symbols[right].length, merge.id});
    return true;
  };

  heap.clear();
  for (std::uint32_t i = 0; i + 1 < symbols.size(); ++i) consider(i, i + 1);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const MergeScratch::Candidate best = heap.back();
    heap.pop_back();
    const auto left_number = static_cast<std::uint32_t>(best.order);
    Symbol& left = symbols[left_number];
    Symbol& right = symbols[best.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != best.length) continue;
    left.length = best.length;
    left.id = best.id;
    left.next = right.next;
    right.length = 0;
    if (left.next != kNoSymbol) symbols[left.next].previous = left_number;
    if (consider(left.previous, left_number)) std::push_heap(heap.begin(), heap.end(), later);
    if (consider(left_number, left.next)) std::push_heap(heap.begin(), heap.end(), later);
  }
}

}  // namespace quipu::vocab
