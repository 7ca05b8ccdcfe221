// Values and names for people: escaping, shortening, and the one-line form of a metadata value.
#include "gguf/display.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "gguf/metadata.h"

namespace quipu::gguf {
namespace {

/// Bytes of the well-formed, visible UTF-8 character that `text` begins with; 0 if there is none.
std::size_t visible_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  char32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  const bool control = code < 0xa0;
  const bool breaks_or_reorders_lines =
      (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || breaks_or_reorders_lines ? 0 : length;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
  }
}

template <typename T>
std::string element_to_display(const T& element, std::size_t max_chars) {
  if constexpr (std::is_same_v<T, std::string>) {
    return '"' + printable(element, max_chars, '"') + '"';
  } else if constexpr (std::is_same_v<T, Bool>) {
    return element.value ? "true" : "false";
  } else if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) {
    return fmt::format("{}", static_cast<int>(element));  // a number, not a character
  } else {
    return fmt::format("{}", element);
  }
}

std::string array_to_display(const Array& array, std::size_t max_chars) {
  std::string out = fmt::format("{}[{}] [", name(element_type_of(array)), size(array));
  std::visit(
      [&](const auto& elements) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
          const std::string next = element_to_display(elements[i], max_chars);
          if (i > 0) out += ", ";
          if (i > 0 && out.size() + next.size() > max_chars) {
            out += "...";
            break;
          }
          out += next;
        }
      },
      array);
  return out + "]";
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_chars, char quote) {
  std::string out;
  for (std::size_t chars = 0; !text.empty(); ++chars) {
    if (chars == max_chars) return out + "...";
    const std::size_t length = visible_character(text);
    if (length == 0) {
      append_escaped(out, text.front());
    } else {
      if (text.front() == '\\' || text.front() == quote) out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string to_display(const Value& value, std::size_t max_chars) {
  return std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Array>) {
          return array_to_display(held, max_chars);
        } else {
          return element_to_display(held, max_chars);
        }
      },
      value);
}

}  // namespace quipu::gguf
