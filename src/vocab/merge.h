// Merging neighbours in the order of their rank, the leftmost first among equals: what SPM and BPE share.
// n parts take O(n log n), whatever they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace quipu::vocab {

/// A stretch of text that counts as one.
struct Part {
  std::uint32_t begin = 0;
  std::uint32_t length = 0;  ///< in bytes, not 0
  std::int32_t id = -1;      ///< whatever the vocabulary knows it by
};

/// What two neighbours become.
struct Merge {
  std::uint32_t rank = 0;  ///< lower goes first
  std::int32_t id = -1;    ///< -1: they don't merge
};

/// Merges the parts of one text; keeps its memory between texts. `find(const Part& left, const Part& right)`
/// gives the Merge of two neighbours. There may be as many parts as a std::uint32_t counts, less one.
class Merger {
 public:
  template <typename Find>
  void merge(std::vector<Part>& parts, const Find& find) {
    if (parts.size() <= kFew) {
      merge_few(parts, find);
    } else {
      merge_many(parts, find);
    }
  }

 private:
  // Up to this many, looking at every pair each time is faster than a heap.
  static constexpr std::size_t kFew = 24;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Link {  // to the neighbours that are left
    std::uint32_t previous;
    std::uint32_t next;
  };
  struct Candidate {
    std::uint64_t order;  // rank, then the left part's number
    std::uint32_t right;
    std::uint32_t length;  // of both together; another one now means that it is out of date
    std::int32_t id;
  };

  template <typename Find>
  static void merge_few(std::vector<Part>& parts, const Find& find) {
    std::array<Merge, kFew> merges;  // of part i with part i + 1
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) merges[i] = find(parts[i], parts[i + 1]);
    while (parts.size() > 1) {
      const std::size_t n_pairs = parts.size() - 1;
      std::size_t best = n_pairs;
      for (std::size_t i = 0; i < n_pairs; ++i) {
        if (merges[i].id >= 0 && (best == n_pairs || merges[i].rank < merges[best].rank)) best = i;
      }
      if (best == n_pairs) return;
      parts[best].length += parts[best + 1].length;
      parts[best].id = merges[best].id;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      std::copy(merges.begin() + best + 1, merges.begin() + n_pairs, merges.begin() + best);
      if (best > 0) merges[best - 1] = find(parts[best - 1], parts[best]);
      if (best + 1 < parts.size()) merges[best] = find(parts[best], parts[best + 1]);
    }
  }

  template <typename Find>
  void merge_many(std::vector<Part>& parts, const Find& find) {
    const auto later = [](const Candidate& a, const Candidate& b) { return a.order > b.order; };
    const auto consider = [&](std::uint32_t left, std::uint32_t right) {
      if (left == kNone || right == kNone) return false;
      const Merge merge = find(parts[left], parts[right]);
      if (merge.id < 0) return false;
      heap_.push_back({(std::uint64_t{merge.rank} << 32) | left, right,
                       parts[left].length + parts[right].length, merge.id});
      return true;
    };

    const auto n = static_cast<std::uint32_t>(parts.size());
    heap_.clear();
    links_.resize(n);
    for (std::uint32_t i = 0; i < n; ++i) links_[i] = {i == 0 ? kNone : i - 1, i + 1 == n ? kNone : i + 1};
    for (std::uint32_t i = 0; i + 1 < n; ++i) consider(i, i + 1);
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      const auto left = static_cast<std::uint32_t>(best.order);
      // A part of length 0 went into its left neighbour.
      if (parts[left].length == 0 || parts[best.right].length == 0) continue;
      if (parts[left].length + parts[best.right].length != best.length) continue;
      parts[left].length = best.length;
      parts[left].id = best.id;
      parts[best.right].length = 0;
      const std::uint32_t next = links_[best.right].next;
      links_[left].next = next;
      if (next != kNone) links_[next].previous = left;
      if (consider(links_[left].previous, left)) std::push_heap(heap_.begin(), heap_.end(), later);
      if (consider(left, next)) std::push_heap(heap_.begin(), heap_.end(), later);
    }
    std::erase_if(parts, [](const Part& part) { return part.length == 0; });
  }

  std::vector<Link> links_;
  std::vector<Candidate> heap_;
};

}  // namespace quipu::vocab
