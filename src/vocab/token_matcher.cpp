// The trie grows token by token; the links between its nodes are then made in the order of their length.
#include "vocab/token_matcher.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace quipu::vocab {

namespace {

std::uint64_t key_of(std::uint32_t node, char byte) {
  return (std::uint64_t{node} << 8) | static_cast<std::uint8_t>(byte);
}

}  // namespace

TokenMatcher::TokenMatcher(std::span<const Entry> entries) : nodes_(1) {
  std::size_t n_bytes = 0;
  for (const Entry& entry : entries) n_bytes += entry.text.size();
  if (n_bytes >= std::numeric_limits<std::uint32_t>::max() / 4) {
    fail(ErrorCode::bad_file, "tokens of {} bytes in all are too many", n_bytes);
  }
  edges_.resize(64);
  struct Origin {
    std::uint32_t parent;
    char byte;
  };
  std::vector<Origin> origins(1);
  for (const Entry& entry : entries) {
    std::uint32_t node = kRoot;
    for (std::size_t i = entry.text.size(); i-- > 0;) {
      std::uint32_t below = child(node, entry.text[i]);
      if (below == kRoot) {
        below = add_child(node, entry.text[i]);
        origins.push_back({node, entry.text[i]});
      }
      node = below;
    }
    if (node != kRoot) nodes_[node].token = entry.token;
  }

  std::vector<std::uint32_t> by_length(nodes_.size());
  for (std::uint32_t i = 0; i < by_length.size(); ++i) by_length[i] = i;
  std::ranges::stable_sort(by_length, {}, [&](std::uint32_t i) { return nodes_[i].length; });
  for (const std::uint32_t i : by_length) {
    if (i == kRoot) continue;
    Node& node = nodes_[i];
    if (node.length > 1) node.shorter = next(nodes_[origins[i].parent].shorter, origins[i].byte);
    node.match = node.token != kNoToken ? i : nodes_[node.shorter].match;
  }
}

std::size_t TokenMatcher::place_of(std::uint64_t key) const {
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::size_t i = static_cast<std::size_t>(mixed ^ (mixed >> 32)) & (edges_.size() - 1);
  while (edges_[i].key != key && edges_[i].key != kNoEdge) i = (i + 1) & (edges_.size() - 1);
  return i;
}

std::uint32_t TokenMatcher::child(std::uint32_t node, char byte) const {
  return edges_[place_of(key_of(node, byte))].node;
}

std::uint32_t TokenMatcher::add_child(std::uint32_t node, char byte) {
  if (2 * (nodes_.size() + 1) > edges_.size()) {
    const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(2 * edges_.size()));
    for (const Edge& edge : old) {
      if (edge.key != kNoEdge) edges_[place_of(edge.key)] = edge;
    }
  }
  const auto added = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.length = nodes_[node].length + 1});
  const std::uint64_t key = key_of(node, byte);
  edges_[place_of(key)] = {key, added};
  return added;
}

std::uint32_t TokenMatcher::next(std::uint32_t node, char byte) const {
  while (true) {
    const std::uint32_t below = child(node, byte);
    if (below != kRoot || node == kRoot) return below;
    node = nodes_[node].shorter;
  }
}

void TokenMatcher::scan(std::string_view text, States& states) const {
  states.resize(text.size());
  std::uint32_t node = kRoot;
  for (std::size_t i = text.size(); i-- > 0;) {
    node = next(node, text[i]);
    states[i] = node;
  }
}

}  // namespace quipu::vocab
