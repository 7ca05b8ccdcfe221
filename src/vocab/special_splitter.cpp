// One pass over the text with a trie collects every occurrence; then they are granted by priority. A granted
// occurrence is never shorter than a later candidate, so a candidate overlaps one if and only if its first or
// last byte is taken.
#include "vocab/special_splitter.h"

#include <algorithm>
#include <map>

namespace quipu::vocab {

namespace {

/// Whether [begin, end) has a byte of the ranges.
bool overlaps(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end) {
  const auto next = std::ranges::upper_bound(ranges, begin, {}, &ByteRange::end);
  return next != ranges.end() && next->begin < end;
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

SpecialSplitter::SpecialSplitter(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.text.size() > b.text.size(); });
  nodes_.emplace_back();
  // A list of tasks instead of recursion: a long token must not cost stack.
  struct Task {
    std::uint32_t node;
    std::size_t depth;
    std::vector<std::int32_t> entries;
  };
  std::vector<Task> tasks(1);
  for (std::size_t i = 0; i < entries_.size(); ++i) tasks[0].entries.push_back(static_cast<std::int32_t>(i));
  while (!tasks.empty()) {
    const Task task = std::move(tasks.back());
    tasks.pop_back();
    std::map<std::uint8_t, std::vector<std::int32_t>> by_byte;
    for (const std::int32_t entry : task.entries) {
      const std::string_view text = entries_[static_cast<std::size_t>(entry)].text;
      if (text.size() == task.depth) {
        if (nodes_[task.node].entry < 0) nodes_[task.node].entry = entry;
      } else {
        by_byte[static_cast<std::uint8_t>(text[task.depth])].push_back(entry);
      }
    }
    nodes_[task.node].first_child = static_cast<std::uint32_t>(nodes_.size());
    nodes_[task.node].n_children = static_cast<std::uint16_t>(by_byte.size());
    for (auto& [byte, group] : by_byte) {
      tasks.push_back({static_cast<std::uint32_t>(nodes_.size()), task.depth + 1, std::move(group)});
      nodes_.push_back({.byte = byte});
    }
  }
}

const SpecialSplitter::Node* SpecialSplitter::child(const Node& node, char byte) const {
  const auto begin = nodes_.begin() + node.first_child;
  const auto end = begin + node.n_children;
  const auto wanted = static_cast<std::uint8_t>(byte);
  const auto found =
      std::lower_bound(begin, end, wanted, [](const Node& n, std::uint8_t b) { return n.byte < b; });
  return found != end && found->byte == wanted ? &*found : nullptr;
}

std::vector<SpecialSplitter::Occurrence> SpecialSplitter::find_all(
    std::string_view text, Recognize recognize, std::span<const ByteRange> untrusted) const {
  std::vector<Occurrence> found;
  if (entries_.empty()) return found;
  std::array<bool, 256> begins{};
  const Node& root = nodes_[0];
  for (std::uint32_t i = 0; i < root.n_children; ++i) begins[nodes_[root.first_child + i].byte] = true;
  for (std::size_t place = 0; place < text.size(); ++place) {
    if (!begins[static_cast<std::uint8_t>(text[place])]) continue;
    const Node* node = &root;
    for (std::size_t at = place; at < text.size(); ++at) {
      node = child(*node, text[at]);
      if (node == nullptr) break;
      if (node->entry < 0) continue;
      const Entry& entry = entries_[static_cast<std::size_t>(node->entry)];
      const bool on_request = entry.attributes.any(TokenAttribute::control | TokenAttribute::unknown);
      const Recognize here = overlaps(untrusted, place, at + 1) ? Recognize::untrusted : recognize;
      const bool hidden = on_request || (entry.reserved && here == Recognize::untrusted);
      if (here == Recognize::all || !hidden) found.push_back({node->entry, place});
    }
  }
  return found;
}

std::vector<SpecialSplitter::Occurrence> SpecialSplitter::choose(std::string_view text,
                                                                 std::vector<Occurrence> found,
                                                                 std::vector<bool>& taken) const {
  std::sort(found.begin(), found.end(), [](const Occurrence& a, const Occurrence& b) {
    return a.entry != b.entry ? a.entry < b.entry : a.place < b.place;
  });
  std::vector<Occurrence> chosen;
  for (const Occurrence& occurrence : found) {
    const Entry& entry = entries_[static_cast<std::size_t>(occurrence.entry)];
    std::size_t begin = occurrence.place;
    std::size_t end = begin + entry.text.size();
    if (taken[begin] || taken[end - 1]) continue;
    chosen.push_back(occurrence);
    if (entry.attributes.any(TokenAttribute::lstrip)) {
      while (begin > 0 && !taken[begin - 1] && is_space(text[begin - 1])) --begin;
    }
    if (entry.attributes.any(TokenAttribute::rstrip)) {
      while (end < text.size() && !taken[end] && is_space(text[end])) ++end;
    }
    std::fill(taken.begin() + static_cast<std::ptrdiff_t>(begin),
              taken.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Occurrence& a, const Occurrence& b) { return a.place < b.place; });
  return chosen;
}

std::vector<Fragment> SpecialSplitter::split(std::string_view text, Recognize recognize,
                                             std::span<const ByteRange> untrusted) const {
  std::vector<Fragment> fragments;
  if (text.empty()) return fragments;
  std::vector<Occurrence> found = find_all(text, recognize, untrusted);
  if (found.empty()) return {{text}};

  std::vector<bool> taken(text.size(), false);
  const std::vector<Occurrence> chosen = choose(text, std::move(found), taken);
  const auto add_text = [&](std::size_t begin, std::size_t end) {
    while (begin < end && taken[begin]) ++begin;  // white space that went with a token
    while (begin < end && taken[end - 1]) --end;
    if (begin < end) fragments.push_back({text.substr(begin, end - begin)});
  };
  std::size_t at = 0;
  for (const Occurrence& occurrence : chosen) {
    const Entry& entry = entries_[static_cast<std::size_t>(occurrence.entry)];
    add_text(at, occurrence.place);
    fragments.push_back({entry.text, entry.token});
    at = occurrence.place + entry.text.size();
  }
  add_text(at, text.size());
  return fragments;
}

}  // namespace quipu::vocab
