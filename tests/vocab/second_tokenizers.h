// Second implementations, as plain as can be, to compare the fast ones with. Texts are valid UTF-8.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/types.h"

namespace quipu::second {

using Tokens = std::map<std::string, Token, std::less<>>;

inline std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

/// The longest token from the left.
inline std::vector<Token> longest_first(const Tokens& tokens, std::string_view text) {
  std::vector<Token> result;
  while (!text.empty()) {
    std::size_t length = text.size();
    while (length > 0 && !tokens.contains(text.substr(0, length))) --length;
    if (length == 0) return {};
    result.push_back(tokens.find(text.substr(0, length))->second);
    text.remove_prefix(length);
  }
  return result;
}

/// All ways to split a text into tokens and single characters (kNoToken), from the left.
struct Split {
  std::vector<std::pair<Token, std::string>> parts;
  std::vector<std::size_t> begins;  // of the parts
};
inline void all_splits(const Tokens& tokens, std::string_view text, std::size_t at, Split& current,
                       std::vector<Split>& splits) {
  if (at == text.size()) {
    splits.push_back(current);
    return;
  }
  const std::size_t character = character_length(text.substr(at));
  for (std::size_t length = 1; at + length <= text.size(); ++length) {
    const std::string_view part = text.substr(at, length);
    const auto token = tokens.find(part);
    if (token == tokens.end() && length != character) continue;
    current.parts.emplace_back(token == tokens.end() ? kNoToken : token->second, part);
    current.begins.push_back(at);
    all_splits(tokens, text, at + length, current, splits);
    current.parts.pop_back();
    current.begins.pop_back();
  }
}
inline std::vector<Split> all_splits(const Tokens& tokens, std::string_view text) {
  std::vector<Split> splits;
  Split current;
  all_splits(tokens, text, 0, current, splits);
  return splits;
}

}  // namespace quipu::second
