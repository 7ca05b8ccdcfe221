// Arrays of numbers whose changes can be taken back. All bookkeeping of the memory lives in them, so that an
// operation that turns out not to fit, or a batch that was only tried, leaves no trace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace quipu {

class JournaledArray;

/// Remembers what numbers were before they were set. Keeps its capacity, so steady use does not allocate.
class Journal {
 public:
  /// Room for the changes of ordinary batches from the start.
  Journal() { entries_.reserve(4096); }

  void remember(JournaledArray& array, std::size_t index, std::int32_t value) {
    entries_.push_back({&array, index, value});
  }
  /// Takes back everything since the last undo() or forget(), latest change first.
  void undo() noexcept;
  /// Lets the changes stand.
  void forget() noexcept { entries_.clear(); }

 private:
  struct Entry {
    JournaledArray* array;
    std::size_t index;
    std::int32_t value;
  };
  std::vector<Entry> entries_;
};

/// Cannot move: the journal points to it.
class JournaledArray {
 public:
  JournaledArray(Journal& journal, std::size_t size, std::int32_t value)
      : journal_(&journal), values_(size, value) {}
  JournaledArray(const JournaledArray&) = delete;
  JournaledArray& operator=(const JournaledArray&) = delete;

  std::int32_t operator[](std::size_t index) const { return values_[index]; }
  std::size_t size() const { return values_.size(); }
  const std::int32_t* data() const { return values_.data(); }
  const std::vector<std::int32_t>& values() const { return values_; }

  void set(std::size_t index, std::int32_t value) {
    journal_->remember(*this, index, values_[index]);  // first, as this may throw
    values_[index] = value;
  }
  /// Growing up to this size will not allocate.
  void reserve(std::size_t size) { values_.reserve(size); }
  /// At least `size` long. Not taken back: the new entries hold `value`, which means nothing to anyone.
  void grow(std::size_t size, std::int32_t value) {
    if (size > values_.size()) values_.resize(size, value);
  }

  // Starting anew, which cannot be taken back.
  void reset(std::int32_t value) { std::fill(values_.begin(), values_.end(), value); }
  /// n - 1, ..., 1, 0
  void count_down() { std::iota(values_.rbegin(), values_.rend(), 0); }

 private:
  friend class Journal;
  Journal* journal_;
  std::vector<std::int32_t> values_;
};

inline void Journal::undo() noexcept {
  for (std::size_t i = entries_.size(); i-- > 0;) {
    const Entry& entry = entries_[i];
    entry.array->values_[entry.index] = entry.value;
  }
  entries_.clear();
}

}  // namespace quipu
