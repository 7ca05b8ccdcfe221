// Text from a file, made fit for one line of a message. Values may hold any bytes; messages may not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quipu::gguf {

inline constexpr std::size_t kMessageChars = 80;

/// `text` with its unprintable parts (controls, line separators, what is not UTF-8, and `quote` and
/// backslash) escaped as in C, cut with "..." after `max_chars` characters of the original. No quotes are
/// added.
std::string printable(std::string_view text, std::size_t max_chars = kMessageChars, char quote = '\'');

}  // namespace quipu::gguf
