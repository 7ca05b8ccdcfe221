// Writes a Unigram normalizer (characters_map.h): a double-array trie, placed by trying every place.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace quipu {

class CharsmapBuilder {
 public:
  explicit CharsmapBuilder(const std::map<std::string, std::string>& map) {
    std::vector<Key> keys;
    for (const auto& [from, to] : map) {
      keys.push_back({from, static_cast<std::uint32_t>(replacements_.size())});
      replacements_.append(to).push_back('\0');
    }
    used_.insert(0);
    place(0, keys, 0);
  }

  std::string blob() const {
    const std::uint32_t n_units = (units_.rbegin()->first / 256 + 1) * 256;
    std::string result;
    append(result, 4 * n_units);
    for (std::uint32_t i = 0; i < n_units; ++i) {
      const auto unit = units_.find(i);
      append(result, unit == units_.end() ? 0xFFu : unit->second);
    }
    return result + replacements_;
  }

 private:
  struct Key {
    std::string text;
    std::uint32_t value;
  };

  static void append(std::string& out, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  }

  void place(std::uint32_t unit, const std::vector<Key>& keys, std::size_t depth) {
    std::map<std::uint8_t, std::vector<Key>> children;  // 0: the value of a key that ends here
    for (const Key& key : keys) {
      children[depth < key.text.size() ? static_cast<std::uint8_t>(key.text[depth]) : std::uint8_t{0}]
          .push_back(key);
    }
    std::uint32_t base = 1;
    const auto is_free = [&] {
      for (const auto& child : children) {
        if (used_.contains(base ^ child.first)) return false;
      }
      return !bases_.contains(base);
    };
    while (!is_free()) ++base;
    bases_.insert(base);
    for (const auto& child : children) used_.insert(base ^ child.first);
    units_[unit] |= (unit ^ base) << 10 | (children.contains(0) ? 1u << 8 : 0u);
    for (const auto& [byte, below] : children) {
      if (byte == 0) {
        units_[base ^ byte] = 0x80000000u | below[0].value;
      } else {
        units_[base ^ byte] = byte;
        place(base ^ byte, below, depth + 1);
      }
    }
  }

  std::map<std::uint32_t, std::uint32_t> units_;
  std::set<std::uint32_t> used_;
  std::set<std::uint32_t> bases_;
  std::string replacements_;
};

inline std::string charsmap_of(const std::map<std::string, std::string>& map) {
  return CharsmapBuilder(map).blob();
}

}  // namespace quipu
