// A hash table from names to places in a list that is kept elsewhere. Costs 8 to 16 bytes a name, whatever
// its length, and is seeded at random, so that no file can be made whose names all collide. Order is never
// visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace quipu::gguf {

class NameIndex {
 public:
  static constexpr std::size_t kMaxNames = 0x7fffffff;

  NameIndex();

  std::size_t size() const { return n_names_; }
  /// Room for this many names without growing on the way.
  void reserve(std::size_t n_names);

  /// `name_at(place)` gives the name at a place of the list.
  template <typename NameAt>
  std::optional<std::size_t> find(std::string_view name, const NameAt& name_at) const {
    if (slots_.empty()) return std::nullopt;
    for (std::size_t slot = hash(name) & mask();; slot = (slot + 1) & mask()) {
      if (slots_[slot] == 0) return std::nullopt;
      const std::size_t place = slots_[slot] - 1;
      if (name_at(place) == name) return place;
    }
  }

  /// Makes sure that the next add() allocates nothing.
  template <typename NameAt>
  void make_room(const NameAt& name_at) {
    if ((n_names_ + 1) * 2 <= slots_.size()) return;
    resize(2 * (n_names_ + 1));
    for (std::size_t place = 0; place < n_names_; ++place) enter(hash(name_at(place)), place);
  }

  /// Enters the name at place size() of the list; it must not be there yet. `name_at` knows that place
  /// already.
  template <typename NameAt>
  void add(const NameAt& name_at) {
    make_room(name_at);
    enter(hash(name_at(n_names_)), n_names_);
    ++n_names_;
  }

 private:
  std::uint64_t hash(std::string_view name) const;
  std::size_t mask() const { return slots_.size() - 1; }
  void resize(std::size_t least_slots);
  void enter(std::uint64_t hash, std::size_t place);

  std::uint64_t seed_;
  std::size_t n_names_ = 0;
  std::vector<std::uint32_t> slots_;  // a power of two of them; place + 1, or 0 for a free one
};

}  // namespace quipu::gguf
