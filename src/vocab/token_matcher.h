// Finds which tokens begin at each place of a text: an Aho-Corasick automaton over the reversed texts
// (Aho and Corasick 1975), run from the end of the text to its beginning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/types.h"

namespace quipu::vocab {

/// Takes time in proportion to the text and to the tokens found, whatever the tokens are.
class TokenMatcher {
 public:
  struct Entry {
    std::string_view text;  ///< empty ones are left out; need not outlive the matcher
    Token token = kNoToken;
  };
  /// Of equal texts the last counts.
  explicit TokenMatcher(std::span<const Entry> entries);

  /// What is known of each place of a text.
  using States = std::vector<std::uint32_t>;
  void scan(std::string_view text, States& states) const;

  /// Calls `visit(token, length)` for the tokens that begin at a place of this state, longest first.
  template <typename Visit>
  void visit(std::uint32_t state, const Visit& visit) const {
    for (std::uint32_t node = nodes_[state].match; node != kRoot; node = nodes_[nodes_[node].shorter].match) {
      visit(nodes_[node].token, std::size_t{nodes_[node].length});
    }
  }
  /// The longest of them; length 0 if there is none.
  std::pair<Token, std::size_t> longest(std::uint32_t state) const {
    const Node& node = nodes_[nodes_[state].match];
    return {node.token, node.length};
  }

 private:
  static constexpr std::uint32_t kRoot = 0;
  struct Node {
    std::uint32_t shorter = kRoot;  // the longest other node whose text ends this one's
    std::uint32_t match = kRoot;    // this node or the next along `shorter` that is a token
    std::uint32_t length = 0;
    Token token = kNoToken;
  };
  struct Edge {
    std::uint64_t key = kNoEdge;
    std::uint32_t node = kRoot;
  };
  static constexpr std::uint64_t kNoEdge = ~std::uint64_t{0};

  std::size_t place_of(std::uint64_t key) const;
  std::uint32_t child(std::uint32_t node, char byte) const;  // kRoot if there is none
  std::uint32_t add_child(std::uint32_t node, char byte);
  std::uint32_t next(std::uint32_t node, char byte) const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;  // open addressing, at most half full
};

}  // namespace quipu::vocab
