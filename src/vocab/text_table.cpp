// The hash table of TextTable: linear probing, a part of the hash kept beside the number to spare
// comparisons.
#include "vocab/text_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quipu::vocab {

namespace {

std::uint64_t hash_of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}
std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

std::int32_t TextTable::append(std::string_view text) {
  QUIPU_CHECK(offsets_.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  arena_.append(text);
  offsets_.push_back(arena_.size());
  return size() - 1;
}

std::int32_t TextTable::publish(std::int32_t number) {
  if (2 * (n_published_ + 1) > slots_.size()) rebuild(std::max<std::size_t>(64, 2 * slots_.size()));
  const std::string_view text = (*this)[number];
  const std::uint64_t hash = hash_of(text);
  Slot& slot = slots_[probe(text, hash)];
  if (slot.number != kNone) return slot.number;
  slot = {tag_of(hash), number};
  ++n_published_;
  max_length_ = std::max(max_length_, text.size());
  return number;
}

std::int32_t TextTable::find_or_add(std::string_view text) {
  const std::int32_t found = find(text);
  return found != kNone ? found : publish(append(text));
}

std::int32_t TextTable::find(std::string_view text) const {
  if (text.size() > max_length_ || slots_.empty()) return kNone;
  return slots_[probe(text, hash_of(text))].number;
}

std::size_t TextTable::probe(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = static_cast<std::size_t>(hash) & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number == kNone) return i;
    if (slot.hash == tag_of(hash) && (*this)[slot.number] == text) return i;
  }
}

void TextTable::reserve(std::size_t n) {
  const std::size_t n_slots = std::bit_ceil(2 * n + 2);
  if (n_slots > slots_.size()) rebuild(n_slots);
}

void TextTable::rebuild(std::size_t n_slots) {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(n_slots, Slot{});
  for (const Slot& slot : old) {
    if (slot.number == kNone) continue;
    const std::string_view text = (*this)[slot.number];
    slots_[probe(text, hash_of(text))] = slot;
  }
}

}  // namespace quipu::vocab
