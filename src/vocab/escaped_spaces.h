// U+2581 in place of a space: how most vocabularies spell one.
#pragma once

#include <string>
#include <string_view>

namespace quipu::vocab {

inline constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

/// `text` behind `prefix`, with every space escaped.
inline std::string escape_spaces(std::string_view text, std::string_view prefix = {}) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2 + prefix.size());
  escaped.append(prefix);
  for (const char c : text) {
    if (c == ' ') {
      escaped.append(kEscapedSpace);
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

inline std::string unescape_spaces(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at).starts_with(kEscapedSpace);
    bytes.push_back(space ? ' ' : text[at]);
    at += space ? kEscapedSpace.size() : 1;
  }
  return bytes;
}

}  // namespace quipu::vocab
