// Strings as templates see them: sequences of code points, as in Python, each of which remembers whether it
// came from the template or from what it was given. The mark goes along with every slice, join and
// replacement, so that a rendered prompt tells exactly which of its bytes a user wrote; comparisons do not
// see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/types.h"

namespace quipu::jinja {

using Char = char32_t;
using Text = std::u32string;
using TextView = std::u32string_view;

inline constexpr Char kInputMark = 0x80000000u;
constexpr Char plain(Char c) {
  return c & ~kInputMark;
}

/// Bytes that are no UTF-8 become U+DC80 + byte, as with Python's "surrogateescape", and bytes again in
/// to_utf8.
Text from_utf8(std::string_view bytes, bool input = false);
void append_ascii(Text& out, std::string_view ascii);

struct MarkedBytes {
  std::string bytes;
  std::vector<ByteRange> input;  ///< what carries the mark: ascending, apart from each other
};
MarkedBytes to_utf8(TextView text);
/// Without the marks.
std::string bytes_of(TextView text);

// Comparisons by code point.
bool equal(TextView a, TextView b);
bool equal(TextView a, std::string_view ascii);
int compare(TextView a, TextView b);
std::size_t hash(TextView text);
/// The first place at or behind `from`, or npos; an empty needle is found where the search begins.
std::size_t find(TextView text, TextView needle, std::size_t from = 0);
std::size_t find_last(TextView text, TextView needle);
bool contains(TextView set, Char c);
/// The first place of any of the characters of `set`, or npos.
std::size_t find_any(TextView text, TextView set, std::size_t from = 0);

// Character classes and case by Unicode, as Python has them.
bool is_space(Char c);
bool is_line_break(Char c);
bool is_alpha(Char c);
bool is_decimal(Char c);
bool is_digit(Char c);
bool is_numeric(Char c);
bool is_lower(Char c);
bool is_upper(Char c);
bool is_title(Char c);
bool is_printable(Char c);
/// Letters, digits and the underscore.
bool is_word(Char c);
void append_lower(Text& out, Char c);
void append_upper(Text& out, Char c);
void append_title(Text& out, Char c);
Text lower(TextView text);
Text upper(TextView text);

/// Without what is in `set` at the ends; white space where there is no set.
TextView strip(TextView text, const TextView* set, bool left, bool right);
/// At line breaks of any kind, "\r\n" being one.
std::vector<TextView> split_lines(TextView text, bool keep_ends = false);

}  // namespace quipu::jinja
