#include "chat/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>

#include "vocab/utf8.h"

namespace quipu::jinja {

namespace {

constexpr Char kEscapedByte = 0xDC00;  // plus the byte

bool is_escaped_byte(Char c) {
  return c >= kEscapedByte + 0x80 && c <= kEscapedByte + 0xFF;
}

utf8proc_category_t category(Char c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(plain(c)));
}

/// What upper case makes of characters that become several.
TextView long_upper(Char c) {
  switch (c) {
    case 0x00DF: return U"SS";
    case 0x0149: return U"\u02BCN";
    case 0x01F0: return U"J\u030C";
    case 0x0390: return U"\u0399\u0308\u0301";
    case 0x03B0: return U"\u03A5\u0308\u0301";
    case 0x0587: return U"\u0535\u0552";
    case 0xFB00: return U"FF";
    case 0xFB01: return U"FI";
    case 0xFB02: return U"FL";
    case 0xFB03: return U"FFI";
    case 0xFB04: return U"FFL";
    case 0xFB05: return U"ST";
    case 0xFB06: return U"ST";
    default: return {};
  }
}

void append_marked(Text& out, TextView text, Char mark) {
  for (const Char c : text) out.push_back(c | mark);
}

}  // namespace

Text from_utf8(std::string_view bytes, bool input) {
  const Char mark = input ? kInputMark : 0;
  Text text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    if (static_cast<unsigned char>(bytes[0]) < 0x80) {
      text.push_back(static_cast<Char>(bytes[0]) | mark);
      bytes.remove_prefix(1);
      continue;
    }
    const vocab::Utf8Prefix character = vocab::first_character(bytes);
    if (character.state == vocab::Utf8Prefix::State::complete) {
      text.push_back(character.code_point | mark);
    } else {
      for (const char byte : bytes.substr(0, character.length)) {
        text.push_back((kEscapedByte + static_cast<unsigned char>(byte)) | mark);
      }
    }
    bytes.remove_prefix(character.length);
  }
  return text;
}

void append_ascii(Text& out, std::string_view ascii) {
  for (const char c : ascii) out.push_back(static_cast<unsigned char>(c));
}

MarkedBytes to_utf8(TextView text) {
  MarkedBytes result;
  result.bytes.reserve(text.size());
  for (const Char c : text) {
    const std::size_t begin = result.bytes.size();
    if (is_escaped_byte(plain(c))) {
      result.bytes.push_back(static_cast<char>(plain(c) - kEscapedByte));
    } else {
      vocab::append_utf8(result.bytes, plain(c));
    }
    if ((c & kInputMark) == 0) continue;
    if (!result.input.empty() && result.input.back().end == begin) {
      result.input.back().end = result.bytes.size();
    } else {
      result.input.push_back({begin, result.bytes.size()});
    }
  }
  return result;
}

std::string bytes_of(TextView text) {
  return to_utf8(text).bytes;
}

bool equal(TextView a, TextView b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Char x, Char y) { return plain(x) == plain(y); });
}

bool equal(TextView a, std::string_view ascii) {
  return std::equal(a.begin(), a.end(), ascii.begin(), ascii.end(),
                    [](Char x, char y) { return plain(x) == static_cast<unsigned char>(y); });
}

int compare(TextView a, TextView b) {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (plain(a[i]) != plain(b[i])) return plain(a[i]) < plain(b[i]) ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

std::size_t hash(TextView text) {
  std::uint64_t value = 0xcbf29ce484222325u;  // FNV-1a
  for (const Char c : text) value = (value ^ plain(c)) * 0x100000001b3u;
  return static_cast<std::size_t>(value ^ (value >> 32));
}

std::size_t find(TextView text, TextView needle, std::size_t from) {
  if (from > text.size()) return TextView::npos;
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), needle.begin(),
                                 needle.end(), [](Char x, Char y) { return plain(x) == plain(y); });
  if (found == text.end() && !needle.empty()) return TextView::npos;
  return static_cast<std::size_t>(found - text.begin());
}

std::size_t find_last(TextView text, TextView needle) {
  if (needle.size() > text.size()) return TextView::npos;
  for (std::size_t at = text.size() - needle.size() + 1; at-- > 0;) {
    if (equal(text.substr(at, needle.size()), needle)) return at;
  }
  return TextView::npos;
}

bool contains(TextView set, Char c) {
  return std::any_of(set.begin(), set.end(), [&](Char x) { return plain(x) == plain(c); });
}

std::size_t find_any(TextView text, TextView set, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (contains(set, text[at])) return at;
  }
  return TextView::npos;
}

bool is_space(Char c) {
  c = plain(c);
  if (c <= 0x20) return c == 0x20 || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(Char c) {
  c = plain(c);
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_alpha(Char c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_LO;
}
bool is_decimal(Char c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}
bool is_digit(Char c) {
  c = plain(c);
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}
bool is_numeric(Char c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}
bool is_lower(Char c) {
  return utf8proc_islower(static_cast<utf8proc_int32_t>(plain(c))) != 0;
}
bool is_upper(Char c) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(plain(c))) != 0;
}
bool is_title(Char c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_printable(Char c) {
  if (plain(c) == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_word(Char c) {
  return plain(c) == '_' || is_alpha(c) || is_numeric(c);
}

void append_lower(Text& out, Char c) {
  if (plain(c) == 0x0130) {
    append_marked(out, U"i\u0307", c & kInputMark);
  } else {
    out.push_back(static_cast<Char>(utf8proc_tolower(static_cast<utf8proc_int32_t>(plain(c)))) |
                  (c & kInputMark));
  }
}

void append_upper(Text& out, Char c) {
  if (const TextView several = long_upper(plain(c)); !several.empty()) {
    append_marked(out, several, c & kInputMark);
  } else {
    out.push_back(static_cast<Char>(utf8proc_toupper(static_cast<utf8proc_int32_t>(plain(c)))) |
                  (c & kInputMark));
  }
}

void append_title(Text& out, Char c) {
  if (const TextView several = long_upper(plain(c)); !several.empty()) {
    append_marked(out, several.substr(0, 1), c & kInputMark);
    for (const Char rest : several.substr(1)) append_lower(out, rest | (c & kInputMark));
  } else {
    out.push_back(static_cast<Char>(utf8proc_totitle(static_cast<utf8proc_int32_t>(plain(c)))) |
                  (c & kInputMark));
  }
}

Text lower(TextView text) {
  Text result;
  result.reserve(text.size());
  for (const Char c : text) append_lower(result, c);
  return result;
}

Text upper(TextView text) {
  Text result;
  result.reserve(text.size());
  for (const Char c : text) append_upper(result, c);
  return result;
}

TextView strip(TextView text, const TextView* set, bool left, bool right) {
  const auto goes = [&](Char c) { return set == nullptr ? is_space(c) : contains(*set, c); };
  while (left && !text.empty() && goes(text.front())) text.remove_prefix(1);
  while (right && !text.empty() && goes(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<TextView> split_lines(TextView text, bool keep_ends) {
  std::vector<TextView> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_line_break(text[i])) continue;
    const bool two = plain(text[i]) == '\r' && i + 1 < text.size() && plain(text[i + 1]) == '\n';
    const std::size_t next = i + (two ? 2 : 1);
    lines.push_back(text.substr(begin, (keep_ends ? next : i) - begin));
    begin = next;
    i = next - 1;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace quipu::jinja
