// Strings by number and numbers by string: one arena for the bytes, one open-addressing table of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quipu::vocab {

class TextTable {
 public:
  static constexpr std::int32_t kNone = -1;

  TextTable() { offsets_.push_back(0); }

  /// Room for `n` findable strings, so that adding them does not move the table.
  void reserve(std::size_t n);
  /// Adds a string under the next number, without making it findable.
  std::int32_t append(std::string_view text);
  /// Makes a string findable unless an equal one is already; returns the number that find() gives from now
  /// on.
  std::int32_t publish(std::int32_t number);
  /// find(), or append() and publish().
  std::int32_t find_or_add(std::string_view text);

  std::int32_t find(std::string_view text) const;
  std::string_view operator[](std::int32_t number) const {
    const auto i = static_cast<std::size_t>(number);
    return std::string_view(arena_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  std::int32_t size() const { return static_cast<std::int32_t>(offsets_.size() - 1); }
  /// Bytes of the longest findable string.
  std::size_t max_length() const { return max_length_; }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t number = kNone;
  };

  void rebuild(std::size_t n_slots);
  std::size_t probe(std::string_view text, std::uint64_t hash) const;

  std::string arena_;
  std::vector<std::size_t> offsets_;  // string i is [offsets_[i], offsets_[i + 1]) of the arena
  std::vector<Slot> slots_;           // a power of two of them, at most half full
  std::size_t n_published_ = 0;
  std::size_t max_length_ = 0;
};

}  // namespace quipu::vocab
