// The parts of NameIndex that do not depend on where the names are kept.
#include "gguf/name_index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <random>

#include "base/error.h"

namespace quipu::gguf {

NameIndex::NameIndex() {
  std::random_device device;
  seed_ = (std::uint64_t{device()} << 32) | device();
}

void NameIndex::reserve(std::size_t n_names) {
  QUIPU_CHECK(n_names_ == 0 && n_names <= kMaxNames);
  if (n_names > 0) resize(2 * n_names);
}

std::uint64_t NameIndex::hash(std::string_view name) const {
  return XXH3_64bits_withSeed(name.data(), name.size(), seed_);
}

void NameIndex::resize(std::size_t least_slots) {
  QUIPU_CHECK(least_slots / 2 <= kMaxNames);
  slots_ = std::vector<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(least_slots, 16)), 0);
}

void NameIndex::enter(std::uint64_t hash, std::size_t place) {
  std::size_t slot = hash & mask();
  while (slots_[slot] != 0) slot = (slot + 1) & mask();
  slots_[slot] = static_cast<std::uint32_t>(place + 1);
}

}  // namespace quipu::gguf
