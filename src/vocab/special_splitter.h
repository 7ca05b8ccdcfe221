// Finds special tokens that are written out in text. Longer ones win over shorter, then the lower id, then
// the earlier place: the rule that vocabularies of the field are used with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "quipu/types.h"
#include "vocab/attributes.h"

namespace quipu::vocab {

/// A stretch of text, or one token that stood in it.
struct Fragment {
  std::string_view text;
  Token token = kNoToken;
};

/// Which special tokens count.
enum class Recognize {
  all,
  user_defined,  ///< all but control and unknown ones
  untrusted,     ///< of these, none that the file has as a control token
};

class SpecialSplitter {
 public:
  struct Entry {
    std::string_view text;  ///< not empty; must outlive the splitter
    Token token = kNoToken;
    TokenAttributes attributes;
    bool reserved = false;  ///< not for untrusted text, whatever its attributes
  };
  explicit SpecialSplitter(std::vector<Entry> entries);

  /// The time does not depend on how many tokens there are. A token that would have a byte in `untrusted`
  /// (ascending, apart from each other) counts as in untrusted text.
  std::vector<Fragment> split(std::string_view text, Recognize recognize,
                              std::span<const ByteRange> untrusted = {}) const;

 private:
  struct Node {
    std::uint32_t first_child = 0;  // children are consecutive, sorted by byte
    std::uint16_t n_children = 0;
    std::uint8_t byte = 0;
    std::int32_t entry = -1;
  };
  struct Occurrence {
    std::int32_t entry;
    std::size_t place;
  };

  const Node* child(const Node& node, char byte) const;
  std::vector<Occurrence> find_all(std::string_view text, Recognize recognize,
                                   std::span<const ByteRange> untrusted) const;
  std::vector<Occurrence> choose(std::string_view text, std::vector<Occurrence> found,
                                 std::vector<bool>& taken) const;

  std::vector<Entry> entries_;  // by priority
  std::vector<Node> nodes_;     // a trie; node 0 is the root
};

}  // namespace quipu::vocab
