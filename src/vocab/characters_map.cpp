// A unit of the trie: bits 0-7 and 31 are the label, bit 8 says that a value hangs below, bits 10-30 with bit
// 9 as a shift by 8 are the offset, by exclusive or, to the children. A unit that is a value has bit 31 set.
#include "vocab/characters_map.h"

#include <algorithm>

#include "base/error.h"

namespace quipu::vocab {

namespace {

constexpr const char* kKey = "tokenizer.ggml.precompiled_charsmap";
// Keys of published maps have at most a few dozen bytes. A trie that goes round in circles ends here.
constexpr std::size_t kMaxKeyLength = 1024;

std::uint32_t load_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & (0x80000000u | 0xFFu);
}
bool has_value(std::uint32_t unit) {
  return (unit & (1u << 8)) != 0;
}

}  // namespace

CharactersMap::CharactersMap(std::string_view blob, std::string_view origin) {
  if (blob.size() < 4) fail(ErrorCode::bad_file, "{}: key '{}' has {} bytes", origin, kKey, blob.size());
  const std::size_t trie_size = load_u32(blob);
  blob.remove_prefix(4);
  if (trie_size >= blob.size() || trie_size % 4 != 0) {
    fail(ErrorCode::bad_file, "{}: key '{}': a table of {} bytes does not fit into {}", origin, kKey,
         trie_size, blob.size());
  }
  if (blob.back() != '\0') {
    fail(ErrorCode::bad_file, "{}: key '{}': the last replacement has no end", origin, kKey);
  }
  units_.reserve(trie_size / 4);
  for (std::size_t at = 0; at < trie_size; at += 4) units_.push_back(load_u32(blob.substr(at, 4)));
  replacements_.assign(blob.substr(trie_size));
}

CharactersMap::Replacement CharactersMap::find(std::string_view text) const {
  Replacement best;
  if (units_.empty()) return best;
  std::uint32_t place = offset_of(units_[0]);
  const std::size_t limit = std::min(text.size(), kMaxKeyLength);
  for (std::size_t i = 0; i < limit && text[i] != '\0'; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    place ^= byte;
    if (place >= units_.size() || label_of(units_[place]) != byte) break;
    const std::uint32_t unit = units_[place];
    place ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (place >= units_.size()) break;
    const std::size_t start = units_[place] & 0x7FFFFFFFu;
    if (start >= replacements_.size()) break;
    best = {i + 1, std::string_view(replacements_.c_str() + start)};
  }
  return best;
}

}  // namespace quipu::vocab
